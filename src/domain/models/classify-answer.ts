import { DAY_MS } from '../time.ts'
import type { Instant } from '../time.ts'
import { readAnswerBody } from './answer-body.ts'
import type { ErrorFacts } from './answer-body.ts'
import type { Verdict } from './answer-class.ts'
import { decide, decideEnding } from './answer-rules.ts'
import { retryAtOf, utcMidnightAfter } from './retry-time.ts'
import type { RouterAnswer } from './router.ts'

const NO_ERROR: ErrorFacts = {
  status: null,
  message: '',
  limitSource: null,
  errorType: null,
  availability: null,
  providerName: null,
  fromProvider: false,
  filtered: false,
  retryAfterSeconds: [],
  headers: {},
}

const PREVIEW_CODE_POINTS = 200

/**
 * Tells what an answer means: by status, headers and body, whether the body is JSON, HTML, an event stream or a part
 * of one, and also for an error inside a 200 (docs/model-errors.md). The most specific evidence decides.
 */
export function classifyAnswer(answer: RouterAnswer): Verdict {
  const { error, reply, readable } = readAnswerBody(answer.body)
  const headers = { ...error?.headers, ...answer.headers }
  const reset = instantOfReset(headers['x-ratelimit-reset'], answer.endedAt)
  const status = statusOf(answer, error)
  const limit = countOf(headers['x-ratelimit-limit'])
  const resetInMs = reset === null ? null : reset - answer.endedAt
  const waits = [headers['retry-after'], error?.retryAfterSeconds ?? []] as const
  const retryAt = retryAtOf(...waits, null, answer.endedAt)
  const facts = { answer, error: error ?? NO_ERROR, status: status ?? 0, readable, limit, resetInMs, retryAt }
  const decision = decideEnding(answer, status, reply) ?? decide(facts)
  const resetAt = reset ?? (decision.class === 'account_daily' ? utcMidnightAfter(answer.endedAt) : null)
  return {
    class: decision.class,
    because: decision.because,
    status,
    retryAt: retryAtOf(...waits, resetAt, answer.endedAt),
    limit,
    remaining: countOf(headers['x-ratelimit-remaining']),
    resetAt,
    providerName: facts.error.providerName,
    suspicion: decision.suspicion ?? null,
    reply: decision.class === 'answered' ? reply : null,
    preview: previewOf(answer),
  }
}

/** The status that counts: an error's own inside a 200, else the HTTP status when it is an error's. */
function statusOf(answer: RouterAnswer, error: ErrorFacts | null): number | null {
  if (answer.status === null) return null
  if (answer.status < 300) return error ? (error.status ?? 502) : null
  return answer.status
}

/** Epoch milliseconds, or seconds; null for a time that no limit can have. */
function instantOfReset(text: string | undefined, now: Instant): Instant | null {
  if (text === undefined || !/^\d{10}(\d{3})?$/.test(text.trim())) return null
  const at = Number(text) * (text.trim().length === 10 ? 1000 : 1)
  return at >= now - DAY_MS && at <= now + 2 * DAY_MS ? at : null
}

/** What names the account that asked: the service repeats it in its errors, and previews are published. */
const IDENTIFYING: readonly [RegExp, string][] = [
  [/"user_id"\s*:\s*"[^"]*"?,?/g, ''],
  [/\bBearer\s+[^\s"'<>]+/gi, 'Bearer (key)'],
  [/\bsk-[\w-]{6,}/g, '(key)'],
  [/\b(user|org)_[A-Za-z0-9]{4,}/g, '($1)'],
]

function previewOf({ body, ending, status }: RouterAnswer): string {
  const whole = body.replaceAll(/\s+/g, ' ').trim().toWellFormed()
  const line = IDENTIFYING.reduce((text, [what, stand]) => text.replaceAll(what, stand), whole)
  if (line !== '') return Array.from(line).slice(0, PREVIEW_CODE_POINTS).join('')
  return status === null ? ending : `${status} without a body`
}

function countOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text.trim()) ? Number(text) : null
}
