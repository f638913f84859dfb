import { keepCallersFrom } from '../../domain/agent/budget.ts'
import type { Prices } from '../../domain/agent/model-call.ts'
import type { AgentRefusal } from '../../domain/agent/schema.ts'
import type { SessionSigner } from '../../domain/agent/token.ts'
import type { ChatLimits } from '../../domain/agent/bounds.ts'
import type { State, ChatModel, Clock, HumanVerifier } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { CallerSettings } from '../callers.ts'
import type { AgentMeter } from '../metrics/agent-meter.ts'
import type { Log } from '../route.ts'
import type { AgentSources } from './tool-answers.ts'

/** What an operator has chosen. */
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
  prices: Prices
}

/** Everything the chat stands on. */
export interface AgentPorts {
  settings: AgentSettings
  /** null: no secret is set. */
  signer: SessionSigner | null
  /** Name of the model that is set, also where it cannot be asked; empty when there is none. */
  modelName: () => Promise<string>
  /** null: no model is set, or its credential or its price is not known. */
  provider: Provider | null
  /** null: nobody has to prove to be human. */
  verification: { siteKey: string; verifier: HumanVerifier } | null
  ledger: ProbedLedger
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

/**
 * The first two checks of every session and turn, and what a turn cannot do without.
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

/** Whether a turn could run now, and on which model. */
export async function readiness(ports: AgentPorts): Promise<{ enabled: boolean; model: string }> {
  const { settings, signer, provider, log } = ports
  const model = await ports.modelName().catch((error: unknown) => {
    log.warn({ err: error }, 'which model the chat runs on cannot be read')
    return ''
  })
  return { enabled: !settings.disabled && signer !== null && provider !== null && model !== '', model }
}

/** What the quota store answers; nobody is served who could not be counted: it throws Refusal `quota_unavailable`. */
export async function fromQuotaStore<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation
  } catch (cause) {
    throw new Refusal<AgentRefusal>('quota_unavailable', 'the state database does not answer', { cause })
  }
}

/** How long a write that was proved possible, or failed, is believed. */
const PROBE_MAX_AGE_MS = 1_000

/** Knows what the last write came to. */
export type ProbedLedger = State['chat'] & {
  /** As `ping`, but while the last write that ended was a success, however old, it is believed and nothing is written. */
  lastPing(): Promise<void>
}

/** A quota store whose `ping` writes once in {@link PROBE_MAX_AGE_MS} at most. A real write that fails is known at once. */
export function probedLedger(
  ledger: State['chat'],
  now: () => number = () => performance.now(),
): ProbedLedger {
  let probe = { result: Promise.resolve(), until: -Infinity }
  let isWritable = false
  const recordProbe = (result: Promise<void>, succeeded: boolean): void => {
    probe = { result, until: now() + PROBE_MAX_AGE_MS }
    isWritable = succeeded
  }
  const recordWrite = async <T>(write: Promise<T>): Promise<T> => {
    try {
      const written = await write
      isWritable = true
      return written
    } catch (error) {
      const failed = Promise.reject<undefined>(error)
      failed.catch(() => undefined)
      recordProbe(failed, false)
      throw error
    }
  }
  const ping = (): Promise<void> => {
    if (now() < probe.until) return probe.result
    const result = ledger.ping()
    // Nothing else is tried while it waits.
    probe = { result, until: Infinity }
    const ended = (succeeded: boolean): void => {
      // A write may have failed meanwhile.
      if (probe.result === result) recordProbe(result, succeeded)
    }
    result.then(
      () => ended(true),
      () => ended(false),
    )
    return result
  }
  return {
    ...ledger,
    makeSalt: (...args) => recordWrite(ledger.makeSalt(...args)),
    admit: (...args) => recordWrite(ledger.admit(...args)),
    extend: (...args) => recordWrite(ledger.extend(...args)),
    settle: (...args) => recordWrite(ledger.settle(...args)),
    sweep: (...args) => recordWrite(ledger.sweep(...args)),
    countVerification: (...args) => recordWrite(ledger.countVerification(...args)),
    ping,
    lastPing: () => (isWritable ? Promise.resolve() : ping()),
  }
}

/** How often turns are looked for whose server has died. */
const SWEEP_MS = 5_000

/**
 * Settles, now and every few seconds, the turns whose lease has ended, and forgets callers of earlier days.
 *
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
