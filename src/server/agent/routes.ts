import type { H3Event } from 'h3'
import { budgetState, keepCallersFrom, shortestCallCost } from '../../domain/agent/budget.ts'
import { parseJson } from '../../domain/text.ts'
import { addressHash } from '../../domain/client-address.ts'
import { sessionRequestSchema } from '../../domain/agent/schema.ts'
import type { AgentConfig, AgentRefusal, AgentSession, AgentStatus } from '../../domain/agent/schema.ts'
import { SESSION_ID_BYTES, beginSession } from '../../domain/agent/token.ts'
import type { State } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { dayOf, formatInstant } from '../../domain/time.ts'
import { callersOf } from '../callers.ts'
import type { Callers } from '../callers.ts'
import { NO_STORE, respondJson } from '../respond.ts'
import { readBody, route } from '../route.ts'
import type { Contract, Route } from '../route.ts'
import { withTimeout } from '../single-flight.ts'
import {
  SESSION_BODY_MAX_BYTES,
  chatContract,
  configContract,
  sessionContract,
  statusContract,
} from './contracts.ts'
import { fromQuotaStore, readiness, runnable } from './service.ts'
import type { AgentPorts } from './service.ts'
import { openTurns } from './turn.ts'
import type { Turns } from './turn.ts'

/** The chat as an application mounts it. */
export interface Agent extends Omit<Turns, 'begin'> {
  routes: readonly Route[]
  /** What `GET /api/agent/config` answers. */
  config(): Promise<AgentConfig>
  /**
   * What pages show of `GET /api/agent/status`: the last known state of the budget, without a write of its own while that
   * was good, and `unknown` when it is not there at once.
   */
  shownStatus(): Promise<AgentStatus>
  /** Resolves when the state database can be used; while a turn could run, when it can be written. */
  ping(): Promise<void>
}

/** A quota store that takes longer is one of which nothing is known. */
const STATUS_MS = 2_000

/** A page waits no longer for it. */
const SHOWN_STATUS_MS = 100

/** The chat agent (docs/agent-chat.md). */
export function openAgent(ports: AgentPorts): Agent {
  const callers = callersOf(ports.settings)
  const { headersFor } = callers
  const { begin, settled, endTurns } = openTurns(ports, callers)
  const probe = (): Promise<void> => ports.ledger.ping()
  const answer = async (event: H3Event, value: unknown, code = 200): Promise<Response> =>
    respondJson(event, code, { ...headersFor(event), ...NO_STORE }, await value)
  const json = <Code extends string>(
    contract: Contract<Code>,
    valueOf: (event: H3Event) => Promise<unknown>,
  ): Route => route(contract, (event) => answer(event, valueOf(event)), headersFor)
  return {
    routes: [
      json(configContract, () => config(ports)),
      json(sessionContract, (event) => makeSession(ports, callers, event)),
      route(chatContract, begin, headersFor),
      json(statusContract, () => status(ports, probe, STATUS_MS)),
      { path: '/api/agent/**', handle: (event) => answer(event, { error: 'not_found' }, 404) },
    ],
    config: () => config(ports),
    shownStatus: () => status(ports, () => ports.ledger.lastPing(), SHOWN_STATUS_MS),
    ping: async () => void (await spendingOf(ports, probe)),
    settled,
    endTurns,
  }
}

async function config(ports: AgentPorts): Promise<AgentConfig> {
  const { settings, verification } = ports
  const { enabled, model } = await readiness(ports)
  return {
    enabled,
    requireVerification: verification !== null,
    ...(verification && { verificationSiteKey: verification.siteKey }),
    itemChat: settings.itemChat,
    briefEnabled: false,
    model,
    quotas: quotasOf(ports),
  }
}

function quotasOf({ settings }: AgentPorts): AgentSession['quotas'] {
  const { messagesPerSession, messagesPerDay } = settings.limits
  return { messagesPerSession, messagesPerDay }
}

async function status(
  ports: AgentPorts,
  probe: () => Promise<void>,
  timeoutMs: number,
): Promise<AgentStatus> {
  const { settings, provider, log } = ports
  const spending = await withTimeout(spendingOf(ports, probe), timeoutMs).catch((error: unknown) => {
    log.warn({ err: error }, 'the chat budget cannot be read and written')
    return null
  })
  const { limits, maxOutputTokens } = settings
  const prices = provider?.prices ?? { input: 0, cached: 0, output: 0 }
  return {
    ok: spending !== null && !settings.disabled,
    service: 'agent-worker',
    budget: budgetState(spending, limits.budgetPerDay, shortestCallCost({ maxOutputTokens, prices })),
    itemChat: settings.itemChat,
  }
}

/** Today's spending. While no turn can run nothing has to be writable, so nothing is written to know it. */
async function spendingOf(
  ports: AgentPorts,
  probe: () => Promise<void>,
): ReturnType<State['chat']['spending']> {
  if ((await readiness(ports)).enabled) await probe()
  return ports.ledger.spending(dayOf(ports.clock()))
}

/** Tries of one address within a minute to prove that it is human. */
const VERIFICATIONS_PER_MINUTE = 10

/**
 * A new session for whoever asks (docs/agent-chat.md); nothing of the caller is stored but, for two days, the random salt
 * its address was hashed with.
 *
 * @throws Refusal for the first check that fails, in the documented order
 */
async function makeSession(ports: AgentPorts, callers: Callers, event: H3Event): Promise<AgentSession> {
  const { ledger, clock, settings, randomBytes } = ports
  const { signer } = await runnable(ports)
  const origin = callers.origin(event)
  const token = await readVerificationToken(event)
  const now = clock()
  const salt = await fromQuotaStore(
    ledger.makeSalt(dayOf(now), keepCallersFrom(now, settings.sessionSeconds)),
  )
  const address = addressHash(salt, callers.address(event))
  if (!(await isHuman(ports, token, address, new URL(origin).hostname))) {
    throw new Refusal<AgentRefusal>('human_verification_failed')
  }
  const payload = beginSession(randomBytes(SESSION_ID_BYTES), now, settings.sessionSeconds, address)
  return {
    sessionToken: signer.sign(payload),
    expiresAt: formatInstant(payload.exp * 1000),
    tier: 'free',
    quotas: quotasOf(ports),
  }
}

const lenientSession = sessionRequestSchema.extend({
  verificationToken: sessionRequestSchema.shape.verificationToken.catch(''),
})

/** The token of a session request; empty where there is none, one that is no text, or no body at all. */
async function readVerificationToken(event: H3Event): Promise<string> {
  const refuse = (): Refusal<AgentRefusal> => new Refusal('invalid_json')
  const body = await readBody(event, SESSION_BODY_MAX_BYTES, { tooLarge: refuse, malformed: refuse })
  const read = lenientSession.safeParse(body === '' ? {} : parseJson(body))
  if (!read.success) throw refuse()
  return read.data.verificationToken ?? ''
}

/** The verifier is asked only for a token, and by one address only so often. */
async function isHuman(
  { verification, ledger, clock }: AgentPorts,
  token: string,
  address: string,
  hostname: string,
): Promise<boolean> {
  if (!verification) return true
  if (token === '') return false
  if (!(await fromQuotaStore(ledger.countVerification(address, clock(), VERIFICATIONS_PER_MINUTE))))
    return false
  // Its answer is bounded in time by the verifier itself, to which too late is no.
  return verification.verifier.isHuman(token, hostname, new AbortController().signal)
}
