import { ChatRefusal } from './chat-service.js'

/** @type {Readonly<Record<string, string>>} */
const REFUSALS = {
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

/** A limit that ends later is one of the session or of the day. */
const SOON_SECONDS = 60

/** @type {Readonly<Record<string, string>>} */
const FAILURES = {
  first_event: 'The model did not start in time',
  idle: 'The model stopped responding',
  total: 'The answer took too long',
  connect: 'The model service could not be reached',
  truncated: 'The connection to the model broke',
  invalid_stream: 'The model service sent an invalid response',
  incomplete: 'The model exceeded the output limit',
  empty: 'The model returned nothing',
}

/** A hundred years: of what lies further ahead no time is told. */
const LONGEST_SECONDS = 100 * 366 * 86_400

export const CUT_OFF = 'The connection broke before the answer ended.'

/** @typedef {{ session: number, day: number }} Left messages that are left */

/**
 * The message for a turn that failed.
 *
 * @param {unknown} error
 * @param {number} now
 * @param {Left | null} left null: the server has not said yet
 */
export function troubleOf(error, now, left) {
  if (!(error instanceof ChatRefusal)) return 'The server could not be reached, or the connection broke.'
  const { code, scope = '', retryAfterSeconds } = error
  const what =
    code === 'rate_limited'
      ? limitOf(scope, (retryAfterSeconds ?? Infinity) <= SOON_SECONDS, left)
      : (REFUSALS[code] ?? `The server refused: ${code}.`)
  if (retryAfterSeconds === undefined || !(retryAfterSeconds <= LONGEST_SECONDS)) return what
  const time = clockTime(retryAfterSeconds, now)
  return `${what} Try again at ${time}.`
}

/**
 * @param {string} scope
 * @param {boolean} isSoon whether the limit ends soon
 * @param {Left | null} left
 */
function limitOf(scope, isSoon, left) {
  switch (scope) {
    case 'session':
      return (left === null ? isSoon : left.session > 0)
        ? 'Too soon after the last message (scope session).'
        : 'All messages of this session are used; start a new conversation (scope session).'
    case 'ip':
      return isSoon && left?.day !== 0
        ? 'Too many messages from your address (scope ip).'
        : 'Your address has used all its messages of today (scope ip).'
    case 'global-budget':
      return isSoon
        ? 'The chat is busy: open answers hold the remaining budget or all streams (scope global-budget).'
        : 'The chat budget of today is used up (scope global-budget).'
    default:
      return 'Too many messages.'
  }
}

/**
 * How a stream that ended with an error failed.
 *
 * @param {{ error: string, code: string }} event
 */
export function failureOf({ error, code }) {
  return `${FAILURES[code] ?? 'The model failed'} (${error}, ${code}). This message counted.`
}

/**
 * The time of the visitor's own clock after so many seconds, to the second when it is near, with the day and the year when it is another.
 *
 * @param {number} seconds
 * @param {number} now
 */
function clockTime(seconds, now) {
  const at = new Date(now + seconds * 1000)
  const isToday = at.toDateString() === new Date(now).toDateString()
  /** @type {Intl.DateTimeFormatOptions} */
  const format = {
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(seconds < 120 ? { second: '2-digit' } : {}),
    ...(isToday ? {} : { day: 'numeric', month: 'short' }),
    ...(at.getFullYear() === new Date(now).getFullYear() ? {} : { year: 'numeric' }),
  }
  return new Intl.DateTimeFormat('en-GB', format).format(at)
}
