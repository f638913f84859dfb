import { firstDayOfKeptCallers } from '../../domain/agent/budget.ts'
import type { Prices } from '../../domain/agent/model-call.ts'
import type { AgentRefusal } from '../../domain/agent/schema.ts'
import type { SessionSigner } from '../../domain/agent/credentials.ts'
import type { ChatLimits } from '../../domain/agent/bounds.ts'
import type { State, ChatModel, Clock, HumanVerifier } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { CallerSettings } from '../callers.ts'
import type { AgentMeter } from '../metrics/instruments.ts'
import type { Log } from '../route.ts'
import type { AgentSources } from './tools.ts'

export interface AgentSettings extends CallerSettings {
  /** The kill switch. */
  disabled: boolean
  itemChat: boolean
  sessionSeconds: number
  limits: ChatLimits
  maxOutputTokens: number
  pingMs: number
  turnMs: number
}

interface Provider {
  model: ChatModel
  /** For the log. */
  url: string
  prices: Prices
}

export interface AgentPorts {
  settings: AgentSettings
  /** Null if no secret is set. */
  signer: SessionSigner | null
  /** Name of the configured model, even if it cannot be called; empty if none is configured. */
  modelName: () => Promise<string>
  /** Null if no model is configured, or its credential or its price is missing. */
  provider: Provider | null
  /** Null if no human verification is required. */
  verification: { siteKey: string; verifier: HumanVerifier } | null
  ledger: State['chat']
  cache: State['answers']
  /** The stored data, through read-only handles. */
  sources: AgentSources
  meter: AgentMeter
  clock: Clock
  randomBytes: (count: number) => Uint8Array
  /** Name of this server among those that share a ledger. */
  server: string
  log: Log
}

/**
 * Runs the first two checks of every session and turn, and returns the signer and the provider.
 *
 * @throws Refusal `disabled` while the kill switch is set, `misconfigured` while no turn could run
 */
export async function requireRunnable({
  settings,
  signer,
  provider,
}: AgentPorts): Promise<{ signer: SessionSigner; provider: Provider }> {
  if (settings.disabled) throw new Refusal<AgentRefusal>('disabled')
  if (signer && provider && (await provider.model.name()) !== '') return { signer, provider }
  throw new Refusal<AgentRefusal>('misconfigured')
}

/** Returns whether a turn can run now, and its model. */
export async function readiness(ports: AgentPorts): Promise<{ enabled: boolean; model: string }> {
  const { settings, signer, provider, log } = ports
  const model = await ports.modelName().catch((error: unknown) => {
    log.warn({ err: error }, 'the model of the chat cannot be read')
    return ''
  })
  return { enabled: !settings.disabled && signer !== null && provider !== null && model !== '', model }
}

/**
 * Waits for an operation of the quota store. @throws Refusal `quota_unavailable` if it fails: a request that cannot be
 * counted is not served
 */
export async function fromQuotaStore<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation
  } catch (cause) {
    throw new Refusal<AgentRefusal>('quota_unavailable', 'the state database does not respond', { cause })
  }
}

/** Time in milliseconds for which the result of a probe is reused. */
const PROBE_MAX_AGE_MS = 1_000

/** Wraps a quota store so that `ping` writes at most once in {@link PROBE_MAX_AGE_MS}, and after an admission that failed. */
export function probedLedger(
  ledger: State['chat'],
  now: () => number = () => performance.now(),
): State['chat'] {
  let probe = Promise.resolve()
  let until = -Infinity
  const ping = (): Promise<void> => {
    if (now() < until) return probe
    until = Infinity
    probe = ledger.ping().finally(() => {
      // An admission that failed meanwhile knows more than this probe.
      if (until === Infinity) until = now() + PROBE_MAX_AGE_MS
    })
    return probe
  }
  const admit: typeof ledger.admit = async (...args) => {
    try {
      return await ledger.admit(...args)
    } catch (error) {
      until = -Infinity
      throw error
    }
  }
  return { ...ledger, ping, admit }
}

/** Interval of the search for turns whose server has died. */
const SWEEP_MS = 5_000

/**
 * Settles turns whose lease has expired and deletes callers of earlier days, now and every few seconds.
 *
 * @returns a function that stops the sweeper and resolves when no sweep is running
 */
export function startSweeper(
  ledger: Pick<State['chat'], 'sweep'>,
  clock: Clock,
  log: Log,
  sessionSeconds: number,
): () => Promise<void> {
  let failing = false
  let sweeping: Promise<void> | null = null
  const [startedAt, started] = [clock(), performance.now()]
  const sweep = async (): Promise<void> => {
    try {
      const now = clock()
      // By no more than the time that has elapsed: a clock set ahead and back leaves the callers of the day.
      const elapsed = Math.min(now, Math.floor(startedAt + performance.now() - started))
      const settled = await ledger.sweep(now, firstDayOfKeptCallers(elapsed, sessionSeconds))
      if (settled > 0) log.warn({ turns: settled }, 'chat turns were settled at their reserved cost')
      failing = false
    } catch (error) {
      // Log the first failure only: readiness reports the rest.
      if (!failing) log.error({ err: error }, 'open chat turns cannot be settled')
      failing = true
    }
  }
  const startSweep = (): void => {
    sweeping ??= sweep().finally(() => (sweeping = null))
  }
  startSweep()
  const timer = setInterval(startSweep, SWEEP_MS)
  return async () => {
    clearInterval(timer)
    await sweeping
  }
}
