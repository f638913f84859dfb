import { randomBytes } from 'node:crypto'
import { openAutoModel } from '../adapters/provider/auto-model.ts'
import { openChatModel } from '../adapters/provider/chat-model.ts'
import { libsqlAnswerCache } from '../adapters/state/answer-cache.ts'
import { libsqlChatLedger } from '../adapters/state/chat-ledger.ts'
import { libsqlRouterAllowance } from '../adapters/state/evaluations.ts'
import { openSiteverify } from '../adapters/siteverify.ts'
import { database } from '../adapters/sqlite/database.ts'
import { migrationsOf } from '../adapters/sqlite/migrate.ts'
import { isLoopbackUrl, priceOf } from '../domain/agent/budget.ts'
import { sessionSigner } from '../domain/agent/token.ts'
import type { State, ChatModel, Clock } from '../domain/ports.ts'
import { openAgent } from '../server/agent/routes.ts'
import type { Agent } from '../server/agent/routes.ts'
import { watchedLedger, startSweeper } from '../server/agent/service.ts'
import type { AgentPorts } from '../server/agent/service.ts'
import type { AgentSources } from '../server/agent/tool-answers.ts'
import type { Log } from '../server/route.ts'
import type { AgentMeter } from '../server/metrics/agent-meter.ts'
import { listeningUrl } from './settings/config.ts'
import type { Config } from './settings/config.ts'
import { SERVER_BUSY } from './wire.ts'
import type { Stores } from './wire.ts'

/** The chat of a server. */
export interface WiredAgent {
  agent: Agent
  /** What the day's budget is counted by. */
  ledger: Pick<State['chat'], 'spending'>
  /** Waits for the settlement of every turn, then ends everything that was opened; to be called once no turn can begin. */
  close(): Promise<void>
}

/** @param origins the server's own and those that were named; asked once it listens */
export function openWiredAgent(
  config: Config,
  stores: Pick<Stores, 'recommendations'> & { sources: AgentSources },
  surroundings: { clock: Clock; log: Log; origins: () => readonly string[]; meter: AgentMeter },
): WiredAgent {
  const { clock, log, origins, meter } = surroundings
  const { chat } = config
  const state = database({
    location: config.state,
    store: 'state',
    migrationsFolder: migrationsOf('state'),
    fast: true,
    ...SERVER_BUSY,
  })
  const ledger = watchedLedger(libsqlChatLedger(state))
  const model = openModel(config, stores, libsqlRouterAllowance(state), clock)
  const verifier = chat.verification && openSiteverify(chat.verification)
  const ports: AgentPorts = {
    settings: {
      disabled: chat.disabled,
      itemChat: !chat.itemDisabled,
      sessionSeconds: chat.sessionSeconds,
      limits: chat.limits,
      maxOutputTokens: chat.maxOutputTokens,
      pingMs: chat.pingMs,
      turnMs: chat.turnMs,
      trustedProxies: config.trustedProxies,
      origins,
    },
    signer: chat.sessionSecret === null ? null : sessionSigner(chat.sessionSecret),
    modelName: () => model?.name() ?? Promise.resolve(namedModel(chat.provider.model)),
    provider: providerOf(config, model),
    verification: verifier && chat.verification && { siteKey: chat.verification.siteKey, verifier },
    ledger,
    cache: libsqlAnswerCache(state, (key) => log.warn({ key }, 'a kept chat answer is damaged')),
    sources: stores.sources,
    meter,
    clock,
    randomBytes,
    server: randomBytes(8).toString('hex'),
    log,
  }
  const agent = openAgent(ports)
  const stopSweeping = startSweeper(ledger, clock, log, chat.sessionSeconds)
  return {
    agent,
    ledger,
    async close() {
      await agent.settled()
      await stopSweeping()
      await model?.close()
      await verifier?.close()
      state.close()
    },
  }
}

/** The model that is set; null when there is none, or no credential for it. */
function openModel(
  config: Config,
  { recommendations }: Pick<Stores, 'recommendations'>,
  allowance: State['allowance'],
  clock: Clock,
): ChatModel | null {
  const { provider, firstEventMs, idleMs } = config.chat
  const { model, url: base, key, api } = provider
  if (model === null) return null
  if (model === 'auto') {
    const { openRouterUrl, openRouterKey } = config
    if (openRouterKey === null) return null
    const referer = config.baseUrl ?? listeningUrl(config.host, config.port)
    const router = { base: openRouterUrl, key: openRouterKey, referer }
    const requestShare = config.chat.limits.budgetShare
    return openAutoModel({ ...router, recommendations, allowance, requestShare, clock, firstEventMs, idleMs })
  }
  if (key === null && !isLoopbackUrl(base)) return null
  return openChatModel({ base, key, model, api, firstEventMs, idleMs })
}

/** Together with what it costs; null where that is not known. */
function providerOf({ chat, openRouterUrl }: Config, model: ChatModel | null): AgentPorts['provider'] {
  if (model === null) return null
  const { model: name, url: providerUrl, prices: configured } = chat.provider
  const prices = priceOf({ model: name ?? '', providerUrl, routerUrl: openRouterUrl, configured })
  return prices === 'unknown' ? null : { model, prices }
}

/** What a model that cannot be asked is called; `auto` is no model but a way to find one. */
function namedModel(model: string | null): string {
  return model === null || model === 'auto' ? '' : model
}
