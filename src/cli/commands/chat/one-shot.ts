import { EXIT } from '../../exit-codes.ts'
import type { CommandContext } from '../../context.ts'
import { jsonLine } from '../../terminal.ts'
import { replayNotes } from './show-turn.ts'
import type { Talk } from './talk.ts'
import { openScreen, write } from './turn-screen.ts'
import { failureMessage, labelsOf, quotaMessage } from './messages.ts'

/**
 * One question, one answer: rendered on a terminal, plain text where standard output is anything else, or one line an
 * event under `--json`; what else there is to say on standard error.
 *
 * @returns 0, also when the reader of standard output has left, which ends the turn; 69 when the model failed
 * @throws Refusal of the interface, or the signal's reason
 */
export async function runOneShot(context: CommandContext, talk: Talk, question: string): Promise<number> {
  const { terminal, stdout, signal } = context
  for (const note of replayNotes(talk.replay(question), null)) terminal.note(note)
  let exitCode: number = EXIT.failed
  const reading = whileRead(stdout, signal)
  if (stdout.isTTY && !terminal.json) terminal.progress('')
  const screen = openScreen(context, false, reading.signal)
  try {
    for await (const each of talk.ask(question, reading.signal)) {
      if (each.kind === 'text') await screen.text(each.text)
      if (each.kind !== 'event') continue
      const { served } = each
      if (terminal.json)
        await write(stdout, jsonLine({ event: served.event, data: served.raw }), reading.signal)
      if (served.event === 'tool') screen.tool(served.data.name, served.data.status)
      if (served.event !== 'done' && served.event !== 'error') continue
      await screen.end()
      exitCode = served.event === 'done' ? EXIT.done : EXIT.unavailable
      if (served.event === 'error') terminal.error(failureMessage(served.data, { isTalk: false }))
      else for (const label of labelsOf(served.data)) terminal.note(label)
    }
  } catch (error) {
    if (reading.signal.aborted && !signal.aborted) return EXIT.done
    throw error
  } finally {
    await screen.end()
    reading.release()
  }
  if (talk.quota && (terminal.interactive || terminal.verbose))
    terminal.note(`${quotaMessage(talk.quota)} left`)
  return exitCode
}

/** A signal that aborts with `signal`, or when the reader of standard output has left, until it is released. */
function whileRead(
  stdout: NodeJS.WriteStream,
  signal: AbortSignal,
): { signal: AbortSignal; release(): void } {
  const leaving = new AbortController()
  const leave = (): void => leaving.abort(new DOMException('nobody reads the answer', 'AbortError'))
  stdout.once('error', leave)
  return {
    signal: AbortSignal.any([signal, leaving.signal]),
    release: () => void stdout.off('error', leave),
  }
}
