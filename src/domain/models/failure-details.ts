import { formatInstant } from '../time.ts'
import { rateLimitKind } from './answer-class.ts'
import type { Verdict } from './answer-class.ts'
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
