import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { onTestFinished } from 'vitest'
import { database } from '../../src/adapters/sqlite/database.ts'
import { libsqlAnswerCache, libsqlChatKeys, libsqlChatLedger } from '../../src/adapters/state/chat-stores.ts'
import { sessionSigner } from '../../src/domain/agent/credentials.ts'
import { ownOrigins } from '../../src/domain/agent/chat-request.ts'
import type { State } from '../../src/domain/ports.ts'
import type { AgentEvent } from '../../src/domain/agent/schema.ts'
import { EVENT_SCHEMAS } from '../../src/domain/agent/schema.ts'
import { openAgent } from '../../src/server/agent/routes.ts'
import { agentMeter, requestMeter } from '../../src/server/metrics/instruments.ts'
import type { AgentMeter, RequestMeter } from '../../src/server/metrics/instruments.ts'
import type { AgentPorts, AgentSettings } from '../../src/server/agent/service.ts'
import { agentSources } from '../../src/server/agent/tools.ts'
import type { ConnectionBounds } from '../../src/server/connections.ts'
import { dashModel, findKeyIn } from '../../src/server/v1/dash-model.ts'
import { listenLocally, openApp } from './api-client.ts'
import { modelAt } from '../adapters/provider/model-turns.ts'
import { startProvider } from './provider.ts'
import type { ScriptedProvider } from './provider.ts'
import { LONG_MS, openWorkspace } from './workspace.ts'
import type { Workspace } from './workspace.ts'

export interface AgentServerOptions {
  settings?: Partial<AgentSettings>
  ports?: Partial<AgentPorts>
  provider?: Parameters<typeof startProvider>[0]
  firstEventMs?: number
  idleMs?: number
  bounds?: Partial<ConnectionBounds>
}

/** Quotas and a budget that a test reaches only after lowering them. */
export const DAY_LIMITS = {
  messagesPerSession: 10_000,
  messagesPerDay: 10_000,
  burstPerMinute: 10_000,
  minGapMs: 0,
  maxOpenTurns: 10_000,
  budgetPerDay: 1_000_000_000,
  budgetShare: 1_000_000,
}

export const SECRET = 'a secret of thirty-two bytes, or more'

/** Settings of a server whose chat uses a provider. */
export const chatVariables = (url: string): Record<string, string> => ({
  DASH_SESSION_SECRET: SECRET,
  OPENAI_BASE_URL: url,
  DASH_CHAT_MODEL: 'test-model',
  DASH_CHAT_PRICE_INPUT: '0.5',
  DASH_CHAT_PRICE_OUTPUT: '1.5',
  DASH_CHAT_MIN_GAP_MS: '0',
})

/** Micro-dollars per million tokens. */
export const PRICES = { input: 1_000_000, cached: 100_000, output: 2_000_000 }

/** A whole server with a chat over real sockets, with stores in a temporary folder; it counts requests and turns. */
export interface AgentServer {
  url: string
  port: number
  workspace: Workspace
  provider: ScriptedProvider
  ledger: AgentPorts['ledger']
  keys: State['chatKeys']
  cache: State['answers']
  meters: { requests: RequestMeter; agent: AgentMeter }
  /** Every line logged so far. */
  lines: { level: string; fields: Record<string, unknown>; message: string }[]
  /** Lines of turns. */
  turns(): Record<string, unknown>[]
  /** Waits until every started turn is settled and logged. */
  settled(): Promise<void>
  /** Today's spending. */
  spending(): Promise<{ settled: number; reserved: number }>
  close(graceMs: number): Promise<void>
}

export async function startAgent(options: AgentServerOptions = {}): Promise<AgentServer> {
  const { firstEventMs = LONG_MS, idleMs = LONG_MS } = options
  const workspace = await openWorkspace()
  const provider = await startProvider(options.provider)
  const state = database({
    location: { url: pathToFileURL(join(workspace.folder, 'state.db')).href, authToken: null },
    store: 'state',
    nativeBusyMs: 10,
    retryMs: 2_000,
    fast: true,
  })
  const model = modelAt(provider.url, { key: 'key', model: 'test-model', firstEventMs, idleMs })
  const lines: AgentServer['lines'] = []
  const write = (level: string) => (fields: Record<string, unknown>, message: string) =>
    void lines.push({ level, fields, message })
  const log = { info: write('info'), warn: write('warn'), error: write('error') }
  const ledger = libsqlChatLedger(state)
  const cache = libsqlAnswerCache(state, (key) => log.warn({ key }, 'damaged'))
  const keys = libsqlChatKeys(state)
  const meters = { requests: requestMeter(), agent: agentMeter() }
  let origins: readonly string[] = []
  const ports: AgentPorts = {
    settings: {
      disabled: false,
      itemChat: true,
      sessionSeconds: 1_800,
      limits: DAY_LIMITS,
      maxOutputTokens: 1_000,
      pingMs: 15_000,
      turnMs: 60_000,
      trustedProxies: [],
      origins: () => origins,
      ...options.settings,
    },
    signer: sessionSigner(SECRET),
    modelName: () => model.name(),
    provider: { model, prices: PRICES, url: provider.url },
    verification: null,
    meter: meters.agent,
    ledger,
    cache,
    sources: agentSources({ ...workspace, clock: Date.now }),
    clock: Date.now,
    randomBytes,
    server: 'test',
    log,
    ...options.ports,
  }
  const agent = openAgent(ports)
  const v1 = {
    passThrough: {
      send: () => Promise.reject(new Error('these tests pass nothing on')),
      close: () => Promise.resolve(),
    },
    trustedProxies: ports.settings.trustedProxies,
    turnMs: ports.settings.turnMs,
    clock: ports.clock,
    answerAsDash: dashModel(ports, agent.handle, findKeyIn(keys)),
  }
  onTestFinished(async () => {
    await agent.settled()
    state.close()
  })
  const server = await listenLocally(openApp(workspace, { agent, v1, log }), {
    requests: meters.requests,
    log,
    ...(options.bounds && { bounds: options.bounds }),
  })
  origins = ownOrigins(server.url, null)
  return {
    url: server.url,
    port: server.port,
    workspace,
    provider,
    ledger,
    keys,
    cache,
    meters,
    lines,
    turns: () => lines.filter(({ message }) => message === 'chat turn').map(({ fields }) => fields),
    settled: () => agent.settled(),
    spending: () => ledger.spending(new Date().toISOString().slice(0, 10)),
    close: (graceMs) => server.close(graceMs, () => agent.endTurns()),
  }
}

type Served = Pick<AgentServer, 'url'>

/** A new session's token. */
export async function sessionOf({ url }: Served, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(`${url}/api/agent/session`, {
    method: 'POST',
    headers: { origin: url, ...headers },
  })
  const body = (await response.json()) as { sessionToken: string }
  if (response.status !== 200) throw new Error(`no session: ${response.status} ${JSON.stringify(body)}`)
  return body.sessionToken
}

/** A chat request body with one message. */
export function chatBody(content: string, extra: object = {}): string {
  return JSON.stringify({ messages: [{ role: 'user', content }], ...extra })
}

interface ChatOptions {
  token?: string
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** Sends a chat request; the stream of the response is unread. */
export async function chat(server: Served, body: string, options: ChatOptions = {}): Promise<Response> {
  const { token = await sessionOf(server), headers = {}, signal = null } = options
  return fetch(`${server.url}/api/agent/chat`, {
    method: 'POST',
    headers: { origin: server.url, 'content-type': 'application/json', 'x-agent-session': token, ...headers },
    body,
    signal,
  })
}

/** Parses a whole stream and validates each event; throws for any line that is neither part of an event nor a ping. */
export function eventsOf(stream: string): AgentEvent[] {
  if (!stream.endsWith('\n\n'))
    throw new Error(`the stream ends in the middle: ${JSON.stringify(stream.slice(-40))}`)
  return stream
    .slice(0, -2)
    .split('\n\n')
    .filter((record) => record !== ': ping')
    .map((record) => {
      const [, name = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(record) ?? []
      if (!(name in EVENT_SCHEMAS)) throw new Error(`no event: ${JSON.stringify(record)}`)
      const schema = EVENT_SCHEMAS[name as AgentEvent['event']]
      return { event: name, data: schema.parse(JSON.parse(data)) } as AgentEvent
    })
}

/** Sends a chat request and reads its events to the end. */
export async function chatEvents(
  server: Served,
  body: string,
  options: ChatOptions = {},
): Promise<AgentEvent[]> {
  return (await openAnswer(server, body, options)).events()
}

export function textOf(events: readonly AgentEvent[]): string {
  return events.map((event) => (event.event === 'delta' ? event.data.text : '')).join('')
}

/** An answer while it is sent. */
export interface OpenAnswer {
  /** The text received so far. */
  readonly text: string
  /** Reads until the text contains `part`; throws if the answer ends first. */
  until(part: string): Promise<void>
  /** Reads to the end. */
  events(): Promise<AgentEvent[]>
  /** Closes the connection. */
  disconnect(): void
}

/** Sends a chat request; throws if it is refused. */
export async function openAnswer(
  server: Served,
  body: string,
  options: ChatOptions = {},
): Promise<OpenAnswer> {
  const controller = new AbortController()
  const response = await chat(server, body, { ...options, signal: controller.signal })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (response.status !== 200 || !reader) throw new Error(`${response.status} ${await response.text()}`)
  let text = ''
  const readMore = async (): Promise<boolean> => {
    const { done, value } = await reader.read()
    text += value ?? ''
    return !done
  }
  return {
    get text() {
      return text
    },
    async until(part) {
      while (!text.includes(part)) if (!(await readMore())) throw new Error(`no ${part} in ${text}`)
    },
    async events() {
      while (await readMore());
      return eventsOf(text)
    },
    disconnect: () => controller.abort(),
  }
}
