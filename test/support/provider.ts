import { EventEmitter, once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { localSource } from './local-source.ts'
import type { SourceRequest } from './local-source.ts'

type Usage = Record<'in' | 'out' | 'cached', number>

/** Output of a scripted model. */
export type ModelOutput =
  | { text: string }
  | { refusal: string }
  | { reasoning: string }
  | { call: { id: string; name: string; arguments: string } }
  /** The end event with its usage; without one the stream just stops. */
  | { end: 'completed' | 'incomplete' | 'failed'; usage?: Usage | null }

/** Behaviour of a provider: the output of its model in each round of a turn, and faults of the transport. */
export interface Behaviour {
  /** Output of each round; the last one repeats. */
  rounds?: readonly (readonly ModelOutput[])[]
  /** A response that is not a stream. */
  response?: { status: number; type: string; body: string; headers?: Record<string, string> }
  /** The model that the stream names; without it the requested one, or the first of a list. */
  model?: string
  /** Headers of the stream beside its type. */
  headers?: Record<string, string>
  /** The point at which it stops responding; after the headers, `say` and `finish` go on. */
  silent?: 'before-headers' | 'after-headers' | 'after-first-event' | 'comments-only'
  /** End of the connection; `hold`: none. */
  ending?: 'end' | 'reset' | 'hold'
  /** Sent after the last event instead of two line ends; that event is then no `[DONE]`. */
  lastLineEnds?: string
  /** A line of this many bytes after the first event. */
  hugeLineBytes?: number
}

const whole: readonly ModelOutput[] = [{ text: 'Hello ' }, { text: 'Да 👩‍🚀 é' }, { end: 'completed' }]
const called = (id: string, name: string, text: string): ModelOutput => ({
  call: { id, name, arguments: text },
})
const search = (id: string, query = 'chips'): ModelOutput =>
  called(id, 'search_items', JSON.stringify({ query, limit: 5 }))
const round = (...outputs: ModelOutput[]): ModelOutput[] => [...outputs, { end: 'completed' }]
const sent = (status: number, type: string, body: string, headers = {}): Behaviour => ({
  response: { status, type, body, headers },
})
const counted = (usage: Usage | null): Behaviour => ({
  rounds: [[{ text: 'Hello' }, { end: 'completed', usage }]],
})

/** Every named behaviour of the provider. */
export const MODES = {
  answer: { rounds: [whole] },
  'clean end without terminal': { rounds: [whole.slice(0, 2)] },
  reset: { rounds: [[{ text: 'Hello ' }]], ending: 'reset' },
  'held open after its end': { rounds: [whole], ending: 'hold' },
  'reset before headers': { ending: 'reset' },
  'silence before headers': { silent: 'before-headers' },
  'silence after headers': { silent: 'after-headers' },
  'silence after first event': { rounds: [whole], silent: 'after-first-event' },
  'comments only': { silent: 'comments-only' },
  'HTML 200': sent(200, 'text/html', '<html>SECRET</html>'),
  'JSON 200': sent(200, 'application/json', '{"output":"SECRET"}'),
  'content encoding': { rounds: [whole], headers: { 'content-encoding': 'br' } },
  failed: { rounds: [[{ text: 'Hello ' }, { end: 'failed' }]] },
  incomplete: { rounds: [[{ text: 'Hello ' }, { end: 'incomplete' }]] },
  refusal: { rounds: [round({ refusal: 'I cannot ' }, { refusal: 'help.' })] },
  'empty answer': { rounds: [round()] },
  '429 with retry-after 3600': sent(429, 'application/json', '{"error":{"message":"SECRET"}}', {
    'retry-after': '3600',
  }),
  '500 with HTML': sent(500, 'text/html', '<html>SECRET</html>'),
  redirect: sent(307, 'text/plain', '', { location: '/elsewhere' }),
  'one final line feed, then a reset': { rounds: [whole], lastLineEnds: '\n', ending: 'reset' },
  '200 MiB line': { rounds: [[{ text: 'Hello ' }]], hugeLineBytes: 200 * 1024 * 1024 },
  'three rounds of tools': {
    rounds: [
      round({ reasoning: 'SEALED-1' }, search('call_a')),
      round({ reasoning: 'SEALED-2' }, { text: 'Let me see. ' }, search('call_b', 'robots')),
      whole,
    ],
  },
  'unknown tool': { rounds: [round(called('call_u', 'delete everything!', '{}')), whole] },
  'bad arguments': { rounds: [round(called('call_b', 'search_items', '{"query":')), whole] },
  'repeated call ids': {
    rounds: [
      round(search('call_r', 'one'), search('call_r', 'two'), search('', 'three')),
      round(search('call_r', 'four')),
      whole,
    ],
  },
  '30 parallel calls': {
    rounds: [
      round(...Array.from({ length: 30 }, (_, index) => search(`call_${index}`, `word ${index}`))),
      whole,
    ],
  },
  'usage null': counted(null),
  'usage negative': counted({ in: -5, out: 20, cached: 0 }),
  'usage huge': counted({ in: 1e15, out: 20, cached: 0 }),
  'more cached than read': counted({ in: 10, out: 20, cached: 99 }),
} as const satisfies Record<string, Behaviour>

export type ModeName = keyof typeof MODES

/** One request as the provider got it. */
interface ProviderRequest {
  path: string
  headers: SourceRequest['headers']
  body: Record<string, unknown>
  /** The client's end of the connection. */
  port: number
  /** Bytes of a huge line that were handed to the socket. */
  written: number
  /** When the connection of this request, or its answer, ended: `performance.now()`. */
  closed: Promise<number>
}

/** A provider of chat completions over real sockets. */
export interface ScriptedProvider {
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
  /** Number of open responses. */
  readonly live: number
  /** Resolves when so many requests have come. */
  arrived(count: number): Promise<void>
  /** Resolves when no response is open. */
  idle(): Promise<void>
  /** Sends text in every open response. */
  say(text: string): void
  /** Sends `text`, if given, in every open response and completes it. */
  finish(text?: string): void
}

/** Starts the provider; it is closed when the test ends. */
export async function startProvider(mode: ModeName | Behaviour = 'answer'): Promise<ScriptedProvider> {
  let behaviour = behaviourOf(mode)
  const open = new Set<ServerResponse>()
  const emitter = new EventEmitter()
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await once(emitter, 'change')
  }
  const provider: ScriptedProvider = {
    url: '',
    requests: [],
    breaches: [],
    key: { data: { label: 'test' } },
    keyStatus: 200,
    keyRequests: 0,
    get live() {
      return open.size
    },
    behave(next) {
      behaviour = behaviourOf(next)
    },
    arrived: (count) => until(() => provider.requests.length >= count),
    idle: () => until(() => open.size === 0),
    say(text) {
      for (const response of open) response.write(framesOf([{ text }]).join(''))
    },
    finish(text) {
      if (text !== undefined) provider.say(text)
      for (const response of open) response.end(framesOf([{ end: 'completed' }]).join(''))
    },
  }
  const { url } = await localSource(async (request, response) => {
    if (request.method === 'GET') {
      provider.keyRequests += 1
      response.statusCode = provider.keyStatus
      if (provider.key !== null) response.end(JSON.stringify(provider.key))
      return
    }
    const body = JSON.parse(request.body) as Fields
    const closed = once(response, 'close').then(() => performance.now())
    const { target: path, headers } = request
    const recorded = { path, headers, body, port: response.socket?.remotePort ?? 0, written: 0, closed }
    provider.requests.push(recorded)
    open.add(response)
    response.once('close', () => {
      open.delete(response)
      emitter.emit('change')
    })
    const breach = breachOf(body)
    if (breach !== null) provider.breaches.push(breach)
    const refusal = sent(400, 'application/json', JSON.stringify({ error: { message: breach } }))
    const responding = respond(breach === null ? behaviour : refusal, recorded, response)
    emitter.emit('change')
    await responding
  })
  provider.url = `${url}/v1`
  return provider
}

function behaviourOf(mode: ModeName | Behaviour): Behaviour {
  return typeof mode === 'string' ? MODES[mode] : mode
}

async function respond(
  { response: fixed, silent, ending = 'end', ...behaviour }: Behaviour,
  recorded: ProviderRequest,
  response: ServerResponse,
): Promise<void> {
  if (fixed) {
    response.writeHead(fixed.status, { 'content-type': fixed.type, ...fixed.headers }).write(fixed.body)
    if (ending !== 'hold') response.end()
    return
  }
  if (silent === 'before-headers') return
  if (!silent && !behaviour.rounds && ending === 'reset') return void response.socket?.resetAndDestroy()
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...behaviour.headers })
  if (silent === 'after-headers') return response.flushHeaders()
  if (silent === 'comments-only') {
    const timer = setInterval(() => response.write(': still here\n\n'), 10)
    response.once('close', () => clearInterval(timer))
    return
  }
  const { rounds = [[]], model, lastLineEnds, hugeLineBytes = 0 } = behaviour
  const outputs = rounds[Math.min(roundsIn(recorded.body), rounds.length - 1)] ?? []
  const frames = framesOf(outputs, model ?? requestedModel(recorded.body))
  if (silent === 'after-first-event') return void response.write(frames[0] ?? '')
  if (lastLineEnds !== undefined) {
    // The mark of the end would hide that the event before it was lost.
    frames.pop()
    frames.push((frames.pop() ?? '').slice(0, -2) + lastLineEnds)
  }
  response.write(frames.join(''))
  if (hugeLineBytes > 0) {
    await pipeline(Readable.from(hugeLine(hugeLineBytes, recorded)), response).catch(() => undefined)
    return
  }
  // Reset after the client has received the data: an immediate reset would discard it.
  if (ending === 'reset') setImmediate(() => response.socket?.resetAndDestroy())
  else if (ending === 'end') response.end()
}

function* hugeLine(bytes: number, recorded: ProviderRequest): Generator<Buffer> {
  const block = Buffer.alloc(65_536, 'x')
  yield Buffer.from('data: ')
  for (; recorded.written < bytes; recorded.written += block.byteLength) yield block
}

type Fields = Record<string, unknown>

/** The only model of a request, or the first of its list. */
function requestedModel({ model, models }: Fields): string {
  return String(model ?? (models as unknown[])[0])
}

/** Rounds of tools a request gives back; a request that offers no tools gets the last round. */
function roundsIn(body: Fields): number {
  if (body['tools'] === undefined) return Infinity
  return (body['messages'] as Fields[]).filter((message) => message['tool_calls'] !== undefined).length
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
  const answered = messages.flatMap(({ role, tool_call_id }) => (role === 'tool' ? [tool_call_id] : []))
  if (new Set(ids).size !== ids.length) return `a call id is repeated: ${ids.join(' ')}`
  if (answered.join(' ') !== ids.join(' '))
    return `calls ${ids.join(' ')} and results ${answered.join(' ')} do not pair`
  for (const { function: tool } of made) {
    if (!/^[\w-]{1,64}$/.test(tool.name)) return `a call has the name ${tool.name}`
    try {
      JSON.parse(tool.arguments)
    } catch {
      return `a call has the arguments ${tool.arguments}`
    }
  }
  return null
}

/** The events of one response as the API streams them, in order. */
function framesOf(outputs: readonly ModelOutput[], model = 'model-1'): string[] {
  const stream = { id: 'c_1', object: 'chat.completion.chunk', model, usage: null }
  const chunk = (delta: Fields, finish: string | null = null): Fields => ({
    ...stream,
    choices: [{ index: 0, delta, finish_reason: finish }],
  })
  let calls = 0
  const eventsOf = (output: ModelOutput): (Fields | string)[] => {
    if ('text' in output) return [chunk({ content: output.text })]
    if ('refusal' in output) return [chunk({ refusal: output.refusal })]
    if ('reasoning' in output) return [chunk({ reasoning_content: output.reasoning })]
    if ('call' in output) {
      const { id, ...made } = output.call
      return [chunk({ tool_calls: [{ index: calls++, id, type: 'function', function: made }] })]
    }
    if (output.end === 'failed') return [{ error: { code: 502, message: 'SECRET of the provider' } }]
    const finish = output.end === 'incomplete' ? 'length' : calls > 0 ? 'tool_calls' : 'stop'
    return [chunk({}, finish), { ...stream, choices: [], usage: usageIn(output.usage) }, '[DONE]']
  }
  return [chunk({ role: 'assistant', content: '' }), ...outputs.flatMap(eventsOf)].map(
    (event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`,
  )
}

function usageIn(usage: Usage | null = { in: 100, out: 20, cached: 40 }): object | null {
  return (
    usage && {
      prompt_tokens: usage.in,
      completion_tokens: usage.out,
      total_tokens: usage.in + usage.out,
      prompt_tokens_details: { cached_tokens: usage.cached },
    }
  )
}
