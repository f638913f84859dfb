import type { ModelCall, ModelEvent } from './model-call.ts'
import type { Day, Instant } from '../time.ts'
import type { MicroUsd } from './money.ts'

/** What the chat agent asks of the outside; `domain/ports.ts` gives it out, and its promises hold here too. */

/** What one admission counts against (decisions, part 6). */
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

/** A turn that asks to be admitted. */
export interface TurnClaim {
  /** Session id of the token, not the token. */
  session: string
  /** When the token of that session ends. */
  sessionEndsAt: Instant
  /** Salted hash of the caller's address under the salt of `day`; nothing else of the caller is ever stored. */
  address: string
  /** Salted hash of the /48 of an IPv6 address; null for IPv4. */
  network: string | null
  /**
   * The address under the salt of the day before, needed in the first minute of a day alone, so that a burst counts across
   * midnight; null when that salt is not known.
   */
  formerAddress: string | null
  /** Names the server whose open turns are counted. */
  server: string
  now: Instant
  /** UTC day of `now`: the day charged, whenever the turn ends. */
  day: Day
  /** The turn's first model call. */
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
  /** What the turn is to hold in all: the cost of its earlier calls and the most that those it can still need cost. */
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

/** Quotas, budget and salts of the chat, shared by all servers on one state database. */
export interface ChatLedger {
  /** The random salt of a UTC day, made by whoever asks first; salts of days before `keepFrom` are deleted. */
  makeSalt(day: Day, keepFrom: Day): Promise<Uint8Array>
  /** The salt of a day; null when it was never made or is deleted. */
  salt(day: Day): Promise<Uint8Array | null>
  /** One transaction: everything is counted and reserved, or nothing is. */
  admit(claim: TurnClaim): Promise<Admission>
  /**
   * Reserves the next model call of a turn, in one transaction; a refused turn keeps what it has reserved.
   *
   * @returns false when budget or share have no room, or when the turn is settled
   */
  extend(extension: TurnExtension): Promise<boolean>
  /** Charges a turn what it cost, once, to the day it was admitted on; false when it was settled before. */
  settle(turn: string, cost: MicroUsd, at: Instant): Promise<boolean>
  /**
   * Settles turns whose lease has ended at what they reserved; forgets turns, salts and tries of callers of the days
   * before `keepFrom`; and makes everything written before durable. A server does so at its start and every few seconds.
   *
   * @returns how many turns were settled
   */
  sweep(now: Instant, keepFrom: Day): Promise<number>
  /** What a day's budget has spent and holds reserved. */
  spending(day: Day): Promise<{ settled: MicroUsd; reserved: MicroUsd }>
  /** Counts a try of an address to prove that it is human; false when it had `limit` within the last minute. */
  countVerification(address: string, now: Instant, limit: number): Promise<boolean>
  /** Resolves when a turn could be written now. */
  ping(): Promise<void>
}

/** A complete answer that may be given again. */
export interface CachedAnswer {
  text: string
  storedAt: Instant
}

/** Answers for 24 hours, bounded in bytes. A cache that fails is a fault of the turn's, never a wrong answer. */
export interface AnswerCache {
  /** @param key digest of everything that shaped the answer */
  get(key: string, now: Instant): Promise<CachedAnswer | null>
  put(key: string, answer: CachedAnswer): Promise<void>
}

/** The human challenge. */
export interface HumanVerifier {
  /**
   * True only when the service itself says so: a timeout, an error, another host or anything unreadable is false.
   *
   * @param hostname host of the page the challenge was solved on
   */
  isHuman(token: string, hostname: string, signal: AbortSignal): Promise<boolean>
}

/** A model behind a provider. */
export interface ChatModel {
  /** Identifier of the model in use now; empty when there is none. */
  name(): Promise<string>
  /** Requests a day of the account behind the model; absent where they are not counted. */
  requestsPerDay?(): Promise<number>
  /** @param turn id of the turn that asks, whose address has a share of the requests of the day */
  ask(call: ModelCall, signal: AbortSignal, turn?: string): AsyncIterable<ModelEvent>
  close(): Promise<void>
}
