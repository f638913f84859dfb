/** What the free-model recommendation asks of the outside; `domain/ports.ts` gives it out, and its promises hold here too. */

import type { Instant } from '../time.ts'

export type { EvaluationLedger } from './evaluation-ledger.ts'
export type { ModelRouter } from './router.ts'

/**
 * The account's requests of a UTC day, which the chat and the evaluation of models share. Each is written down before it
 * is sent, and counts whatever comes of it.
 */
export interface RouterAllowance {
  /**
   * Counts a request of the chat, durably, before it is sent.
   *
   * @param model id of the model
   * @param sentAt decides the day
   * @param limit requests the account has a day
   * @param turn the turn that sends it, and the requests a day of one address, of which a /48 has twice as many; absent: a
   *   request without a share
   * @returns false, with nothing written, when the day's requests of both have reached the limit less
   *   {@link RESERVED_REQUESTS}, or the turn's address or /48 has sent its share
   */
  countChatRequest(
    model: string,
    sentAt: Instant,
    limit: number,
    turn?: { turn: string; perAddress: number },
  ): Promise<boolean>
}

/** Recommendations in the object store, as sealed bytes: every run for good, and the one that is current. */
export interface RecommendationStore {
  /** The bytes of the current recommendation, whatever they are; null only when proved absent. */
  current(): Promise<Uint8Array | null>
  /** The bytes kept of one run; null only when proved absent. */
  run(rankingVersion: string): Promise<Uint8Array | null>
  /** Ranking versions of every kept run, in no order. */
  versions(): Promise<string[]>
  /**
   * Keeps a run and makes it the current recommendation in one atomic step, durable and read back on return. The same
   * run again is a no-op; other bytes under the same version are refused, and the current recommendation stays.
   */
  put(rankingVersion: string, bytes: Uint8Array): Promise<void>
  /** Resolves when the store can be reached. */
  ping(): Promise<void>
}

/** The shortlist that a host serves. */
export interface PublishedShortlist {
  /**
   * The body of its top-models, unparsed but for JSON; null when the host knows no such path.
   *
   * @throws Refusal `source_unavailable` when there is no answer: not reachable, too slow, too large, no JSON
   */
  topModels(signal: AbortSignal): Promise<unknown>
}
