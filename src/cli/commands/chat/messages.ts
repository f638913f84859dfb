import type { AgentSession, LastEvent, ChatApiRefusal } from '../../../domain/agent/schema.ts'
import { AGENT_ERRORS } from '../../../domain/agent/schema.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Instant } from '../../../domain/time.ts'
import { EXIT } from '../../exit-codes.ts'
import { inOneLine } from '../../terminal.ts'

/** Remaining messages, and the quotas. */
export interface Quota {
  remaining: { session: number; day: number }
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

const CODES: ReadonlySet<string> = new Set<Code>([
  'server_unreachable',
  'server_foreign',
  'answer_cut',
  ...AGENT_ERRORS,
])

/** Returns true for a refusal that {@link refusalMessage} describes. */
export function isChatRefusal(error: unknown): error is Refusal<Code> {
  return error instanceof Refusal && CODES.has(error.code)
}

/** Context in which a message is shown. */
export interface MessageSetting {
  /** True in a conversation, which has slash commands. */
  isTalk: boolean
  /** Quota as the server last reported it; null before that. */
  quota: Quota | null
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
  const { code, detail, members } = refusal
  const unavailable = (text: string): RefusalMessage => ({ text, exitCode: EXIT.unavailable })
  const failed = (text: string): RefusalMessage => ({ text, exitCode: EXIT.failed })
  switch (code) {
    case 'server_unreachable':
    case 'server_foreign':
    case 'answer_cut':
      return unavailable(detail ?? code)
    case 'rate_limited':
      return unavailable(limitMessage(members, now, context))
    case 'disabled':
      return unavailable(`the chat of ${base} is switched off (disabled); only its operator can switch it on`)
    case 'misconfigured':
      return unavailable(
        `the chat of ${base} is not set up (misconfigured); its operator finds the missing setting in the server log`,
      )
    case 'internal_error':
      return unavailable(
        `the server ${base} failed (internal_error); try again, or check its log if you run it`,
      )
    case 'human_verification_failed':
      return failed(verificationMessage(base))
    case 'forbidden_origin':
      return failed(
        `the server does not accept questions from ${new URL(base).origin} (forbidden_origin); use its public address ` +
          'with --url, or ask its operator to add this origin to DASH_ALLOWED_ORIGINS',
      )
    case 'invalid_session': {
      const reason = members['reason'] === undefined ? '' : `, ${members['reason']}`
      return failed(
        `the server ${base} rejected its own new session (invalid_session${reason}); your requests reach it from ` +
          'different addresses, or several servers there use different secrets',
      )
    }
    case 'payload_too_large':
    case 'invalid_json':
    case 'no_user_message':
    case 'not_found':
      return failed(`the server ${base} rejected the question (${code}); it may run another version`)
  }
}

/** Message about the human verification, which a terminal cannot show. */
export function verificationMessage(base: string): string {
  return `${base} requires human verification, which a terminal cannot show; open ${base}/ in a browser and chat there`
}

/** Codes of refusals that the same request may not meet again. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set<Code>([
  'server_unreachable',
  'server_foreign',
  'answer_cut',
  'internal_error',
  'invalid_session',
])

/** Returns true if asking the same question again soon can succeed: no quota is used up and nothing is switched off. */
export function canHelpAgain({ code, members }: Refusal<Code>, quota: Quota | null): boolean {
  if (code !== 'rate_limited') return TRANSIENT_CODES.has(code)
  const { scope, retryAfterSeconds } = members
  if (quota?.remaining.day === 0) return false
  if (scope === 'session' && quota !== null) return quota.remaining.session > 0
  return typeof retryAfterSeconds !== 'number' || retryAfterSeconds <= SOON_SECONDS
}

/** Limits that end later are those of the session or of the day. */
const SOON_SECONDS = 60

/** Names the limit and the time when it ends. */
function limitMessage(
  { scope, retryAfterSeconds }: Refusal['members'],
  now: Instant,
  { isTalk, quota }: MessageSetting,
): string {
  const seconds = typeof retryAfterSeconds === 'number' ? retryAfterSeconds : null
  const isSoon = seconds !== null && seconds <= SOON_SECONDS
  const isUsed = scope === 'session' && (quota === null ? !isSoon : quota.remaining.session === 0)
  const what = isUsed ? usedSession(quota) : limitOf(String(scope), isSoon && quota?.remaining.day !== 0)
  const when = seconds === null ? '' : `; try again at ${clockTime(now + seconds * 1000, now)}`
  return `${what} (${String(scope ?? 'rate_limited')})${when}${isTalk && isUsed ? '; /new starts another session' : ''}`
}

function usedSession(quota: Quota | null): string {
  return `all ${quota ? `${quota.quotas.messagesPerSession} ` : ''}messages of this session are used`
}

function limitOf(scope: string, isSoon: boolean): string {
  switch (scope) {
    case 'session':
      return 'too soon after the last message'
    case 'ip':
      return isSoon
        ? 'too many messages from this address'
        : 'this address has used all its messages of today'
    case 'global-budget':
      return isSoon
        ? 'the chat is busy: open answers hold the remaining budget or all streams'
        : 'the chat budget of today is used up'
    default:
      return 'a limit was reached'
  }
}

/** Returns the local time of day, with the date unless it is today: `14:05:09`, `22 Nov 01:00:00`. */
export function clockTime(at: Instant, now: Instant): string {
  const date = new Date(at)
  const pad = (value: number): string => String(value).padStart(2, '0')
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`
  if (date.toDateString() === new Date(now).toDateString()) return time
  return `${date.getDate()} ${MONTHS[date.getMonth()]} ${time}`
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Describes an error event of the stream. */
export function failureMessage(
  { error, code }: { error: string; code: string },
  { isTalk }: Pick<MessageSetting, 'isTalk'>,
): string {
  const what = error === 'timeout' ? 'the model took too long' : 'the model failed'
  return `${what} (${error}, ${inOneLine(code)}); ${isTalk ? '/retry to ask again' : 'ask again'}`
}

/** Returns the labels of a degraded or cached answer. */
export function labelsOf({ degraded, cached }: Extract<LastEvent, { event: 'done' }>['data']): string[] {
  return [
    ...(degraded ? ['(degraded answer: the budget is nearly used up, so no tools were used)'] : []),
    ...(cached ? ['(cached answer)'] : []),
  ]
}
