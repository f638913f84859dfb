import { ChatRefusal } from './chat-service.js'

/** @type {Readonly<Record<string, string>>} */
const REFUSALS = {
  disabled: 'The chat is switched off on this server.',
  misconfigured:
    'The chat is not set up on this server: its operator has to name a secret, a model and its price.',
  forbidden_origin:
    'This server does not take questions from the address this page was opened at; its operator can allow it.',
  human_verification_failed: 'The verification failed. Do it again, then retry.',
  invalid_session: 'The session was not accepted. Retry, or begin a new conversation.',
  payload_too_large: 'The message is too large.',
  invalid_json: 'The server did not understand the message.',
  no_user_message: 'There is nothing to read in the message.',
  not_found: 'This server has no chat.',
  'HTTP 429': 'The server, or one before it, takes no more requests now (HTTP 429).',
  internal_error: 'The server cannot answer now; nothing was asked of the model.',
}

/** A limit that lasts longer is one of the session or the day. */
const SOON_SECONDS = 60

/** @type {Readonly<Record<string, string>>} */
const FAILURES = {
  first_event: 'The model said nothing in time',
  idle: 'The model fell silent',
  total: 'The answer took too long',
  connect: 'The model could not be reached',
  truncated: 'The model broke off',
  invalid_stream: 'The model sent something else than an answer',
  incomplete: 'The model wrote more than it may',
  empty: 'The model said nothing',
}

/** A hundred years; a time further ahead is not shown. */
const LONGEST_SECONDS = 100 * 366 * 86_400

export const CUT_OFF = 'The answer was cut off on the way.'

/** @typedef {{ session: number, day: number }} Remaining messages left */

/**
 * The message for a failed turn.
 *
 * @param {unknown} error
 * @param {number} now
 * @param {Remaining | null} remaining null if the server has not reported it yet
 */
export function problemMessage(error, now, remaining) {
  if (!(error instanceof ChatRefusal)) return 'The server could not be reached, or the connection broke.'
  const { code, scope = '', retryAfterSeconds } = error
  const message =
    code === 'rate_limited'
      ? limitMessage(scope, (retryAfterSeconds ?? Infinity) <= SOON_SECONDS, remaining)
      : (REFUSALS[code] ?? `The server refused: ${code}.`)
  if (retryAfterSeconds === undefined || !(retryAfterSeconds <= LONGEST_SECONDS)) return message
  const time = clockTime(retryAfterSeconds, now)
  return `${message} ${code === 'rate_limited' ? `It opens again at ${time}.` : `Try again at ${time}.`}`
}

/**
 * @param {string} scope
 * @param {boolean} isSoon whether the limit ends soon
 * @param {Remaining | null} remaining
 */
function limitMessage(scope, isSoon, remaining) {
  switch (scope) {
    case 'session':
      return (remaining === null ? isSoon : remaining.session > 0)
        ? 'Too soon after the last message (scope session).'
        : 'All messages of this session are used; begin a new conversation (scope session).'
    case 'ip':
      return isSoon && remaining?.day !== 0
        ? 'Too many messages from your address just now (scope ip).'
        : 'Your address has used up its day (scope ip).'
    case 'global-budget':
      return isSoon
        ? 'Other answers hold the budget or the places of the chat just now (scope global-budget).'
        : 'The budget of the chat is used up for today (scope global-budget).'
    default:
      return 'Too many messages.'
  }
}

/**
 * The message for a stream that ended with an error.
 *
 * @param {{ error: string, code: string }} event
 */
export function failureMessage({ error, code }) {
  return `${FAILURES[code] ?? 'The model failed'} (${error}, ${code}). This turn counted.`
}

/**
 * The visitor's local time after some seconds, with seconds if it is near, and with day and year if they differ.
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
