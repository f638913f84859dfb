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
  internal_error: 'The server cannot answer now; nothing was asked of the model.',
}

/** @type {Readonly<Record<string, string>>} */
const SCOPES = {
  ip: 'Too many messages from your address (scope ip).',
  session: 'Too many messages in this session, or too soon after the last one (scope session).',
  'global-budget':
    'The budget of the chat is spent, or does not hold another answer now (scope global-budget).',
}

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

export const CUT_OFF = 'The answer was cut off on the way.'

/**
 * What went wrong with a turn, in words.
 *
 * @param {unknown} error
 * @param {number} now
 */
export function troubleOf(error, now) {
  if (!(error instanceof ChatRefusal)) return 'The server could not be reached, or the connection broke.'
  if (error.code !== 'rate_limited') return REFUSALS[error.code] ?? `The server refused: ${error.code}.`
  const { scope = '', retryAfterSeconds } = error
  const what = SCOPES[scope] ?? 'Too many messages.'
  return retryAfterSeconds === undefined
    ? what
    : `${what} It opens again at ${clockTime(retryAfterSeconds, now)}.`
}

/**
 * How a stream that ended with an error failed.
 *
 * @param {{ error: string, code: string }} event
 */
export function failureOf({ error, code }) {
  return `${FAILURES[code] ?? 'The model failed'} (${error}, ${code}). This turn counted.`
}

/**
 * The time of the visitor's own clock after so many seconds, to the second when it is near, with the day when it is another.
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
  }
  return new Intl.DateTimeFormat('en-GB', format).format(at)
}
