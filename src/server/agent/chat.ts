import type { H3Event } from 'h3'
import { BODY_MAX_BYTES } from '../../domain/agent/bounds.ts'
import {
  firstCallCost,
  requestShareOf,
  shortestCallCost,
  BURST_WINDOW_MS,
  SHORT_WAIT_MS,
} from '../../domain/agent/budget.ts'
import { parseChatRequest } from '../../domain/agent/chat-request.ts'
import type { ChatRequest } from '../../domain/agent/chat-request.ts'
import { addressHash, isSameCaller, networkOf } from '../../domain/agent/client-address.ts'
import type { Admission, TurnClaim } from '../../domain/agent/bounds.ts'
import type { AgentRefusal } from '../../domain/agent/schema.ts'
import type { SessionPayload, TokenProblem } from '../../domain/agent/token.ts'
import { openPlaces } from '../../domain/fair-queue.ts'
import type { OpenPlaces } from '../../domain/fair-queue.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addDays, dayOf, startOfDay } from '../../domain/time.ts'
import { readBody } from '../route.ts'
import type { Callers, Runnable, AgentPorts } from './service.ts'
import { fromQuotaStore, runnable } from './service.ts'
/** A turn's reservation outlives the turn by what its settlement may take. */
const LEASE_MARGIN_MS = 30_000

/** A turn that may run. */
export interface AdmittedTurn {
  admission: Admission & { admitted: true }
  request: ChatRequest
  /** Of the caller, canonical. */
  address: string
  provider: Runnable['provider']
  /** What its address may take of the daily requests of a routing service; null where none are counted. */
  requestsPerAddress: number | null
  /** Gives its place back; to be called once, when the turn is over. */
  release: () => void
}

/** Share of a server's streams that one network may hold. */
const NETWORK_SHARE = 1 / 4

const TOO_MANY_STREAMS = { admitted: false, scope: 'ip', retryAfterSeconds: SHORT_WAIT_MS / 1000 } as const

/** @param most turns that the server may have open; quotas count them all, in the store that servers share */
export function streamPlaces(most: number): OpenPlaces {
  const share = Math.max(1, Math.floor(most * NETWORK_SHARE))
  return openPlaces({ perAddress: share, perNetwork: share, all: Infinity })
}

/**
 * Every check of a turn, in the documented order, the last of which counts it and reserves its first model call.
 *
 * @throws Refusal for the first that fails; nothing is counted then
 */
export async function admitTurn(
  ports: AgentPorts,
  callers: Callers,
  places: OpenPlaces,
  event: H3Event,
): Promise<AdmittedTurn> {
  const { signer, provider } = await runnable(ports)
  callers.origin(event)
  const address = callers.address(event)
  const verified = signer.verify(event.req.headers.get('x-agent-session'), ports.clock())
  if (!verified.ok) throw invalidSession(verified.reason)
  const session = verified.payload
  const salt = await fromQuotaStore(ports.ledger.salt(session.day))
  if (!isSameCaller(session.ip, salt, address)) throw invalidSession('ip_mismatch')
  const request = await readRequest(ports, event)
  const bounds = { maxOutputTokens: ports.settings.maxOutputTokens, prices: provider.prices }
  if (places.enter(address) !== 'admitted') throw rateLimited(ports, TOO_MANY_STREAMS)
  const release = (): void => places.leave(address)
  try {
    const requestsPerAddress = await requestsPerAddressOf(provider.model, ports.settings.limits.budgetShare)
    const needed = {
      firstCall: firstCallCost(request, bounds),
      shortestCall: shortestCallCost(bounds),
      requestsPerAddress,
    }
    const admission = await fromQuotaStore(admit(ports, session, address, needed))
    if (!admission.admitted) throw rateLimited(ports, admission)
    ports.meter.asked(admission)
    return { admission, request, address, provider, requestsPerAddress, release }
  } catch (error) {
    release()
    throw error
  }
}

function rateLimited(
  { meter }: AgentPorts,
  admission: Admission & { admitted: false },
): Refusal<AgentRefusal> {
  meter.asked(admission)
  const { scope, retryAfterSeconds } = admission
  return new Refusal('rate_limited', undefined, { members: { scope, retryAfterSeconds } })
}

async function requestsPerAddressOf(
  model: Runnable['provider']['model'],
  share: number,
): Promise<number | null> {
  return model.requestsPerDay ? requestShareOf(await model.requestsPerDay(), share) : null
}

function invalidSession(reason: TokenProblem): Refusal<AgentRefusal> {
  return new Refusal('invalid_session', undefined, { members: { reason } })
}

async function readRequest({ settings }: AgentPorts, event: H3Event): Promise<ChatRequest> {
  const body = await readBody(event, BODY_MAX_BYTES, {
    tooLarge: () => new Refusal<AgentRefusal>('payload_too_large'),
    malformed: () => new Refusal<AgentRefusal>('invalid_json'),
  })
  const parsed = parseChatRequest(body)
  if (!parsed.ok) throw new Refusal<AgentRefusal>(parsed.code)
  return settings.itemChat ? parsed.request : { ...parsed.request, itemKey: null }
}

async function admit(
  { ledger, clock, settings, server }: AgentPorts,
  session: SessionPayload,
  address: string,
  needed: Pick<TurnClaim, 'firstCall' | 'shortestCall' | 'requestsPerAddress'>,
): Promise<Admission> {
  const now = clock()
  const day = dayOf(now)
  const yesterday = addDays(day, -1)
  const salt = await ledger.makeSalt(day, yesterday)
  // In the first minute of a day a burst may have begun under the salt of the day before.
  const formerSalt = now - startOfDay(day) < BURST_WINDOW_MS ? await ledger.salt(yesterday) : null
  const network = networkOf(address)
  return ledger.admit({
    ...needed,
    session: session.sid,
    sessionEndsAt: session.exp * 1000,
    address: addressHash(salt, address),
    network: network === address ? null : addressHash(salt, network),
    formerAddress: formerSalt && addressHash(formerSalt, address),
    server,
    now,
    day,
    leaseMs: settings.turnMs + LEASE_MARGIN_MS,
    limits: settings.limits,
  })
}
