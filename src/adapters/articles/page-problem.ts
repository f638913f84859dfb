import type { SkipReason } from '../../domain/feed/article-plan.ts'
import type { Instant } from '../../domain/time.ts'
import { networkReason } from '../../domain/network-reason.ts'

/** Why a page gives no text; becomes the reading of its item. */
export class PageProblem extends Error {
  override readonly name = 'PageProblem'
  /** null when something failed rather than was declined. */
  readonly why: SkipReason | null
  /** When its host wants to be asked again. */
  readonly notBefore: Instant | null

  constructor(
    why: SkipReason | null,
    message: string,
    { cause, notBefore = null }: { cause?: unknown; notBefore?: Instant | null } = {},
  ) {
    super(message, { cause })
    this.why = why
    this.notBefore = notBefore
  }
}

/** The problem an error is or was caused by, else the error itself as a failure. */
export function asPageProblem(error: unknown, url: string): PageProblem {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof PageProblem) return cause
  }
  return new PageProblem(null, `${url}: ${networkReason(error)}`, { cause: error })
}
