import { MESSAGE_MAX_LENGTH } from '../../../domain/agent/bounds.ts'
import { isItemKey } from '../../../domain/agent/conversation.ts'
import type { LiveSort } from '../../../domain/feed/live-sort.ts'
import { isHttpUrl } from '../../../domain/address.ts'
import type { ServedConfig } from '../../../domain/agent/schema.ts'
import type { PublicHost } from '../../../domain/ports.ts'
import { HOW_TO_REACH, Refusal } from '../../../domain/refusal.ts'
import type { CommandContext } from '../../context.ts'
import { EXIT } from '../../exit-codes.ts'
import { localUrl } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import { runOneShot } from './one-shot.ts'
import { Talk } from './talk.ts'
import { refusalMessage, isChatRefusal, verificationMessage } from './messages.ts'
import type { RefusalMessage } from './messages.ts'

export interface ChatFlags {
  url?: string
  item?: string
  sort?: LiveSort
  demo: boolean
  history: boolean
  dataDir?: string
}

const HOW_TO_START =
  'start a server with dash serve, name another with --url, or try dash chat --demo, which starts one of its own'

/**
 * `dash chat`: one answer for a question on the command line or from a pipe, else a talk on the terminal.
 *
 * @param words the question; none: standard input, or a person
 * @returns 0 answered, or left with Ctrl-D or /quit; 1 declined; 69 server or model unavailable; 130 left with Ctrl-C
 * @throws Refusal `usage`; whatever the private server of `--demo` could not do
 */
export async function chatCommand(
  context: CommandContext,
  words: readonly string[],
  flags: ChatFlags,
): Promise<number> {
  checkFlags(flags)
  const { terminal, stdin, signal } = context
  const isTalk = words.length === 0 && stdin.isTTY
  if (isTalk && (terminal.json || !terminal.interactive)) {
    throw new Refusal(
      'usage',
      terminal.json
        ? '--json needs a question, on the command line or on standard input'
        : 'without a question this needs a terminal: dash chat "QUESTION", or echo QUESTION | dash chat',
    )
  }
  const question = isTalk ? null : await readQuestion(words, stdin, signal)
  const server = flags.demo ? await (await import('./private-server.ts')).startPrivate(context) : null
  const api = await context.container.chatApi(server?.url ?? addressOf(flags, context.config))
  const onDeclined = ({ text, exitCode }: RefusalMessage): number => {
    terminal.error(text)
    terminal.failure(text, exitCode)
    return exitCode
  }
  try {
    terminal.progress(`asking ${api.base} …`)
    const config = await api.config(signal)
    if (isTalk) terminal.progress('')
    const problem = problemOf(config, api, flags)
    if (problem) return onDeclined(problem)
    const talk = new Talk(api, {
      itemKey: flags.item ?? null,
      sort: flags.sort ?? 'trending',
      settings: { preferredLanguage: 'auto', tone: 'neutral' },
    })
    if (question !== null) return await runOneShot(context, talk, question)
    const { converse } = await import('./converse.ts')
    const talking = { context, talk, api, config }
    return await converse(talking, { isDemo: flags.demo, remember: flags.history })
  } catch (error) {
    signal.throwIfAborted()
    if (!isChatRefusal(error)) throw error
    const { text, exitCode } = refusalMessage(error, api.base, Date.now(), { isTalk: false, quota: null })
    if (flags.demo || !error.code.startsWith('server_')) return onDeclined({ text, exitCode })
    return onDeclined({ text: `${text}; ${flags.url === undefined ? HOW_TO_START : HOW_TO_REACH}`, exitCode })
  } finally {
    await server?.close()
  }
}

function checkFlags({ url, item, demo, dataDir }: ChatFlags): void {
  if (demo && url !== undefined)
    throw new Refusal('usage', '--demo starts a server of its own; leave --url out, or --demo')
  if (demo && dataDir !== undefined)
    throw new Refusal('usage', '--demo runs in a folder of its own; leave --data-dir out')
  if (url !== undefined && (!isHttpUrl(url) || /[?#]/.test(url) || new URL(url).username !== ''))
    throw new Refusal(
      'usage',
      `--url ${JSON.stringify(url)} must be an absolute http(s) URL without user, query or fragment`,
    )
  if (item !== undefined && !isItemKey(item))
    throw new Refusal('usage', `--item ${JSON.stringify(item)} must be a save key, like hn-29387264`)
}

/** The server that is meant: the one named, else the one these settings are of, on this machine. */
function addressOf({ url }: ChatFlags, config: Config): string {
  return url ?? config.baseUrl ?? localUrl(config)
}

/** Why no talk can begin; null when one can. */
function problemOf(
  config: ServedConfig,
  { base }: PublicHost['chat'],
  { item }: ChatFlags,
): RefusalMessage | null {
  if (!config.enabled) {
    const advice = 'its operator finds in docs/agent-chat.md what it needs'
    return { text: `the chat of ${base} is off; ${advice}`, exitCode: EXIT.unavailable }
  }
  if (config.requireVerification) return { text: verificationMessage(base), exitCode: EXIT.failed }
  if (item !== undefined && !config.itemChat)
    return { text: `${base} offers no chat about one item; leave --item out`, exitCode: EXIT.failed }
  return null
}

/** More than a message may have, in its longest encoding: whatever comes after it would not be read. */
const QUESTION_MAX_BYTES = MESSAGE_MAX_LENGTH * 16

/**
 * The question of the command line, else of standard input to its end.
 *
 * @throws Refusal `usage` when there is none; the signal's reason
 */
async function readQuestion(
  words: readonly string[],
  stdin: NodeJS.ReadStream,
  signal: AbortSignal,
): Promise<string> {
  const question = (words.length > 0 ? words.join(' ') : await readAll(stdin, signal)).trim()
  if (question === '')
    throw new Refusal('usage', 'the question is empty: dash chat "QUESTION", or echo QUESTION | dash chat')
  return question
}

async function readAll(stdin: NodeJS.ReadStream, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  const stop = (): void => void stdin.destroy(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    for await (const chunk of stdin as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.byteLength
      if (size > QUESTION_MAX_BYTES) break
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
  return new TextDecoder().decode(Buffer.concat(chunks))
}
