import type { AnswerCache, ChatLimits, ChatModel, HumanVerifier } from '../../domain/ports.ts'
import type { Prices } from '../../domain/agent/model-call.ts'
import type { SessionSigner } from '../../domain/agent/token.ts'
import type { IpRange } from '../../domain/ip-address.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Log } from '../log.ts'
import type { AgentMeter } from '../metrics/agent-meter.ts'
import type { WatchedLedger } from './quota-store.ts'
import type { AgentSources } from './sources.ts'

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
  cache: AnswerCache
  /** The product's own stored data, through handles that only read. */
  sources: AgentSources
  meter: AgentMeter
  clock: Clock
  randomBytes: (count: number) => Uint8Array
  /** Names this server among those that share a ledger. */
  server: string
  log: Log
}
