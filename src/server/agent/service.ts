import type { H3Event } from 'h3'
import { keepCallersFrom } from '../../domain/agent/budget.ts'
import { isAllowedOrigin } from '../../domain/agent/chat-request.ts'
import { clientAddress } from '../../domain/agent/client-address.ts'
import type { Prices } from '../../domain/agent/model-call.ts'
import type { AgentRefusal } from '../../domain/agent/schema.ts'
import type { SessionSigner } from '../../domain/agent/token.ts'
import type { IpRange } from '../../domain/address.ts'
import type { ChatLimits } from '../../domain/agent/bounds.ts'
import type { State, ChatModel, Clock, HumanVerifier } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { AgentMeter } from '../metrics/agent-meter.ts'
import type { HeadersFor, Log } from '../route.ts'
import type { AgentSources } from './tool-answers.ts'

/** What an operator has chosen. */
export interface AgentSettings {
  /** The kill switch. */
  disabled: boolean
  itemChat: boolean
  sessionSeconds: number
  limits: ChatLimits
  maxOutputTokens: number
  pingMs: number
  turnMs: number
  trustedProxies: readonly IpRange[]
  /** Origins whose pages may chat; asked once the server listens. */
  origins: () => readonly string[]
}

/** Everything the chat stands on. */
export interface AgentPorts {
  settings: AgentSettings
  /** null: no secret is set. */
  signer: SessionSigner | null
  /** Name of the model that is set, also where it cannot be asked; empty when there is none. */
  modelName: () => Promise<string>
  /** null: no model is set, or its credential or its price is not known. */
  provider: { model: ChatModel; prices: Prices } | null
  /** null: nobody has to prove to be human. */
  verification: { siteKey: string; verifier: HumanVerifier } | null
  ledger: WatchedLedger
  cache: State['answers']
  /** The product's own stored data, through handles that only read. */
  sources: AgentSources
  meter: AgentMeter
  clock: Clock
  randomBytes: (count: number) => Uint8Array
  /** Names this server among those that share a ledger. */
  server: string
  log: Log
}

/** What a turn cannot do without. */
export interface Runnable {
  signer: SessionSigner
  provider: NonNullable<AgentPorts['provider']>
}

/**
 * The first two checks of every session and turn.
 *
 * @throws Refusal `disabled` while the kill switch is set, `misconfigured` while no turn could run
 */
export async function runnable(ports: AgentPorts): Promise<Runnable> {
  if (ports.settings.disabled) throw new Refusal<AgentRefusal>('disabled')
  const { signer, provider } = ports
  if (!signer || !provider || (await provider.model.name()) === '') {
    throw new Refusal<AgentRefusal>('misconfigured')
  }
  return { signer, provider }
}

/** What the configuration tells: whether a turn could run now, and on which model. */
export async function readiness(ports: AgentPorts): Promise<{ enabled: boolean; model: string }> {
  const { settings, signer, provider, log } = ports
  const model = await ports.modelName().catch((error: unknown) => {
    log.warn({ err: error }, 'which model the chat runs on cannot be read')
    return ''
  })
  return { enabled: !settings.disabled && signer !== null && provider !== null && model !== '', model }
}

/**
 * What the quota store answers.
 *
 * @throws Refusal `quota_unavailable` for whatever goes wrong in it: nobody is served who could not be counted
 */
export async function fromQuotaStore<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (cause) {
    throw new Refusal<AgentRefusal>('quota_unavailable', 'the state database does not answer', { cause })
  }
}

/** How long a write that was proved possible, or failed, is believed. */
const BELIEVED_MS = 1_000

/** Knows what the last write came to. */
export type WatchedLedger = State['chat'] & {
  /** As `ping`, but while the last write that ended was a success, however old, it is believed and nothing is written. */
  lastPing(): Promise<void>
}

interface Probe {
  result: Promise<void>
  /** Believed until then. */
  until: number
}

/**
 * A quota store whose `ping` tells whether it can be written, and writes once in {@link BELIEVED_MS} at most to know it. A
 * real write that fails is known at once.
 *
 * @param now milliseconds of a clock that only goes forward
 */
export function watchedLedger(
  ledger: State['chat'],
  now: () => number = () => performance.now(),
): WatchedLedger {
  let known: Probe | null = null
  let isWritable = false
  const watched = async <T>(write: Promise<T>): Promise<T> => {
    try {
      const written = await write
      isWritable = true
      return written
    } catch (error) {
      const result = Promise.reject<undefined>(error)
      result.catch(() => undefined)
      known = { result, until: now() + BELIEVED_MS }
      isWritable = false
      throw error
    }
  }
  const ping = (): Promise<void> => {
    if (known !== null && now() < known.until) return known.result
    const probe = { result: ledger.ping(), until: Infinity }
    const believe = (isGood: boolean): void => {
      probe.until = now() + BELIEVED_MS
      isWritable = isGood
    }
    probe.result.then(
      () => believe(true),
      () => believe(false),
    )
    known = probe
    return probe.result
  }
  return {
    ...ledger,
    makeSalt: (...asked) => watched(ledger.makeSalt(...asked)),
    admit: (...asked) => watched(ledger.admit(...asked)),
    extend: (...asked) => watched(ledger.extend(...asked)),
    settle: (...asked) => watched(ledger.settle(...asked)),
    sweep: (...asked) => watched(ledger.sweep(...asked)),
    countVerification: (...asked) => watched(ledger.countVerification(...asked)),
    ping,
    lastPing: () => (isWritable ? Promise.resolve() : ping()),
  }
}

/** Who asks, as far as the chat and the tools need to know: from which page, and from which address. */
export interface Callers {
  /** What lets pages of allowed origins read an answer, whatever it is. */
  headersFor: HeadersFor
  /**
   * The origin of the page that asks.
   *
   * @throws Refusal `forbidden_origin` for none, and for one that is not allowed
   */
  origin(event: H3Event): string
  /** The address a caller is counted by, canonical. */
  address(event: H3Event): string
}

export function callersOf({
  origins,
  trustedProxies,
}: Pick<AgentSettings, 'origins' | 'trustedProxies'>): Callers {
  const allowed = (event: H3Event): string | null => {
    const origin = event.req.headers.get('origin')
    return isAllowedOrigin(origin, origins()) ? origin : null
  }
  return {
    headersFor(event) {
      const origin = allowed(event)
      if (origin === null) return { vary: 'Origin' }
      return {
        'access-control-allow-origin': origin,
        'access-control-expose-headers': 'Retry-After',
        vary: 'Origin',
      }
    },
    origin(event) {
      const origin = allowed(event)
      if (origin === null) throw new Refusal<AgentRefusal>('forbidden_origin')
      return origin
    },
    address: (event) => addressOf(event, trustedProxies),
  }
}

/** The address a request counts for, canonical, whatever its route. */
export function addressOf(event: H3Event, trustedProxies: readonly IpRange[]): string {
  return clientAddress(
    event.runtime?.node?.req.socket.remoteAddress,
    event.req.headers.get('x-forwarded-for'),
    trustedProxies,
  )
}

/** How often turns are looked for whose server has died. */
const SWEEP_MS = 5_000

/**
 * Settles, now and every few seconds, the turns whose lease has ended, and forgets callers of earlier days.
 *
 * @param sessionSeconds how long a token lasts, and so how long its day's callers must be known
 * @returns stops it, and resolves when no sweep is under way
 */
export function startSweeper(
  ledger: Pick<State['chat'], 'sweep'>,
  clock: Clock,
  log: Log,
  sessionSeconds: number,
): () => Promise<void> {
  let failing = false
  let sweeping: Promise<void> | null = null
  const sweep = async (): Promise<void> => {
    try {
      const now = clock()
      const settled = await ledger.sweep(now, keepCallersFrom(now, sessionSeconds))
      if (settled > 0) log.warn({ turns: settled }, 'chat turns were settled at what they had reserved')
      failing = false
    } catch (error) {
      // Once, not every few seconds: readiness tells it meanwhile.
      if (!failing) log.error({ err: error }, 'chat turns cannot be swept')
      failing = true
    }
  }
  const begin = (): void => {
    sweeping ??= sweep().finally(() => (sweeping = null))
  }
  begin()
  const timer = setInterval(begin, SWEEP_MS)
  return async () => {
    clearInterval(timer)
    await sweeping
  }
}
