import { formatInstant } from '../time.ts'
import { rateLimitKind } from './answer-class.ts'
import type { AnswerClass, Verdict } from './answer-class.ts'
import type { AttemptEnd } from './evaluation-ledger.ts'
import { publishedText } from './text.ts'

/** What is published of a question that got no answer, as the details of its tasks (docs/free-models.md). */
export function failureDetails(verdict: Verdict): Readonly<Record<string, unknown>> {
  const { status, providerName, limit, remaining, resetAt } = verdict
  return {
    responseStatus: status ?? (verdict.class === 'timeout' ? 'timeout' : 'failed'),
    rateLimitKind: rateLimitKind(verdict.class),
    providerName: providerName === null ? null : publishedText(providerName, 100),
    rateLimitLimit: limit,
    rateLimitRemaining: remaining,
    rateLimitResetAt: resetAt === null ? null : formatInstant(resetAt),
    responsePreview: publishedText(verdict.preview, 200),
  }
}

/** The same of a question whose last attempt alone is known. */
export function rememberedDetails(
  end: AttemptEnd & { class: AnswerClass },
): Readonly<Record<string, unknown>> {
  return {
    responseStatus: end.status ?? (end.class === 'timeout' ? 'timeout' : 'failed'),
    rateLimitKind: rateLimitKind(end.class),
    providerName: null,
    rateLimitLimit: null,
    rateLimitRemaining: null,
    rateLimitResetAt: null,
    responsePreview: '',
  }
}
