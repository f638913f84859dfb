import type { FailureCode, Usage } from '../../domain/agent/model-call.ts'

/** What a provider answered in the place of a model, for whoever must tell whose failure it is. Never passed on. */
interface Evidence {
  status: number
  headers: Readonly<Record<string, string>>
  body: string
}

/** A round that failed, as far as it can be told. */
export interface RoundFailure {
  failure: FailureCode
  usage: Usage | null
  /** False where nothing can have been charged: the provider was not reached, or declined the request as it came. */
  dispatched: boolean
  evidence: Evidence | null
}

/** Ends the reading of a round. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  readonly round: RoundFailure

  constructor(failure: FailureCode, told: Partial<Omit<RoundFailure, 'failure'>> = {}, cause?: unknown) {
    super(`${failure.error} ${failure.code}`, { cause })
    this.round = { usage: null, dispatched: true, evidence: null, ...told, failure }
  }
}

/** A failure of the provider's own with one of its codes. */
export function upstreamError(
  code: Extract<FailureCode, { error: 'upstream_error' }>['code'],
  told: Partial<Omit<RoundFailure, 'failure'>> = {},
  cause?: unknown,
): ProviderFailure {
  return new ProviderFailure({ error: 'upstream_error', code }, told, cause)
}
