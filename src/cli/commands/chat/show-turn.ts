import { BODY_MAX_BYTES, MESSAGES_READ, MESSAGE_MAX_LENGTH } from '../../../domain/agent/bounds.ts'
import type { Replay } from '../../../domain/agent/conversation.ts'
import type { LastEvent, ServedConfig } from '../../../domain/agent/schema.ts'
import { TOOL_ACTIONS } from '../../../domain/agent/model-call.ts'
import type { ToolName } from '../../../domain/agent/model-call.ts'
import type { ChatApi } from '../../container.ts'
import type { CommandContext } from '../../context.ts'
import { jsonLine, knowsHyperlinks } from '../../terminal.ts'
import type { Prompt } from './prompt.ts'
import type { Talk } from './talk.ts'
import { refusalMessage, failureMessage, isChatRefusal, labelsOf, quotaMessage } from './messages.ts'
import type { Engine } from './messages.ts'
import { markdownStream } from './markdown.ts'
import type { MarkdownStream } from './markdown.ts'

/** Parts of a conversation on the terminal. */
export interface ChatContext {
  context: CommandContext
  prompt: Prompt
  talk: Talk
  /** Null if the server is another installation's. */
  engine: Engine | null
  api: ChatApi
  config: ServedConfig
  /** Prints a line beside the answers. */
  say: (text: string) => void
  /** Content of the last request; null in a new conversation, which notes again what is left out. */
  last: Replay | null
}

/**
 * Asks a question and shows the answer while it streams: rendered on a terminal, plain text elsewhere, or one line of
 * JSON per event under `--json`.
 *
 * @param options.again true to replace the answer to the last question
 * @param options.say prints a line beside the answers of a conversation; null for a single answer
 * @param options.onRenewed called when a new session replaced an expired one
 * @returns the last event, null if the answer has none; and the labels of the answer
 * @throws Refusal of the chat API, or the signal's reason
 */
export async function showAnswer(
  { context, talk }: Pick<ChatContext, 'context' | 'talk'>,
  question: string,
  signal: AbortSignal,
  options: { again?: boolean; say?: ChatContext['say']; onRenewed?: () => void } = {},
): Promise<{ last: LastEvent | null; labels: string[] }> {
  const screen = openScreen(context, signal, options.say ?? null)
  let last: LastEvent | null = null
  let labels: string[] = []
  let ranTools = false
  try {
    for await (const each of talk.ask(question, signal, options.again)) {
      if (each.kind === 'text') await screen.text(each.text)
      if (each.kind === 'renewed') options.onRenewed?.()
      if (each.kind !== 'event') continue
      const { served } = each
      if (context.terminal.json)
        await write(context.stdout, jsonLine({ event: served.event, data: served.raw }), signal)
      if (served.event === 'tool') {
        ranTools = true
        await screen.tool(served.data.name, served.data.status)
      }
      if (served.event === 'done') labels = labelsOf(served.data, ranTools)
      if (served.event === 'done' || served.event === 'error') last = served
    }
  } finally {
    await screen.end()
  }
  return { last, labels }
}

/**
 * Shows a turn of a conversation. Ctrl-C ends the request; the partial answer stays in the conversation.
 *
 * @param again true to replace the answer to the last question
 * @throws the signal's reason if the program ends; every error that is not a refusal
 */
export async function showTurn(chat: ChatContext, question: string, again = false): Promise<void> {
  const { context, prompt, talk, engine, api, say, last } = chat
  chat.last = talk.replay(question, again)
  for (const note of replayNotes(chat.last, last)) say(note)
  const signal = prompt.interruptible()
  const after: string[] = []
  const onRenewed = (): void => void after.push('the session had expired; a new one was started')
  try {
    const { last: end, labels } = await showAnswer(chat, question, signal, { again, say, onRenewed })
    after.push(...labels)
    if (end?.event === 'error') after.push(failureMessage(end.data, { isTalk: true, engine }))
  } catch (error) {
    if (signal.aborted) after.push('stopped; /retry to ask again')
    else if (isChatRefusal(error))
      after.push(refusalMessage(error, api.base, Date.now(), { isTalk: true, quota: talk.quota }).text)
    else throw error
  }
  context.signal.throwIfAborted()
  for (const line of after) say(line)
  if (talk.quota && !context.terminal.quiet) say(`${quotaMessage(talk.quota)} left`)
}

const number = (value: number): string => value.toLocaleString('en')

/** Returns notes about text that this request leaves out and the one before did not. */
export function replayNotes(replay: Replay, last: Replay | null): string[] {
  const { leftOut, questionCut, earlierCut } = replay
  return [
    ...(questionCut
      ? [`the question is too long: only its first ${number(MESSAGE_MAX_LENGTH)} characters are sent`]
      : []),
    ...(leftOut > (last?.leftOut ?? 0)
      ? [
          `${leftOut === 1 ? 'the oldest turn is' : `the ${leftOut} oldest turns are`} no longer sent: the chat reads at most ` +
            `the last ${MESSAGES_READ} messages and ${number(BODY_MAX_BYTES)} bytes`,
        ]
      : []),
    ...(earlierCut > (last?.earlierCut ?? 0)
      ? [`only the first ${number(MESSAGE_MAX_LENGTH)} characters of long earlier messages are sent`]
      : []),
  ]
}

const WAITING = 'waiting for the answer; Ctrl-C to stop'

/**
 * Opens a display of an answer: on a terminal each block is rendered once it is complete, elsewhere the answer is plain text (none
 * under `--json`). A line on standard error says what is awaited.
 *
 * @param signal once aborted, writes do not wait for the reader of standard output
 * @param say prints a line beside the answers of a conversation; null for a single answer
 */
function openScreen(
  { stdout, terminal, env }: CommandContext,
  signal: AbortSignal,
  say: ((text: string) => void) | null,
) {
  const isRendered = stdout.isTTY && terminal.interactive && !terminal.json
  const note = say ?? (isRendered ? terminal.note : null)
  const options = {
    // The last column stays free: some terminals wrap once it is written.
    get columns() {
      return stdout.columns - 1
    },
    colored: terminal.colored,
    linked: knowsHyperlinks(stdout, env),
  }
  const open = (): MarkdownStream => (isRendered ? markdownStream(options) : plainStream())
  const startTimes = new Map<ToolName, number>()
  let answer = open()
  let isAfterTool = false

  const put = async (text: string): Promise<void> => {
    if (text === '' || terminal.json) return
    if (isRendered) terminal.progress('')
    await write(stdout, isRendered && isAfterTool ? `\n${text}` : text, signal)
    isAfterTool = false
  }
  // Plain text on the same terminal must begin at the start of a line.
  const show = (status: string): void => terminal.progress(isRendered || !stdout.isTTY ? status : '')
  show(WAITING)
  return {
    async text(text: string): Promise<void> {
      const rows = answer.push(text)
      await put(rows)
      if (isRendered && rows !== '') show(WAITING)
    },
    async tool(name: ToolName, status: 'start' | 'done'): Promise<void> {
      const startedAt = startTimes.get(name)
      if (status === 'start') {
        startTimes.set(name, performance.now())
        if (isRendered) {
          await put(answer.end())
          answer = open()
        }
        return show(toolMessage(name, null))
      }
      terminal.progress('')
      if (note !== null && startedAt !== undefined) {
        note(toolMessage(name, performance.now() - startedAt))
        isAfterTool = true
      }
      show(WAITING)
    },
    /** Completes the display; further calls have no effect. */
    async end(): Promise<void> {
      await put(answer.end())
      answer = plainStream()
      terminal.progress('')
    },
  }
}

/** Passes text on, and ends the last line. */
function plainStream(): MarkdownStream {
  let last = '\n'
  return {
    push(text) {
      last = text
      return text
    },
    end: () => (last.endsWith('\n') ? '' : '\n'),
  }
}

/** Writes no faster than the reader reads, until `signal` aborts. */
async function write(stdout: NodeJS.WriteStream, text: string, signal: AbortSignal): Promise<void> {
  if (stdout.destroyed || stdout.write(text) || signal.aborted) return
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      stdout.off('drain', settle)
      stdout.off('close', settle)
      signal.removeEventListener('abort', settle)
      resolve()
    }
    stdout.once('drain', settle)
    stdout.once('close', settle)
    signal.addEventListener('abort', settle, { once: true })
  })
}

/** Returns `· Searching 0.8 s`. Arguments and results of tools stay with the server. */
function toolMessage(name: ToolName, ms: number | null): string {
  return `· ${TOOL_ACTIONS[name]} ${ms === null ? '…' : `${(ms / 1000).toFixed(1)} s`}`
}
