import type { AgentSession, LastEvent, ChatApiRefusal } from '../../../domain/agent/schema.ts'
import { AGENT_ERRORS } from '../../../domain/agent/schema.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Instant } from '../../../domain/time.ts'
import { EXIT } from '../../exit-codes.ts'
import { inOneLine } from '../../terminal.ts'

/** What is left of the quotas, and of how much. */
export interface Quota {
  remaining: { session: number; day: number }
  quotas: AgentSession['quotas']
}

/** `18/20 session, 47/60 today`: what is left, of how much. */
export function quotaMessage({ remaining, quotas }: Quota): string {
  return `${remaining.session}/${quotas.messagesPerSession} session, ${remaining.day}/${quotas.messagesPerDay} today`
}

/** What a person is told of a turn that was not answered, and the exit code of a command that asked nothing else. */
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

/** True for what {@link refusalMessage} has words for. */
export function isChatRefusal(error: unknown): error is Refusal<Code> {
  return error instanceof Refusal && CODES.has(error.code)
}

/** Where words are read. */
export interface Setting {
  /** In a talk there are commands; elsewhere the question is sent again. */
  isTalk: boolean
  /** What the server last said is left; null when it has not. */
  quota: Quota | null
}

/** @param base address of the server, as it is opened in a browser too */
export function refusalMessage(
  refusal: Refusal<Code>,
  base: string,
  now: Instant,
  setting: Setting,
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
      return unavailable(limitMessage(members, now, setting))
    case 'disabled':
      return unavailable(`the chat of ${base} is switched off; its operator can switch it on`)
    case 'misconfigured':
      return unavailable(
        `the chat of ${base} has no model to ask, or lacks a setting (misconfigured); its operator finds it in the log`,
      )
    case 'internal_error':
      return unavailable(
        `the server ${base} failed (internal_error); try again, or look at its log if it is yours`,
      )
    case 'human_verification_failed':
      return failed(verificationMessage(base))
    case 'forbidden_origin':
      return failed(
        `the server does not take questions from ${new URL(base).origin} (forbidden_origin); give its own address ` +
          'with --url, or have its operator add that one to DASH_ALLOWED_ORIGINS',
      )
    case 'invalid_session': {
      const reason = members['reason'] === undefined ? '' : `, ${members['reason']}`
      return failed(
        `the server ${base} does not accept the session it has just given (invalid_session${reason}); several ` +
          'addresses on the way to it, or servers with different secrets, do that',
      )
    }
    case 'payload_too_large':
    case 'invalid_json':
    case 'no_user_message':
    case 'not_found':
      return failed(`the server ${base} declined the question (${code}); it may be of another version`)
  }
}

/** A terminal cannot show the challenge. */
export function verificationMessage(base: string): string {
  return `${base} asks for proof that a human is asking, which a terminal cannot give; open ${base}/ in a browser and chat there`
}

/** Refusals that the same request may not meet again. */
const PASSING: ReadonlySet<string> = new Set<Code>([
  'server_unreachable',
  'server_foreign',
  'answer_cut',
  'internal_error',
  'invalid_session',
])

/** True where the same question may be answered when it is asked again soon: nothing is used up or switched off. */
export function canHelpAgain({ code, members }: Refusal<Code>, quota: Quota | null): boolean {
  if (code !== 'rate_limited') return PASSING.has(code)
  const { scope, retryAfterSeconds } = members
  if (quota?.remaining.day === 0) return false
  if (scope === 'session' && quota !== null) return quota.remaining.session > 0
  return typeof retryAfterSeconds !== 'number' || retryAfterSeconds <= SOON_SECONDS
}

/** A limit that ends later is one of the session or of the day. */
const SOON_SECONDS = 60

/** Which limit it is, and by the clock when it ends. */
function limitMessage(
  { scope, retryAfterSeconds }: Refusal['members'],
  now: Instant,
  { isTalk, quota }: Setting,
): string {
  const seconds = typeof retryAfterSeconds === 'number' ? retryAfterSeconds : null
  const isSoon = seconds !== null && seconds <= SOON_SECONDS
  const isUsed = scope === 'session' && (quota === null ? !isSoon : quota.remaining.session === 0)
  const what = isUsed ? usedSession(quota) : limitOf(String(scope), isSoon && quota?.remaining.day !== 0)
  const when = seconds === null ? '' : `; it opens again at ${clockTime(now + seconds * 1000, now)}`
  return `${what} (${String(scope ?? 'rate_limited')})${when}${isTalk && isUsed ? '; /new begins another session' : ''}`
}

function usedSession(quota: Quota | null): string {
  return `all ${quota ? `${quota.quotas.messagesPerSession} ` : ''}messages of this session are used`
}

function limitOf(scope: string, isSoon: boolean): string {
  switch (scope) {
    case 'session':
      return 'too soon after the last message'
    case 'ip':
      return isSoon ? 'too many messages from this address just now' : 'this address has used up its day'
    case 'global-budget':
      return isSoon
        ? 'other answers hold the budget or the places of the chat just now'
        : 'the budget of the chat is used up for today'
    default:
      return 'a limit is reached'
  }
}

/** The time of day where this runs, with its day when that is not today: `14:05:09`, `22 Nov 01:00:00`. */
export function clockTime(at: Instant, now: Instant): string {
  const date = new Date(at)
  const pad = (value: number): string => String(value).padStart(2, '0')
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`
  if (date.toDateString() === new Date(now).toDateString()) return time
  return `${date.getDate()} ${MONTHS[date.getMonth()]} ${time}`
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** A failure that the stream itself told. */
export function failureMessage(
  { error, code }: { error: string; code: string },
  { isTalk }: Pick<Setting, 'isTalk'>,
): string {
  const what = error === 'timeout' ? 'the model took too long' : 'the model failed'
  return `${what} (${error}, ${inOneLine(code)}); ${isTalk ? '/retry asks again' : 'ask again'}`
}

/** Labels of an answer that is not quite an ordinary one. */
export function labelsOf({ degraded, cached }: Extract<LastEvent, { event: 'done' }>['data']): string[] {
  return [
    ...(degraded
      ? ['degraded: the budget is nearly used up, so it was answered without looking anything up']
      : []),
    ...(cached ? ['cached: given before to the same question'] : []),
  ]
}
