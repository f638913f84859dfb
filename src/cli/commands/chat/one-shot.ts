import type { ToolName } from '../../../domain/agent/model-call.ts'
import { EXIT } from '../../exit-codes.ts'
import type { CommandContext } from '../../context.ts'
import { jsonLine } from '../../terminal.ts'
import { replayNotes, openScreen } from './show-turn.ts'
import type { Talk } from './talk.ts'
import { failureWords, labelsOf, quotaWords } from './words.ts'

/** Where the one answer goes. */
interface Output {
  text(text: string): Promise<void>
  tool(name: ToolName, status: 'start' | 'done'): void
  /** Ends the answer, whole or not; what is said afterwards begins a line. */
  end(): Promise<void>
}

/**
 * One question, one answer: rendered on a terminal, plain text where standard output is anything else, or one line an
 * event under `--json`; what else there is to say on standard error.
 *
 * @returns 0, also when the reader of standard output has left, which ends the turn; 69 when the model failed
 * @throws Refusal of the interface, or the signal's reason
 */
export async function askOnce(context: CommandContext, talk: Talk, question: string): Promise<number> {
  const { terminal, stdout, signal } = context
  for (const note of replayNotes(talk.replay(question), null)) terminal.note(note)
  let exitCode: number = EXIT.failed
  const reading = whileRead(stdout, signal)
  const isPainted = stdout.isTTY && terminal.interactive && !terminal.json
  const output = isPainted ? paintedOutput(context) : plainOutput(context, reading.signal)
  try {
    for await (const each of talk.ask(question, reading.signal)) {
      if (each.kind === 'text') await output.text(each.text)
      if (each.kind !== 'event') continue
      const { served } = each
      if (terminal.json)
        await write(stdout, jsonLine({ event: served.event, data: served.raw }), reading.signal)
      if (served.event === 'tool') output.tool(served.data.name, served.data.status)
      if (served.event === 'done') {
        exitCode = EXIT.done
        await output.end()
        const { degraded = false, cached = false } = served.data
        for (const label of labelsOf({ degraded, cached })) terminal.note(label)
      } else if (served.event === 'error') {
        exitCode = EXIT.unavailable
        await output.end()
        terminal.error(failureWords(served.data, { isTalk: false }))
      }
    }
  } catch (error) {
    if (reading.signal.aborted && !signal.aborted) return EXIT.done
    throw error
  } finally {
    await output.end()
    reading.release()
  }
  if (talk.quota && (terminal.interactive || terminal.verbose))
    terminal.note(`${quotaWords(talk.quota)} left`)
  return exitCode
}

function paintedOutput(context: CommandContext): Output {
  context.terminal.progress('')
  const screen = openScreen(context)
  let isOpen = true
  return {
    text: (text) => Promise.resolve(screen.text(text)),
    tool: (name, status) => screen.tool(name, status),
    end() {
      if (isOpen) screen.close()
      isOpen = false
      return Promise.resolve()
    },
  }
}

function plainOutput({ terminal, stdout }: CommandContext, signal: AbortSignal): Output {
  let last = ''
  return {
    async text(text) {
      // Where both streams are one terminal, the answer begins at the start of the line.
      if (last === '') terminal.progress('')
      last = text
      if (!terminal.json) await write(stdout, text, signal)
    },
    tool(name) {
      if (last === '') terminal.progress(`${name} …`)
    },
    async end() {
      if (!terminal.json && last !== '' && !last.endsWith('\n')) await write(stdout, '\n', signal)
      last = ''
    },
  }
}

/** A signal that aborts with `signal`, or when the reader of standard output has left, until it is released. */
function whileRead(
  stdout: NodeJS.WriteStream,
  signal: AbortSignal,
): { signal: AbortSignal; release(): void } {
  const ending = new AbortController()
  const stop = (): void => ending.abort(signal.reason)
  const leave = (): void => ending.abort(new DOMException('nobody reads the answer', 'AbortError'))
  signal.addEventListener('abort', stop, { once: true })
  stdout.once('error', leave)
  if (signal.aborted) stop()
  return {
    signal: ending.signal,
    release() {
      signal.removeEventListener('abort', stop)
      stdout.off('error', leave)
    },
  }
}

/** Writes no faster than the reader takes it, until `signal` says that it has left. */
async function write(stdout: NodeJS.WriteStream, text: string, signal: AbortSignal): Promise<void> {
  if (stdout.destroyed || stdout.write(text) || signal.aborted) return
  await new Promise<void>((resolve) => {
    const go = (): void => {
      stdout.off('drain', go)
      stdout.off('close', go)
      signal.removeEventListener('abort', go)
      resolve()
    }
    stdout.once('drain', go)
    stdout.once('close', go)
    signal.addEventListener('abort', go, { once: true })
  })
}
