import type { H3Event } from 'h3'
import { budgetState, shortestCallCost } from '../../domain/agent/budget.ts'
import { parseJson } from '../../domain/json.ts'
import { addressHash } from '../../domain/address.ts'
import { sessionRequestSchema } from '../../domain/agent/schema.ts'
import type { AgentConfig, AgentRefusal, AgentSession, AgentStatus } from '../../domain/agent/schema.ts'
import { SESSION_ID_BYTES, beginSession } from '../../domain/agent/credentials.ts'
import type { State } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { dayOf, formatInstant } from '../../domain/time.ts'
import { addressLimit, openCallers } from '../callers.ts'
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
import { checkRequest } from './admit-turn.ts'
import { AnswerStream } from './answer-stream.ts'
import { fromQuotaStore, readiness, requireRunnable } from './service.ts'
import type { AgentPorts } from './service.ts'
import { openTurns } from './turn.ts'
import type { Turns } from './turn.ts'

/** The chat as the application mounts it. */
export interface Agent extends Turns {
  routes: readonly Route[]
  /** Body of `GET /api/agent/config`. */
  config(): Promise<AgentConfig>
  /** As `GET /api/agent/status`, for pages, which wait less for the state database. */
  pageStatus(): Promise<AgentStatus>
  /** Resolves when the state database can be read, and written if turns can run. */
  ping(): Promise<void>
}

/** A quota store that takes longer, in milliseconds, is reported as `unknown`. */
const STATUS_TIMEOUT_MS = 2_000

/** Longest wait of a page for the status, in milliseconds. */
const PAGE_STATUS_TIMEOUT_MS = 500

/** The chat agent (docs/agent-chat.md). */
export function openAgent(ports: AgentPorts): Agent {
  const callers = openCallers(ports.settings)
  const { headersFor } = callers
  const turns = openTurns(ports)
  const isHuman = humanCheck(ports)
  const chatRoute = route(
    chatContract,
    async (event) => {
      const checked = await checkRequest(ports, callers, event)
      return turns.handle(event, checked, (options) => new AnswerStream(options), headersFor(event))
    },
    headersFor,
  )
  const respond = async (event: H3Event, value: unknown, code = 200): Promise<Response> =>
    respondJson(event, code, { ...headersFor(event), ...NO_STORE }, await value)
  const json = <Code extends string>(
    contract: Contract<Code>,
    valueOf: (event: H3Event) => Promise<unknown>,
  ): Route => route(contract, (event) => respond(event, valueOf(event)), headersFor)
  return {
    routes: [
      json(configContract, () => config(ports)),
      json(sessionContract, (event) => createSession(ports, callers, isHuman, event)),
      chatRoute,
      json(statusContract, () => status(ports, STATUS_TIMEOUT_MS)),
      { path: '/api/agent/**', handle: (event) => respond(event, { error: 'not_found' }, 404) },
    ],
    config: () => config(ports),
    pageStatus: () => status(ports, PAGE_STATUS_TIMEOUT_MS),
    ping: async () => void (await spendingOf(ports)),
    ...turns,
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

async function status(ports: AgentPorts, timeoutMs: number): Promise<AgentStatus> {
  const { settings, provider, log } = ports
  const spending = await withTimeout(spendingOf(ports), timeoutMs).catch((error: unknown) => {
    log.warn({ err: error }, 'the chat budget cannot be read or written')
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

/** Today's spending. The store is probed for writing only if turns can run. */
async function spendingOf(ports: AgentPorts): ReturnType<State['chat']['spending']> {
  if ((await readiness(ports)).enabled) await ports.ledger.ping()
  return ports.ledger.spending(dayOf(ports.clock()))
}

/** Human verifications that one address may attempt a minute. */
const VERIFICATIONS_PER_MINUTE = 10

/**
 * Creates a session (docs/agent-chat.md). Nothing about the caller is stored except, for two days, the random salt of its
 * address hash.
 *
 * @throws Refusal for the first check that fails, in the documented order
 */
async function createSession(
  ports: AgentPorts,
  callers: Callers,
  isHuman: IsHuman,
  event: H3Event,
): Promise<AgentSession> {
  const { ledger, clock, settings, randomBytes } = ports
  const { signer } = await requireRunnable(ports)
  const origin = callers.requireOrigin(event)
  const token = await readVerificationToken(event)
  const now = clock()
  const salt = await fromQuotaStore(ledger.makeSalt(dayOf(now)))
  const address = callers.address(event)
  if (!(await isHuman(token, address, new URL(origin).hostname))) {
    throw new Refusal<AgentRefusal>('human_verification_failed')
  }
  const payload = beginSession(
    randomBytes(SESSION_ID_BYTES),
    now,
    settings.sessionSeconds,
    addressHash(salt, address),
  )
  return {
    sessionToken: signer.sign(payload),
    expiresAt: formatInstant(payload.exp * 1000),
    tier: 'free',
    quotas: quotasOf(ports),
  }
}

const lenientSessionSchema = sessionRequestSchema.extend({
  verificationToken: sessionRequestSchema.shape.verificationToken.catch(''),
})

/** Reads the verification token of a session request; empty if it is missing or not a string, or the body is missing. */
async function readVerificationToken(event: H3Event): Promise<string> {
  const refuse = (): Refusal<AgentRefusal> => new Refusal('invalid_json')
  const body = await readBody(event, SESSION_BODY_MAX_BYTES, { tooLarge: refuse, malformed: refuse })
  const parsed = lenientSessionSchema.safeParse(body === '' ? {} : parseJson(body))
  if (!parsed.success) throw refuse()
  return parsed.data.verificationToken ?? ''
}

type IsHuman = (token: string, address: string, hostname: string) => Promise<boolean>

/** Verifies tokens; without a token, or above the rate of the address, the verifier is not called. */
function humanCheck({ verification, clock }: AgentPorts): IsHuman {
  const attempts = addressLimit(VERIFICATIONS_PER_MINUTE, clock)
  return async (token, address, hostname) => {
    if (!verification) return true
    if (token === '' || attempts(address) !== null) return false
    // The verifier has a separate timeout and returns false after it.
    return verification.verifier.isHuman(token, hostname, new AbortController().signal)
  }
}
