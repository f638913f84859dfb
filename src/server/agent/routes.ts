import type { H3Event } from 'h3'
import { budgetState, shortestCallCost } from '../../domain/agent/budget.ts'
import { addressHash } from '../../domain/agent/client-address.ts'
import type { AgentConfig, AgentRefusal, AgentSession, AgentStatus } from '../../domain/agent/schema.ts'
import { SESSION_ID_BYTES, beginSession } from '../../domain/agent/token.ts'
import type { State } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addDays, dayOf, formatInstant } from '../../domain/time.ts'
import { NO_STORE, requestId, respondJson, respondStream } from '../respond.ts'
import { readBody, route } from '../route.ts'
import type { Route } from '../route.ts'
import { withinTime } from '../single-flight.ts'
import type { AnswerPart } from './answer.ts'
import { admitTurn, streamPlaces } from './chat.ts'
import {
  SESSION_BODY_MAX_BYTES,
  chatContract,
  configContract,
  sessionContract,
  statusContract,
} from './contracts.ts'
import { openEventStream, stopAfter } from './event-stream.ts'
import type { Stop } from './event-stream.ts'
import { callersOf, fromQuotaStore, readiness, runnable } from './service.ts'
import type { AgentPorts, Callers } from './service.ts'
import { sharedAnswers } from './shared-answers.ts'
import { runTurn } from './turn.ts'

/** The chat as an application mounts it. */
export interface Agent {
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
  /** Resolves when every turn that was begun is over and settled; to be asked once nothing new can come. */
  settled(): Promise<void>
  /** Ends every open turn as one that is out of time, and those that still begin; resolves when they are settled. */
  endTurns(): Promise<void>
}

/** A quota store that takes longer is one of which nothing is known. */
const STATUS_MS = 2_000

/** A page waits no longer for it. */
const SHOWN_STATUS_MS = 100

/** A stream that no proxy may keep, change or hold back. */
const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

/** The chat agent (docs/agent-chat.md). */
export function openAgent(ports: AgentPorts): Agent {
  const callers = callersOf(ports.settings)
  const { headersFor } = callers
  const shared = sharedAnswers<AnswerPart>()
  const turns = new Map<Promise<void>, Stop>()
  let isEnding = false
  const places = streamPlaces(ports.settings.limits.maxOpenTurns)
  const answer = (event: H3Event, value: unknown): Response =>
    respondJson(event, 200, { ...headersFor(event), ...NO_STORE }, value)

  const chat = async (event: H3Event): Promise<Response> => {
    const { release, ...admitted } = await admitTurn(ports, callers, places, event)
    const { pingMs, turnMs } = ports.settings
    const stop = stopAfter(turnMs)
    const response = event.runtime?.node?.res
    const stream = openEventStream({ pingMs, response, onGone: () => stop.abort() })
    void stream.send('meta', { remaining: admitted.admission.remaining, tier: 'free' })
    const turn = runTurn(ports, shared, {
      ...admitted,
      stream,
      stop,
      requestId: requestId(event.req.headers),
    })
    turns.set(turn, stop)
    if (isEnding) stop.expire()
    void turn.finally(() => {
      turns.delete(turn)
      release()
    })
    return respondStream(event, { ...headersFor(event), ...STREAM_HEADERS }, stream.body)
  }

  const settled = async (): Promise<void> => void (await Promise.all(turns.keys()))

  return {
    routes: [
      route(configContract, async (event) => answer(event, await config(ports)), headersFor),
      route(
        sessionContract,
        async (event) => answer(event, await makeSession(ports, callers, event)),
        headersFor,
      ),
      route(chatContract, chat, headersFor),
      route(
        statusContract,
        async (event) => answer(event, await status(ports, () => ports.ledger.ping(), STATUS_MS)),
        headersFor,
      ),
      {
        path: '/api/agent/**',
        handle: async (event) =>
          respondJson(event, 404, { ...headersFor(event), ...NO_STORE }, { error: 'not_found' }),
      },
    ],
    config: () => config(ports),
    shownStatus: () => status(ports, () => ports.ledger.lastPing(), SHOWN_STATUS_MS),
    ping: async () => void (await spendingOf(ports, () => ports.ledger.ping())),
    settled,
    async endTurns() {
      isEnding = true
      for (const stop of turns.values()) stop.expire()
      await settled()
    },
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

/** Today's spending. While no turn can run nothing has to be writable, so nothing is written to know it. */
async function spendingOf(
  ports: AgentPorts,
  probe: () => Promise<void>,
): ReturnType<State['chat']['spending']> {
  if ((await readiness(ports)).enabled) await probe()
  return ports.ledger.spending(dayOf(ports.clock()))
}

async function status(
  ports: AgentPorts,
  probe: () => Promise<void>,
  timeoutMs: number,
): Promise<AgentStatus> {
  const { settings, provider, log } = ports
  const { signal } = new AbortController()
  const spending = await withinTime(spendingOf(ports, probe), timeoutMs, signal).catch((error: unknown) => {
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

/** Tries of one address within a minute to prove that it is human. */
const VERIFICATIONS_PER_MINUTE = 10

/**
 * A new session for whoever asks (docs/agent-chat.md); nothing of the caller is stored but, for two days, the random salt
 * its address was hashed with.
 *
 * @throws Refusal for the first check that fails, in the documented order
 */
async function makeSession(ports: AgentPorts, callers: Callers, event: H3Event): Promise<AgentSession> {
  const { signer } = await runnable(ports)
  const origin = callers.origin(event)
  const token = verificationTokenOf(await readSessionBody(event))
  const now = ports.clock()
  const today = dayOf(now)
  const salt = await fromQuotaStore(ports.ledger.makeSalt(today, addDays(today, -1)))
  const address = addressHash(salt, callers.address(event))
  if (ports.verification && !(await isHuman(ports, token, address, new URL(origin).hostname))) {
    throw new Refusal<AgentRefusal>('human_verification_failed')
  }
  const payload = beginSession(
    ports.randomBytes(SESSION_ID_BYTES),
    now,
    ports.settings.sessionSeconds,
    address,
  )
  return {
    sessionToken: signer.sign(payload),
    expiresAt: formatInstant(payload.exp * 1000),
    tier: 'free',
    quotas: quotasOf(ports),
  }
}

function quotasOf({ settings }: AgentPorts): AgentSession['quotas'] {
  const { messagesPerSession, messagesPerDay } = settings.limits
  return { messagesPerSession, messagesPerDay }
}

function readSessionBody(event: H3Event): Promise<string> {
  const refuse = (): Refusal<AgentRefusal> => new Refusal('invalid_json')
  return readBody(event, SESSION_BODY_MAX_BYTES, { tooLarge: refuse, malformed: refuse })
}

/** The token of a session request; null where there is none, or no body at all. */
function verificationTokenOf(body: string): string | null {
  if (body === '') return null
  const given = parseJson(body)
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new Refusal<AgentRefusal>('invalid_json')
  }
  const { verificationToken } = given as { verificationToken?: unknown }
  return typeof verificationToken === 'string' && verificationToken !== '' ? verificationToken : null
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message repeats what it read.
    return null
  }
}

/** The verifier is asked only for a token, and by one address only so often. */
async function isHuman(
  { verification, ledger, clock }: AgentPorts,
  token: string | null,
  address: string,
  hostname: string,
): Promise<boolean> {
  if (!verification || token === null) return false
  if (!(await fromQuotaStore(ledger.countVerification(address, clock(), VERIFICATIONS_PER_MINUTE))))
    return false
  // Its answer is bounded in time by the verifier itself, to which too late is no.
  return verification.verifier.isHuman(token, hostname, new AbortController().signal)
}
