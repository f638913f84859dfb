import { addAbortSignal } from 'node:stream'
import { appendFileSync, chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fastStringWidth from 'fast-string-width'
import { wrapAnsi } from 'fast-wrap-ansi'
import { MESSAGE_MAX_LENGTH } from '../../../domain/agent/bounds.ts'
import { isItemKey } from '../../../domain/agent/conversation.ts'
import type { LiveSort } from '../../../domain/feed/live-sort.ts'
import type { ServedConfig } from '../../../domain/agent/schema.ts'
import { HOW_TO_REACH, Refusal, messageOf } from '../../../domain/refusal.ts'
import { parseJson } from '../../../domain/json.ts'
import type { ChatApi } from '../../container.ts'
import type { CommandContext } from '../../context.ts'
import { createFolders } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { localUrl } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import { flagValue, hostFlag } from '../../settings/environment.ts'
import { fail, inOneLine, printable, styled } from '../../terminal.ts'
import { replayNotes, showAnswer, showTurn } from './show-turn.ts'
import type { ChatContext } from './show-turn.ts'
import { Talk } from './talk.ts'
import {
  failureMessage,
  isChatRefusal,
  quotaMessage,
  refusalMessage,
  verificationMessage,
} from './messages.ts'
import type { Engine, RefusalMessage } from './messages.ts'
import { Prompt } from './prompt.ts'
import { completionsOf, parseSlashCommand, runSlashCommand } from './slash-commands.ts'

interface ChatFlags {
  url?: string
  item?: string
  sort?: LiveSort
  demo: boolean
  history: boolean
}

const HOW_TO_START = 'start one with dash serve, choose another with --url, or run dash chat --demo'

const HOW_TO_ASK = 'run dash chat "QUESTION", or echo QUESTION | dash chat'

/** `dash chat`: answers a question from the command line or a pipe, else runs a conversation on the terminal. */
export async function chatCommand(
  context: CommandContext,
  flags: ChatFlags,
  words: readonly string[],
): Promise<number> {
  checkFlags(flags)
  const question = await questionOf(context, words)
  if (flags.demo) return withPrivateServer(context, (url) => chatWith(context, url, question, flags))
  const { baseUrl } = context.config
  return chatWith(context, flags.url ?? baseUrl ?? localUrl(context.config), question, flags)
}

function engineOf({ chat, openRouterUrl }: Config): Engine {
  const { model, url } = chat.provider
  return model === 'auto' ? { url: openRouterUrl, prefix: 'OPENROUTER' } : { url, prefix: 'OPENAI' }
}

/** @param question null for a conversation */
async function chatWith(
  context: CommandContext,
  url: string,
  question: string | null,
  flags: ChatFlags,
): Promise<number> {
  const { terminal, signal } = context
  const api = await context.container.chatApi(url)
  try {
    terminal.progress(`connecting to ${api.base} …`)
    const config = await api.config(signal)
    if (question === null) terminal.progress('')
    const problem = problemOf(config, api, flags)
    if (problem) return fail(terminal, problem.text, problem.exitCode)
    const talk = new Talk(api, {
      itemKey: flags.item ?? null,
      sort: flags.sort ?? 'trending',
      settings: { preferredLanguage: 'auto', tone: 'neutral' },
    })
    const isOwn = flags.url === undefined && !flags.demo
    const engine = isOwn ? engineOf(context.config) : null
    if (question !== null) return await runOneShot({ context, talk, engine }, question)
    const talking = { context, talk, engine, api, config }
    return await converse(talking, { isDemo: flags.demo, remember: flags.history })
  } catch (error) {
    signal.throwIfAborted()
    if (!isChatRefusal(error)) throw error
    const { text, exitCode } = refusalMessage(error, api.base, Date.now(), { isTalk: false, quota: null })
    const isElsewhere = !flags.demo && error.code.startsWith('server_')
    const advice = flags.url === undefined ? HOW_TO_START : HOW_TO_REACH
    return fail(terminal, isElsewhere ? `${text}; ${advice}` : text, exitCode)
  }
}

function checkFlags({ url, item, demo }: ChatFlags): void {
  if (demo && url !== undefined)
    throw new Refusal('usage', '--demo starts a private server; remove --url or --demo')
  if (url !== undefined) hostFlag(url)
  if (item !== undefined)
    flagValue('--item', item, 'a save key such as hn-29387264', (key) => (isItemKey(key) ? key : null))
}

/** Returns the reason why no conversation can start; null if one can. */
function problemOf(config: ServedConfig, { base }: ChatApi, { item }: ChatFlags): RefusalMessage | null {
  if (!config.enabled) {
    const advice = 'on its machine, dash doctor says why'
    return { text: `the chat of ${base} is off; ${advice}`, exitCode: EXIT.unavailable }
  }
  if (config.requireVerification) return { text: verificationMessage(base), exitCode: EXIT.failed }
  if (item !== undefined && !config.itemChat)
    return { text: `${base} offers no chat about one item; remove --item`, exitCode: EXIT.failed }
  return null
}

/**
 * Returns the question from the command line, else from standard input; null for a conversation on the terminal.
 *
 * @throws Refusal `usage` if there is neither; the signal's reason
 */
async function questionOf(
  { terminal, stdin, signal }: CommandContext,
  words: readonly string[],
): Promise<string | null> {
  if (words.length === 0 && stdin.isTTY) {
    if (terminal.json)
      throw new Refusal('usage', '--json needs a question, on the command line or on standard input')
    if (terminal.interactive) return null
    throw new Refusal('usage', `dash chat without a question needs a terminal; ${HOW_TO_ASK}`)
  }
  const given = words.length > 0 ? words.join(' ') : await readStart(stdin, signal)
  const question = given.trim()
  if (question !== '') return question
  throw new Refusal('usage', `the question is empty; ${HOW_TO_ASK}`)
}

/** Reads a pipe, which may be endless, until it holds more than a message. */
async function readStart(stdin: NodeJS.ReadStream, signal: AbortSignal): Promise<string> {
  let text = ''
  for await (const part of addAbortSignal(signal, stdin.setEncoding('utf8'))) {
    text += String(part)
    if (text.length > 4 * MESSAGE_MAX_LENGTH) break
  }
  return text
}

/** Runs a function with a demo server on a free port of the loopback, which logs nothing. */
async function withPrivateServer<T>(context: CommandContext, run: (url: string) => Promise<T>): Promise<T> {
  const { NO_LOG, withDemo } = await import('../../demo.ts')
  const { startServer } = await import('../../running-server.ts')
  const { signal, version } = context
  return withDemo(context, async (demo) => {
    const monitoring = { ...demo.monitoring, metrics: null }
    const config = { ...demo, host: '127.0.0.1', port: 0, baseUrl: null, monitoring }
    const isDraining = (): boolean => signal.aborted
    const server = await startServer(config, { log: NO_LOG, demo: true, version, isDraining })
    try {
      return await run(server.url)
    } finally {
      await server.close(0)
    }
  })
}

/**
 * Asks one question and shows the answer. Notes go to standard error.
 *
 * @returns 0, also if standard output was closed, which ends the turn; 69 if the model failed
 * @throws Refusal of the chat API, or the signal's reason
 */
async function runOneShot(
  { context, talk, engine }: Pick<ChatContext, 'context' | 'talk' | 'engine'>,
  question: string,
): Promise<number> {
  const { terminal, stdout, signal } = context
  for (const note of replayNotes(talk.replay(question), null)) terminal.note(note)
  const closed = new AbortController()
  const onClosed = (): void =>
    closed.abort(new DOMException('the output was closed before the answer ended', 'AbortError'))
  stdout.once('error', onClosed)
  const eitherSignal = AbortSignal.any([signal, closed.signal])
  let answer: Awaited<ReturnType<typeof showAnswer>>
  try {
    answer = await showAnswer({ context, talk }, question, eitherSignal)
  } catch (error) {
    if (closed.signal.aborted && !signal.aborted) return EXIT.done
    throw error
  } finally {
    stdout.off('error', onClosed)
  }
  const { last: end, labels } = answer
  if (end?.event === 'error') terminal.error(failureMessage(end.data, { isTalk: false, engine }))
  for (const label of labels) terminal.note(label)
  if (talk.quota && (terminal.interactive || terminal.verbose))
    terminal.note(`${quotaMessage(talk.quota)} left`)
  if (end === null) return EXIT.failed
  return end.event === 'done' ? EXIT.done : EXIT.unavailable
}

/** Path of the question history below the user's state folder. */
const QUESTIONS_FILE = join('dash', 'chat-history')

/**
 * Runs a conversation on the terminal: prompts on standard error, answers on standard output.
 *
 * @returns 0 if left with Ctrl-D or /quit, 130 if left with Ctrl-C
 * @throws the signal's reason
 */
async function converse(
  talking: Pick<ChatContext, 'context' | 'talk' | 'engine' | 'api' | 'config'>,
  { isDemo, remember }: { isDemo: boolean; remember: boolean },
): Promise<number> {
  const { terminal, stdin, stderr: screen, config, signal } = talking.context
  const { colored } = terminal
  const say = (text: string): void => {
    const rows = noteRows(text, screen.columns - 1)
    screen.write(rows.map((row) => `${styled(row, ['dim'], colored)}\n`).join(''))
  }
  if (!terminal.quiet) say(greeting(talking, isDemo))
  const questions = openQuestionHistory(remember ? join(config.stateHome, QUESTIONS_FILE) : null, say)
  const history = questions.earlier
  const prompt = new Prompt({ stdin, screen, colored, history, complete: completionsOf, signal })
  const chat: ChatContext = { ...talking, prompt, say, last: null }
  try {
    let wasInterrupted = false
    for (;;) {
      const entered = await prompt.read()
      if (entered.kind === 'end') return EXIT.done
      if (entered.kind === 'interrupt') {
        if (wasInterrupted && entered.wasEmpty) return EXIT.interrupted
        wasInterrupted = true
        say('press Ctrl-C again or Ctrl-D to quit')
        continue
      }
      wasInterrupted = false
      if (entered.text.trim() === '') continue
      questions.add(entered.text)
      const command = parseSlashCommand(entered.text)
      if (command === null) await showTurn(chat, entered.text)
      else if (command.name === 'quit') return EXIT.done
      else await runSlashCommand(chat, command)
    }
  } finally {
    prompt.close()
  }
}

const COLUMNS_MIN = 8

/** Wraps the lines of a note that are too wide; the others keep their spaces. */
export function noteRows(text: string, columns: number): string[] {
  // A terminal may not know its width.
  const width = Math.max(COLUMNS_MIN, columns)
  return printable(text)
    .split('\n')
    .flatMap((line) =>
      fastStringWidth(line) <= width ? [line] : wrapAnsi(line, width, { hard: true }).split('\n'),
    )
}

function greeting({ api, config, talk }: Parameters<typeof converse>[0], isDemo: boolean): string {
  const model = config.model === '' ? '' : `, model ${inOneLine(config.model)}`
  const item = talk.preferences.itemKey === null ? '' : `, about ${talk.preferences.itemKey}`
  const label = isDemo ? 'DEMO: ' : ''
  return `${label}dash chat at ${api.base}${model}${item}\n/help lists the commands; Ctrl-C stops an answer, Ctrl-D quits`
}

/** Questions of earlier runs, to which those of this run are added. */
export interface QuestionHistory {
  /** Oldest first. */
  earlier: readonly string[]
  /** Stores a question, unless it begins with a space, as in shells. */
  add(question: string): void
}

/** Most questions that are kept between runs. */
export const QUESTIONS_KEPT = 1_000

const OWNER_ONLY = 0o600

/**
 * Opens the question history in a file that only its owner may read. Several terminals may add to it at once.
 *
 * @param path file of the history; null: questions are not stored
 * @param onProblem called once if the file cannot be used: questions are then not stored
 */
export function openQuestionHistory(
  path: string | null,
  onProblem: (problem: string) => void,
): QuestionHistory {
  let isUsable = path !== null
  let earlier: string[] = []
  const attempt = (work: (file: string) => void): void => {
    if (path === null || !isUsable) return
    try {
      work(path)
    } catch (error) {
      isUsable = false
      onProblem(`questions are not saved: ${path} cannot be used (${messageOf(error)})`)
    }
  }
  attempt((file) => (earlier = readHistoryFile(file)))
  return {
    earlier,
    add(question) {
      if (question.startsWith(' ') || question.trim() === '') return
      attempt((file) => {
        createFolders(dirname(file), 0o700)
        appendFileSync(file, lineOf(question), { mode: OWNER_ONLY })
      })
    },
  }
}

/** Reads the questions of a file, and rewrites it when it has grown to twice the kept number. */
function readHistoryFile(path: string): string[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  chmodSync(path, OWNER_ONLY)
  const stored = lines
    .map(parseJson)
    .filter((line): line is string => typeof line === 'string' && line !== '')
  // Each question stands at its last use.
  const questions = [...new Set(stored.toReversed())].slice(0, QUESTIONS_KEPT).toReversed()
  if (lines.length > 2 * QUESTIONS_KEPT) {
    const temporary = `${path}.${process.pid}`
    writeFileSync(temporary, questions.map(lineOf).join(''), { mode: OWNER_ONLY })
    renameSync(temporary, path)
  }
  return questions
}

function lineOf(question: string): string {
  return `${JSON.stringify(question)}\n`
}
