import type { H3Event } from 'h3'
import { BODY_MAX_BYTES } from '../../domain/agent/bounds.ts'
import type { Admission, TurnClaim } from '../../domain/agent/bounds.ts'
import {
  BURST_WINDOW_MS,
  firstCallCost,
  requestShareOf,
  shortestCallCost,
} from '../../domain/agent/budget.ts'
import { keyCaller, SESSION_ID_BYTES } from '../../domain/agent/credentials.ts'
import type { ChatKey, SessionPayload, TokenProblem } from '../../domain/agent/credentials.ts'
import { parseChatRequest } from '../../domain/agent/chat-request.ts'
import type { ChatRequest } from '../../domain/agent/chat-request.ts'
import { addressHash, isSameCaller, networkOf } from '../../domain/address.ts'
import type { AgentRefusal } from '../../domain/agent/schema.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { Callers } from '../callers.ts'
import { readBody } from '../route.ts'
import { fromQuotaStore, requireRunnable } from './service.ts'
import type { AgentPorts } from './service.ts'

/** A chat request that passed every check except the quotas. */
export interface CheckedRequest {
  request: ChatRequest
  /** Canonical address of the caller, or `keyCaller` of its key; streams and searches are counted by it. */
  address: string
  /** The session or the key whose quotas count. */
  caller: { session: SessionPayload } | { key: ChatKey }
  provider: NonNullable<AgentPorts['provider']>
}

/**
 * Runs every check except the quotas.
 *
 * @throws Refusal for the first check that fails, in the documented order; nothing
 * is counted then
 */
export async function checkRequest(
  ports: AgentPorts,
  callers: Callers,
  event: H3Event,
): Promise<CheckedRequest> {
  const { signer, provider } = await requireRunnable(ports)
  callers.requireOrigin(event)
  const address = callers.address(event)
  const verified = signer.verify(event.req.headers.get('x-agent-session'), ports.clock())
  if (!verified.ok) throw invalidSession(verified.reason)
  const session = verified.payload
  const salt = await fromQuotaStore(ports.ledger.salt(session.day))
  if (!isSameCaller(session.ip, salt, address)) throw invalidSession('ip_mismatch')
  const body = await readBody(event, BODY_MAX_BYTES, {
    tooLarge: () => new Refusal<AgentRefusal>('payload_too_large'),
    malformed: () => new Refusal<AgentRefusal>('invalid_json'),
  })
  const parsed = parseChatRequest(body)
  if (!parsed.ok) throw new Refusal<AgentRefusal>(parsed.code)
  const request = ports.settings.itemChat ? parsed.request : { ...parsed.request, itemKey: null }
  return { request, address, caller: { session }, provider }
}

function invalidSession(reason: TokenProblem): Refusal<AgentRefusal> {
  return new Refusal('invalid_session', undefined, { members: { reason } })
}

/** A counted turn whose first model call is reserved. */
export interface AdmittedTurn extends Omit<CheckedRequest, 'caller'> {
  admission: Admission & { admitted: true }
  /** Daily requests of a routing service that one address may use; null if the service has no daily limit. */
  requestsPerAddress: number | null
}

/** Time that a reservation outlives its turn, so that the turn can still be settled. */
const LEASE_MARGIN_MS = 30_000

/**
 * Counts a turn and reserves its first model call, in one transaction.
 *
 * @throws Refusal `rate_limited` or `quota_unavailable`, and `invalid_api_key` if the key of the caller was revoked;
 *   nothing is counted then
 */
export async function admitTurn(
  ports: AgentPorts,
  { caller, request, address, provider }: CheckedRequest,
): Promise<AdmittedTurn> {
  const { ledger, clock, settings, server, meter } = ports
  const { limits, maxOutputTokens, turnMs } = settings
  const perDay = await provider.model.requestsPerDay?.()
  const requestsPerAddress = perDay === undefined ? null : requestShareOf(perDay, limits.budgetShare)
  const bounds = { maxOutputTokens, prices: provider.prices }
  const now = clock()
  const claimant = await fromQuotaStore(claimantOf(ports, caller, address, now))
  const claim: TurnClaim = {
    ...claimant,
    server,
    now,
    day: dayOf(now),
    firstCall: firstCallCost(request, bounds),
    shortestCall: shortestCallCost(bounds),
    requestsPerAddress,
    leaseMs: turnMs + LEASE_MARGIN_MS,
  }
  const admission = await fromQuotaStore(ledger.admit(claim))
  if (!admission.admitted)
    throw admission.scope === 'key'
      ? new Refusal<KeyRefusal>('invalid_api_key')
      : rateLimited(ports, admission)
  meter.recordAdmission(admission)
  return { admission, request, address, provider, requestsPerAddress }
}

/** A key that is missing, unknown or revoked. */
export type KeyRefusal = 'invalid_api_key'

/** Makes the refusal of a limit, and counts it. */
export function rateLimited(
  { meter }: AgentPorts,
  admission: Admission & { admitted: false },
): Refusal<AgentRefusal> {
  meter.recordAdmission(admission)
  const { scope, retryAfterSeconds } = admission
  return new Refusal('rate_limited', undefined, { members: { scope, retryAfterSeconds } })
}

type Claimant = Pick<
  TurnClaim,
  'session' | 'sessionEndsAt' | 'key' | 'address' | 'network' | 'formerAddress' | 'limits'
>

/**
 * Identifies a caller in a claim, with its limits. A key stands in place of the address, with quotas of its own; each of
 * its turns is a session, so that only the key limits them.
 */
async function claimantOf(
  ports: AgentPorts,
  caller: CheckedRequest['caller'],
  address: string,
  now: Instant,
): Promise<Claimant> {
  const { limits } = ports.settings
  if ('session' in caller) {
    const { sid, exp } = caller.session
    const hashed = await hashedCaller(ports, address, now)
    return { ...hashed, session: sid, sessionEndsAt: exp * 1000, key: null, limits }
  }
  const { id, perDay, perMinute } = caller.key
  const session = Buffer.from(ports.randomBytes(SESSION_ID_BYTES)).toString('hex')
  const quotas = { messagesPerSession: 1, minGapMs: 0, messagesPerDay: perDay, burstPerMinute: perMinute }
  return {
    session,
    sessionEndsAt: now,
    key: id,
    address: keyCaller(id),
    network: null,
    formerAddress: null,
    limits: { ...limits, ...quotas },
  }
}

/** Identifies a caller to the stores by hashes of its address under the salt of the day. */
async function hashedCaller(
  { ledger }: AgentPorts,
  address: string,
  now: Instant,
): Promise<Pick<TurnClaim, 'address' | 'network' | 'formerAddress'>> {
  const day = dayOf(now)
  const salt = await ledger.makeSalt(day)
  // A burst in the first minute of a day may have started under the previous day's salt.
  const formerSalt = now - startOfDay(day) < BURST_WINDOW_MS ? await ledger.salt(addDays(day, -1)) : null
  const network = networkOf(address)
  return {
    address: addressHash(salt, address),
    network: network === address ? null : addressHash(salt, network),
    formerAddress: formerSalt && addressHash(formerSalt, address),
  }
}
