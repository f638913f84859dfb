import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { localSource } from './local-source.ts'
import type { SourceRequest } from './local-source.ts'
import { eventsOf, MODES } from './provider-wire.ts'
import type { ModelOutput, Behaviour, ModeName } from './provider-wire.ts'

/** One request as the provider got it. */
interface ProviderRequest {
  path: string
  headers: SourceRequest['headers']
  body: Record<string, unknown>
  /** The client's end of the connection. */
  port: number
  /** Bytes of the answer that were handed to the socket. */
  written: number
  /** When the connection of this request, or its answer, ended: `performance.now()`. */
  closed: Promise<number>
}

/** A provider of chat completions over real sockets. */
export interface SyntheticProvider {
  /** API base. */
  url: string
  requests: ProviderRequest[]
  /** Invalid requests, one line each; they get 400. */
  breaches: string[]
  /** From the next request on. */
  behave(mode: ModeName | Behaviour): void
  /** Response to `GET /v1/key`, as of a routing service; null never responds. */
  key: unknown
  keyStatus: number
  keyRequests: number
  /** Resolves when so many requests have come. */
  arrived(count: number): Promise<void>
}

/** Starts the provider; it is closed when the test ends. */
export async function startProvider(mode: ModeName | Behaviour = 'answer'): Promise<SyntheticProvider> {
  let behaviour = behaviourOf(mode)
  let waiting: { count: number; go: () => void }[] = []
  const provider: SyntheticProvider = {
    url: '',
    requests: [],
    breaches: [],
    key: { data: { label: 'test' } },
    keyStatus: 200,
    keyRequests: 0,
    behave(next) {
      behaviour = behaviourOf(next)
    },
    arrived: (count) =>
      new Promise((resolve) => {
        if (provider.requests.length >= count) resolve()
        else waiting.push({ count, go: resolve })
      }),
  }
  const serve = async (
    { method, target: path, headers, body: text }: SourceRequest,
    response: ServerResponse,
  ): Promise<void> => {
    if (method === 'GET') {
      provider.keyRequests += 1
      response.statusCode = provider.keyStatus
      if (provider.key !== null) response.end(JSON.stringify(provider.key))
      return
    }
    const body = JSON.parse(text) as Record<string, unknown>
    const closed = once(response, 'close').then(() => performance.now())
    const recorded = { path, headers, body, port: response.socket?.remotePort ?? 0, written: 0, closed }
    const breach = breachOf(body)
    provider.requests.push(recorded)
    waiting.filter(({ count }) => provider.requests.length >= count).forEach(({ go }) => go())
    waiting = waiting.filter(({ count }) => provider.requests.length < count)
    if (breach !== null) {
      provider.breaches.push(breach)
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { message: breach } }))
      return
    }
    await respond(behaviour, recorded, response)
  }
  const { url } = await localSource((request, response) =>
    serve(request, response).catch((error: unknown) => {
      provider.breaches.push(`the provider failed: ${String(error)}`)
      response.destroy()
    }),
  )
  provider.url = `${url}/v1`
  return provider
}

function behaviourOf(mode: ModeName | Behaviour): Behaviour {
  return typeof mode === 'string' ? MODES[mode] : mode
}

async function respond(
  behaviour: Behaviour,
  recorded: ProviderRequest,
  response: ServerResponse,
): Promise<void> {
  const { silent } = behaviour
  if (behaviour.response) {
    const { status, type, body, headers } = behaviour.response
    response.writeHead(status, { 'content-type': type, ...headers })
    if (behaviour.ending === 'hold') response.write(body)
    else response.end(body)
    return
  }
  if (silent === 'before-headers') return
  if (!behaviour.rounds && behaviour.ending === 'reset') return void response.socket?.resetAndDestroy()
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...behaviour.headers })
  if (silent === 'after-headers') return response.flushHeaders()
  if (silent === 'comments-only') return comment(response)
  const outputs = roundOf(behaviour, roundsIn(recorded.body))
  // The mark of the end would hide that the event before it was lost.
  const events = eventsOf(outputs, behaviour.model ?? requestedModel(recorded.body)).filter(
    (data) => behaviour.lastLineEnds === undefined || data !== '[DONE]',
  )
  const frames = events.map((data) => `data: ${data}\n\n`)
  if (silent === 'after-first-event') return void response.write(frames[0] ?? '')
  if (behaviour.lastLineEnds !== undefined)
    frames.push((frames.pop() ?? '').slice(0, -2) + behaviour.lastLineEnds)
  response.write(frames.join(''))
  if (behaviour.hugeLineBytes !== undefined) await pour(behaviour.hugeLineBytes, recorded, response)
  // Reset after the client has received the data: an immediate reset would discard it.
  if (behaviour.ending === 'reset') setImmediate(() => response.socket?.resetAndDestroy())
  else if (behaviour.ending !== 'hold') response.end()
}

/** The only model of a request, or the first of its list. */
function requestedModel({ model, models }: Fields): string {
  return String(model ?? (models as unknown[])[0])
}

function roundOf({ rounds = [[]] }: Behaviour, index: number): readonly ModelOutput[] {
  return rounds[Math.min(index, rounds.length - 1)] ?? []
}

type Fields = Record<string, unknown>

/** Rounds of tools a request gives back; a request that offers no tools gets the last round. */
function roundsIn(body: Fields): number {
  if (body['tools'] === undefined) return Infinity
  return (body['messages'] as Fields[]).filter((message) => message['tool_calls'] !== undefined).length
}

/** Comments until the client leaves. */
function comment(response: ServerResponse): void {
  const timer = setInterval(() => response.write(': still here\n\n'), 10)
  response.once('close', () => clearInterval(timer))
}

async function pour(bytes: number, recorded: ProviderRequest, response: ServerResponse): Promise<void> {
  const block = Buffer.alloc(65_536, 'x')
  response.write('data: ')
  const closed = new Promise<void>((resolve) => response.once('close', () => resolve()))
  while (recorded.written < bytes && !response.destroyed) {
    recorded.written += block.byteLength
    if (response.write(block)) continue
    await Promise.race([new Promise((resolve) => response.once('drain', resolve)), closed])
  }
}

/** A provider whose responses a test controls step by step. */
export interface GatedProvider {
  url: string
  /** Number of requests so far. */
  readonly requestCount: number
  /** Number of open connections. */
  readonly live: number
  /** Resolves after `count` requests. */
  arrived(count: number): Promise<void>
  /** Sends text in every open response. */
  say(text: string): void
  /** Sends `text`, if given, in every open response and completes it. */
  finish(text?: string): void
  /** Resolves when no connection is open. */
  idle(): Promise<void>
}

export async function startGatedProvider(): Promise<GatedProvider> {
  const open = new Map<ServerResponse, ModelOutput[]>()
  let asked = 0
  let changed: () => void = () => undefined
  const { url } = await localSource((_question, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    open.set(response, [])
    asked += 1
    response.once('close', () => {
      open.delete(response)
      changed()
    })
    changed()
  })
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await new Promise<void>((resolve) => (changed = resolve))
  }
  const add = (outputs: readonly ModelOutput[], last: boolean): void => {
    for (const [response, before] of open) {
      const known = before.length === 0 ? 0 : framesOf(before).length
      before.push(...outputs)
      response.write(framesOf(before).slice(known).join(''))
      if (last) response.end()
    }
  }
  return {
    url: `${url}/v1`,
    get requestCount() {
      return asked
    },
    get live() {
      return open.size
    },
    arrived: (count) => until(() => asked >= count),
    say: (text) => add([{ text }], false),
    finish(text) {
      if (text !== undefined) add([{ text }], false)
      add([{ end: 'completed' }], true)
    },
    idle: () => until(() => open.size === 0),
  }
}

function framesOf(outputs: readonly ModelOutput[]): string[] {
  return eventsOf(outputs).map((data) => `data: ${data}\n\n`)
}

/** The reason why providers would refuse a request, or null. */
function breachOf(body: Fields): string | null {
  const messages = body['messages'] as {
    role: string
    tool_call_id?: string
    tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  }[]
  const made = messages.flatMap((message) => message.tool_calls ?? [])
  const ids = made.map(({ id }) => id)
  const answered = messages.flatMap((message) =>
    message.role === 'tool' ? [message.tool_call_id ?? ''] : [],
  )
  if (new Set(ids).size !== ids.length) return `a call id is repeated: ${ids.join(' ')}`
  if (JSON.stringify(answered) !== JSON.stringify(ids)) {
    return `calls ${ids.join(' ')} and results ${answered.join(' ')} do not pair`
  }
  for (const { function: called } of made) {
    if (!/^[\w-]{1,64}$/.test(called.name)) return `a call has the name ${called.name}`
    try {
      JSON.parse(called.arguments)
    } catch {
      return `a call has the arguments ${called.arguments}`
    }
  }
  return null
}
