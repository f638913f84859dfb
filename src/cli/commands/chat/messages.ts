import { degradedText, failureText, LIMIT_TEXTS, limitOf } from '../../../domain/agent/conversation.ts'
import type { Remaining } from '../../../domain/agent/conversation.ts'
import type { AGENT_ERRORS, AgentSession, ChatApiRefusal, LastEvent } from '../../../domain/agent/schema.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Instant } from '../../../domain/time.ts'
import { EXIT } from '../../exit-codes.ts'
import { inOneLine } from '../../terminal.ts'

export interface Quota {
  remaining: Remaining
  quotas: AgentSession['quotas']
}

/** Returns the remaining messages of each quota: `18/20 session, 47/60 today`. */
export function quotaMessage({ remaining, quotas }: Quota): string {
  return `${remaining.session}/${quotas.messagesPerSession} session, ${remaining.day}/${quotas.messagesPerDay} today`
}

/** Message about a refused turn, and the exit code of a command that asks one question. */
export interface RefusalMessage {
  text: string
  exitCode: number
}

type Code = ChatApiRefusal | (typeof AGENT_ERRORS)[number]

/** Returns true for a refusal that {@link refusalMessage} describes. */
export function isChatRefusal(error: unknown): error is Refusal<Code> {
  return error instanceof Refusal && (error.code === 'rate_limited' || Object.hasOwn(REFUSED, error.code))
}

/** Context in which a message is shown. */
export interface MessageSetting {
  /** True in a conversation, which has slash commands. */
  isTalk: boolean
  /** Quota as the server last reported it; null before that. */
  quota: Quota | null
}

/** Meaning of a code: the message and the exit code. */
interface Refused {
  exitCode: number
  text: (base: string, refusal: Refusal<Code>) => string
}

const unavailable = (text: Refused['text']): Refused => ({ exitCode: EXIT.unavailable, text })
const failed = (text: Refused['text']): Refused => ({ exitCode: EXIT.failed, text })
const disconnected = unavailable((_base, { code, detail }) => detail ?? code)
const rejected = failed(
  (base, { code }) => `the server ${base} rejected the question (${code}); it may run another version`,
)

const REFUSED: Readonly<Record<Exclude<Code, 'rate_limited'>, Refused>> = {
  server_unreachable: disconnected,
  server_foreign: disconnected,
  answer_cut: disconnected,
  disabled: unavailable(
    (base) => `the chat of ${base} is switched off (disabled); only its operator can switch it on`,
  ),
  misconfigured: unavailable(
    (base) =>
      `the chat of ${base} is not set up (misconfigured); its operator finds the missing setting in the server log`,
  ),
  internal_error: unavailable(
    (base) => `the server ${base} failed (internal_error); try again, or check its log if you run it`,
  ),
  human_verification_failed: failed(verificationMessage),
  forbidden_origin: failed(
    (base) =>
      `the server does not accept questions from ${new URL(base).origin} (forbidden_origin); use its public address ` +
      'with --url, or ask its operator to add this origin to DASH_ALLOWED_ORIGINS',
  ),
  invalid_session: failed((base, { members: { reason } }) => {
    const why = reason === undefined ? '' : `, ${reason}`
    return (
      `the server ${base} rejected its own new session (invalid_session${why}); your requests reach it from ` +
      'different addresses, or several servers there use different secrets'
    )
  }),
  payload_too_large: rejected,
  invalid_json: rejected,
  no_user_message: rejected,
  not_found: failed(
    (base) => `there is no chat at ${base} (not_found); give the address of the server without a path`,
  ),
}

/**
 * Describes a refusal of the chat API.
 *
 * @param base base URL of the server, which a browser can open too
 */
export function refusalMessage(
  refusal: Refusal<Code>,
  base: string,
  now: Instant,
  context: MessageSetting,
): RefusalMessage {
  const { code, members } = refusal
  if (code === 'rate_limited')
    return { text: limitMessage(members, now, context), exitCode: EXIT.unavailable }
  const { text, exitCode } = REFUSED[code]
  return { text: text(base, refusal), exitCode }
}

/** Message about the human verification, which a terminal cannot show. */
export function verificationMessage(base: string): string {
  return `${base} requires human verification, which a terminal cannot show; open ${base}/ in a browser and chat there`
}

/** Names the limit and the time when it ends. */
function limitMessage(members: Refusal['members'], now: Instant, { isTalk, quota }: MessageSetting): string {
  const { scope = 'rate_limited', retryAfterSeconds: seconds } = members
  const limit = limitOf(scope, Number(seconds ?? Infinity), quota && quota.remaining)
  const when = typeof seconds === 'number' ? `; try again at ${clockTime(now + seconds * 1000, now)}` : ''
  return `${LIMIT_TEXTS[limit]} (${scope})${when}${isTalk && limit === 'session' ? '; /new starts another session' : ''}`
}

/** Returns the local time of day, with the date unless it is today: `14:05:09`, `22 Nov 01:00:00`. */
export function clockTime(at: Instant, now: Instant): string {
  const date = new Date(at)
  const time = date.toTimeString().slice(0, 8)
  const [, month, day] = date.toDateString().split(' ')
  return date.toDateString() === new Date(now).toDateString() ? time : `${Number(day)} ${month} ${time}`
}

/** The provider of a server's model, and the beginning of the names of its variables. */
export interface Engine {
  url: string
  prefix: 'OPENAI' | 'OPENROUTER'
}

/** Statuses of requests that a provider refuses whenever they are sent. */
const IS_REFUSED = /^http_4(?!02|08|29)/

/**
 * Describes an error event of the stream.
 *
 * @param setting.engine null if the server is another installation's
 */
export function failureMessage(
  { error, code }: { error: string; code: string },
  { isTalk, engine }: Pick<MessageSetting, 'isTalk'> & { engine: Engine | null },
): string {
  const again = isTalk ? '/retry to ask again' : 'ask again'
  const reason = `(${error}, ${inOneLine(code)})`
  if (engine !== null && code === 'connect')
    return `the model at ${engine.url} cannot be reached ${reason}; start it or correct ${engine.prefix}_BASE_URL, then ${again}`
  if (engine !== null && IS_REFUSED.test(code))
    return `the model at ${engine.url} refuses the request ${reason}; correct ${engine.prefix}_BASE_URL, ${engine.prefix}_API_KEY or DASH_CHAT_MODEL, then ${again}`
  return `${failureText({ error, code })} ${reason}; ${again}`
}

/** Returns the labels of a degraded or cached answer. @param ranTools whether any tool ran for it */
export function labelsOf(
  { degraded, cached }: Extract<LastEvent, { event: 'done' }>['data'],
  ranTools: boolean,
): string[] {
  return [
    ...(degraded ? [`(degraded answer: ${degradedText(ranTools)})`] : []),
    ...(cached ? ['(cached answer)'] : []),
  ]
}
