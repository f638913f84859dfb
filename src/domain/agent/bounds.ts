import type { Instant, Day } from '../time.ts'
import { SAVE_KEY_MAX_LENGTH } from '../feed/source.ts'

/** What bounds a turn (docs/agent-tools.md). Lengths are in code points, sizes in bytes of UTF-8. */

/** Longest body of a chat request. */
export const BODY_MAX_BYTES = 32_768

/** How many of the latest messages are read, and how long each may be. */
export const MESSAGES_READ = 12
export const MESSAGE_MAX_LENGTH = 2_000

export const SCOPE_KEY_MAX_LENGTH = SAVE_KEY_MAX_LENGTH

export const PRE_PROMPT_MAX_LENGTH = 500
export const INTERESTS_MAX = 10
export const INTEREST_MAX_LENGTH = 40

/** How often a model is asked in one turn; the last time it is given no tools. */
export const MAX_ROUNDS = 4

/** Tool calls that are run in one turn. */
export const MAX_CALLS = 8

/** Longest that one call may take. */
export const CALL_TIMEOUT_MS = 3_000

/** Largest result of one call, and of all calls of a turn together. */
export const RESULT_MAX_BYTES = 8_192
export const TURN_RESULTS_MAX_BYTES = 32_768

/** Largest data block a turn begins with, its marking included. */
export const GROUNDING_MAX_BYTES = 8_192

/** Longest arguments a model may write to one call, in UTF-16 code units. */
export const ARGUMENTS_MAX_LENGTH = 4_096

/** Money in millionths of a US dollar: an integer, so that sums are exact. */
export type MicroUsd = number

/** What one admission counts against (docs/decisions/0028-chat-turn-admission.md). */
export interface ChatLimits {
  messagesPerSession: number
  messagesPerDay: number
  burstPerMinute: number
  minGapMs: number
  /** Turns of one server that may be open at once. */
  maxOpenTurns: number
  budgetPerDay: MicroUsd
  /** Share of a day's budget, in millionths, that one address may hold and spend; a /48 twice as much. */
  budgetShare: number
}

/** The most that the first model call of a turn can cost. */
export interface CallCost {
  /** And the last call, without tools and results, where there is no room for more. */
  withTools: MicroUsd
  withoutTools: MicroUsd
}

export interface TurnClaim {
  session: string
  sessionEndsAt: Instant
  /** Salted hash of the caller's address under the salt of `day`; nothing else of the caller is ever stored. */
  address: string
  /** Salted hash of the /48 of an IPv6 address; null for IPv4. */
  network: string | null
  /** The address under the salt of the day before, in the first minute of a day: a burst counts across midnight. */
  formerAddress: string | null
  /** Names the server whose open turns are counted. */
  server: string
  now: Instant
  /** UTC day of `now`: the day charged, whenever the turn ends. */
  day: Day
  firstCall: CallCost
  /** The first call of the shortest turn there can be: the bands of the day are measured with it. */
  shortestCall: CallCost
  /** What one address may take of the daily requests of a routing service; null where none are counted. */
  requestsPerAddress: number | null
  /** How long the reservation stands without being settled. */
  leaseMs: number
  limits: ChatLimits
}

/** An open turn that needs another model call. */
export interface TurnExtension {
  turn: string
  /** What the turn is to hold in all. */
  upTo: MicroUsd
  /** As in {@link TurnClaim}. */
  requestsPerAddress: number | null
  limits: Pick<ChatLimits, 'budgetPerDay' | 'budgetShare'>
}

export type Admission =
  | {
      admitted: true
      turn: string
      /** What is left after this turn. */
      remaining: { session: number; day: number }
      /** True when the turn is answered without tools: the day is soft, or a call with tools does not fit. */
      degraded: boolean
      /** For the first model call. */
      reserved: MicroUsd
    }
  | { admitted: false; scope: 'ip' | 'session' | 'global-budget'; retryAfterSeconds: number }

/** A complete answer that may be given again. */
export interface CachedAnswer {
  text: string
  storedAt: Instant
}
