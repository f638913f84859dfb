import type { H3Event } from 'h3'
import { BODY_MAX_BYTES } from '../../domain/agent/bounds.ts'
import type { Admission, TurnClaim } from '../../domain/agent/bounds.ts'
import {
  BURST_WINDOW_MS,
  firstCallCost,
  firstDayOfKeptCallers,
  requestShareOf,
  shortestCallCost,
} from '../../domain/agent/budget.ts'
import { parseChatRequest } from '../../domain/agent/chat-request.ts'
import type { ChatRequest } from '../../domain/agent/chat-request.ts'
import { addressHash, isSameCaller, networkOf } from '../../domain/client-address.ts'
import type { AgentRefusal } from '../../domain/agent/schema.ts'
import type { SessionPayload, TokenProblem } from '../../domain/agent/token.ts'
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
  /** Canonical address of the caller. */
  address: string
  session: SessionPayload
  provider: NonNullable<AgentPorts['provider']>
}

/**
 * Runs every check except the quotas. @throws Refusal for the first check that fails, in the documented order; nothing
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
  return { request, address, session, provider }
}

function invalidSession(reason: TokenProblem): Refusal<AgentRefusal> {
  return new Refusal('invalid_session', undefined, { members: { reason } })
}

/** A counted turn whose first model call is reserved. */
export interface AdmittedTurn extends Omit<CheckedRequest, 'session'> {
  admission: Admission & { admitted: true }
  /** Daily requests of a routing service that one address may use; null if the service has no daily limit. */
  requestsPerAddress: number | null
}

/** Time that a reservation outlives its turn, so that the turn can still be settled. */
const LEASE_MARGIN_MS = 30_000

/**
 * Counts a turn and reserves its first model call, in one transaction.
 *
 * @throws Refusal `rate_limited` or `quota_unavailable`; nothing is counted then
 */
export async function admitTurn(
  ports: AgentPorts,
  { session, request, address, provider }: CheckedRequest,
): Promise<AdmittedTurn> {
  const { ledger, clock, settings, server, meter } = ports
  const { limits, maxOutputTokens, turnMs } = settings
  const perDay = await provider.model.requestsPerDay?.()
  const requestsPerAddress = perDay === undefined ? null : requestShareOf(perDay, limits.budgetShare)
  const bounds = { maxOutputTokens, prices: provider.prices }
  const now = clock()
  const claim = async (): Promise<TurnClaim> => ({
    ...(await hashedCaller(ports, address, now)),
    session: session.sid,
    sessionEndsAt: session.exp * 1000,
    server,
    now,
    day: dayOf(now),
    firstCall: firstCallCost(request, bounds),
    shortestCall: shortestCallCost(bounds),
    requestsPerAddress,
    leaseMs: turnMs + LEASE_MARGIN_MS,
    limits,
  })
  const admission = await fromQuotaStore(claim().then((turnClaim) => ledger.admit(turnClaim)))
  if (!admission.admitted) throw rateLimited(ports, admission)
  meter.recordAdmission(admission)
  return { admission, request, address, provider, requestsPerAddress }
}

/** Makes the refusal of a limit, and counts it. */
export function rateLimited(
  { meter }: AgentPorts,
  admission: Admission & { admitted: false },
): Refusal<AgentRefusal> {
  meter.recordAdmission(admission)
  const { scope, retryAfterSeconds } = admission
  return new Refusal('rate_limited', undefined, { members: { scope, retryAfterSeconds } })
}

/** Identifies a caller to the stores by hashes of its address under the salt of the day. */
async function hashedCaller(
  { ledger, settings }: AgentPorts,
  address: string,
  now: Instant,
): Promise<Pick<TurnClaim, 'address' | 'network' | 'formerAddress'>> {
  const day = dayOf(now)
  const salt = await ledger.makeSalt(day, firstDayOfKeptCallers(now, settings.sessionSeconds))
  // A burst in the first minute of a day may have started under the previous day's salt.
  const formerSalt = now - startOfDay(day) < BURST_WINDOW_MS ? await ledger.salt(addDays(day, -1)) : null
  const network = networkOf(address)
  return {
    address: addressHash(salt, address),
    network: network === address ? null : addressHash(salt, network),
    formerAddress: formerSalt && addressHash(formerSalt, address),
  }
}
