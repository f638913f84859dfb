import type { Instant, Day } from '../time.ts'

/** Limits of a chat turn (docs/agent-tools.md). Lengths are in code points, sizes in bytes of UTF-8. */

/** Largest body of a chat request. */
export const BODY_MAX_BYTES = 32_768

/** Number of latest messages that are read, and the longest message. */
export const MESSAGES_READ = 12
export const MESSAGE_MAX_LENGTH = 2_000

export const PRE_PROMPT_MAX_LENGTH = 500
export const INTERESTS_MAX = 10
export const INTEREST_MAX_LENGTH = 40

/** Model calls in one turn; the last one has no tools. */
export const MAX_ROUNDS = 4

/** Tool calls in one turn. */
export const MAX_CALLS = 8

/** Timeout of one tool call. */
export const CALL_TIMEOUT_MS = 3_000

/** Largest result of one tool call, and of all tool calls of a turn together. */
export const RESULT_MAX_BYTES = 8_192
export const TURN_RESULTS_MAX_BYTES = 32_768

/** Largest data block at the start of a turn, including its marker lines. */
export const GROUNDING_MAX_BYTES = 8_192

/** Longest arguments of one tool call, in UTF-16 code units. */
export const ARGUMENTS_MAX_LENGTH = 4_096

/** Money in millionths of a US dollar: an integer, so that sums are exact. */
export type MicroUsd = number

/** The limits that an admission checks (docs/decisions/0028-chat-turn-admission.md). */
export interface ChatLimits {
  messagesPerSession: number
  messagesPerDay: number
  burstPerMinute: number
  minGapMs: number
  /** Turns that one server may have open at once. */
  maxOpenTurns: number
  budgetPerDay: MicroUsd
  /** Share of a day's budget, in millionths, that one address may hold and spend; a /48 has twice as much. */
  budgetShare: number
}

/** Highest cost of the first model call of a turn. */
export interface CallCost {
  /** Includes the last call, without tools and results, in case the turn gets no further reservation. */
  withTools: MicroUsd
  withoutTools: MicroUsd
}

export interface TurnClaim {
  session: string
  sessionEndsAt: Instant
  /**
   * Salted hash of the caller's address under the salt of `day`, or `keyCaller` of its key; no other data about the
   * caller is stored.
   */
  address: string
  /** Number of the caller's key, which must not be revoked; null for a session. */
  key: number | null
  /** Salted hash of the /48 of an IPv6 address; null for IPv4. */
  network: string | null
  /** The address under the previous day's salt, set in the first minute of a day: a burst counts across midnight. */
  formerAddress: string | null
  /** The server whose open turns are counted. */
  server: string
  now: Instant
  /** UTC day of `now`: the day that is charged, even when the turn ends later. */
  day: Day
  firstCall: CallCost
  /** The first call of the shortest possible turn, which decides the state of the day's budget. */
  shortestCall: CallCost
  /** Daily requests of a routing service that one address may use; null when they are not counted. */
  requestsPerAddress: number | null
  /** Lifetime of a reservation that is not settled. */
  leaseMs: number
  limits: ChatLimits
}

/** An open turn that needs another model call. */
export interface TurnExtension {
  turn: string
  /** Total reservation of the turn after the extension. */
  upTo: MicroUsd
  /** As in {@link TurnClaim}. */
  requestsPerAddress: number | null
  limits: Pick<ChatLimits, 'budgetPerDay' | 'budgetShare'>
}

export type Admission =
  | {
      admitted: true
      turn: string
      /** Messages left after this turn. */
      remaining: { session: number; day: number }
      /** True when the turn runs without tools: the day's budget is soft, or a call with tools does not fit. */
      degraded: boolean
      /** Reservation for the first model call. */
      reserved: MicroUsd
    }
  | {
      admitted: false
      /** `ip`: a limit of the address, or of the key in its place. */
      scope: 'ip' | 'session' | 'global-budget'
      retryAfterSeconds: number
    }
  /** The key was revoked after it was verified. */
  | { admitted: false; scope: 'key'; retryAfterSeconds: 0 }

/** A complete answer that can be reused. */
export interface CachedAnswer {
  text: string
  storedAt: Instant
}
