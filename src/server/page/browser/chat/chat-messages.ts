import { LIMIT_TEXTS, limitOf } from '../../../../domain/agent/conversation.ts'
import type { Remaining } from '../../../../domain/agent/conversation.ts'
import { ChatRefusal } from './chat-service.ts'

const REFUSALS: Readonly<Record<string, string>> = {
  disabled: 'The chat of this server is switched off.',
  misconfigured:
    'The chat of this server is not set up: its operator must set a secret, a model and a price.',
  forbidden_origin:
    'This server does not accept questions from the address of this page; its operator can allow it.',
  human_verification_failed: 'The verification failed. Verify again, then retry.',
  invalid_session: 'The server rejected the session. Retry, or start a new conversation.',
  payload_too_large: 'The message is too large.',
  invalid_json: 'The server did not understand the message.',
  no_user_message: 'The message is empty.',
  not_found: 'This server has no chat.',
  'HTTP 429': 'The server or a proxy refused the request: too many requests (HTTP 429).',
  internal_error: 'The server cannot answer now; no model was used.',
}

const FAILURES: Readonly<Record<string, string>> = {
  first_event: 'The model did not start in time',
  idle: 'The model stopped responding',
  total: 'The answer took too long',
  connect: 'The model service could not be reached',
  truncated: 'The connection to the model broke',
  invalid_stream: 'The model service sent an invalid response',
  incomplete: 'The model exceeded the output limit',
  empty: 'The model returned nothing',
}

/** A hundred years; a time further ahead is not shown. */
const LONGEST_SECONDS = 100 * 366 * 86_400

export const CUT_OFF = 'The connection broke before the answer ended.'

/**
 * The message for a failed turn.
 *
 * @param remaining null if the server has not reported it yet
 */
export function problemMessage(error: unknown, now: number, remaining: Remaining | null) {
  if (!(error instanceof ChatRefusal)) return 'The server could not be reached, or the connection broke.'
  const { code, scope = '', retryAfterSeconds } = error
  const message =
    code === 'rate_limited'
      ? limitMessage(scope, retryAfterSeconds ?? Infinity, remaining)
      : (REFUSALS[code] ?? `The server refused: ${code}.`)
  if (retryAfterSeconds === undefined || !(retryAfterSeconds <= LONGEST_SECONDS)) return message
  const time = clockTime(retryAfterSeconds, now)
  return `${message} Try again at ${time}.`
}

function limitMessage(scope: string, seconds: number, remaining: Remaining | null) {
  const limit = limitOf(scope, seconds, remaining)
  const text = LIMIT_TEXTS[limit].replace(/^./, (first) => first.toUpperCase())
  const advice = limit === 'session' ? '; start a new conversation' : ''
  return `${text}${advice}${scope === '' ? '' : ` (scope ${scope})`}.`
}

/** The message for a stream that ended with an error. */
export function failureMessage({ error, code }: { error: string; code: string }) {
  return `${FAILURES[code] ?? 'The model failed'} (${error}, ${code}). This message counted.`
}

/** The visitor's local time after some seconds, with seconds if it is near, and with day and year if they differ. */
function clockTime(seconds: number, now: number) {
  const at = new Date(now + seconds * 1000)
  const isToday = at.toDateString() === new Date(now).toDateString()
  const format: Intl.DateTimeFormatOptions = {
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(seconds < 120 ? { second: '2-digit' } : {}),
    ...(isToday ? {} : { day: 'numeric', month: 'short' }),
    ...(at.getFullYear() === new Date(now).getFullYear() ? {} : { year: 'numeric' }),
  }
  return new Intl.DateTimeFormat('en-GB', format).format(at)
}
