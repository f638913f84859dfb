/** Output of a scripted model. */
export type ModelOutput =
  | { text: string }
  | { refusal: string }
  | { reasoning: string }
  | { call: { id: string; name: string; arguments: string } }
  /** The end event with its usage; without one the stream just stops. */
  | { end: 'completed' | 'incomplete' | 'failed' | 'error'; usage?: unknown }

/** Token usage, independent of the API. */
interface TokenUsage {
  in: number
  out: number
  cached: number
}

type Event = Record<string, unknown>

/** The events of one response as the API streams them: the data of each, in order. @param model that responds */
export function eventsOf(outputs: readonly ModelOutput[], model = 'model-1'): string[] {
  const calls = outputs.filter((output) => 'call' in output)
  const events: (Event | string)[] = [chunk({ role: 'assistant', content: '' })]
  let index = 0
  for (const output of outputs) {
    if ('text' in output) events.push(chunk({ content: output.text }))
    else if ('refusal' in output) events.push(chunk({ refusal: output.refusal }))
    else if ('reasoning' in output) events.push(chunk({ reasoning_content: output.reasoning }))
    else if ('call' in output) {
      const { id, name, arguments: text } = output.call
      const half = Math.ceil(text.length / 2)
      const first = { index, id, type: 'function', function: { name, arguments: text.slice(0, half) } }
      events.push(chunk({ tool_calls: [first] }))
      events.push(chunk({ tool_calls: [{ index, function: { arguments: text.slice(half) } }] }))
      index += 1
    } else events.push(...endOf(output, calls.length > 0))
  }
  return events.map((event) =>
    typeof event === 'string' ? event : JSON.stringify('error' in event ? event : { ...event, model }),
  )
}

function endOf(
  { end, usage = { in: 100, out: 20, cached: 40 } }: Extract<ModelOutput, { end: string }>,
  called: boolean,
): (Event | string)[] {
  if (end === 'error' || end === 'failed')
    return [{ error: { code: 502, message: 'SECRET of the provider' } }]
  const finish = end === 'incomplete' ? 'length' : called ? 'tool_calls' : 'stop'
  return [
    chunk({}, finish),
    { id: 'c_1', object: 'chat.completion.chunk', choices: [], usage: usageIn(usage) },
    '[DONE]',
  ]
}

function chunk(delta: Event, finish: string | null = null): Event {
  return {
    id: 'c_1',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: finish }],
    usage: null,
  }
}

function usageIn(usage: unknown): unknown {
  if (typeof usage !== 'object' || usage === null) return usage
  const { in: read, out, cached } = usage as TokenUsage
  return {
    prompt_tokens: read,
    completion_tokens: out,
    total_tokens: read + out,
    prompt_tokens_details: { cached_tokens: cached },
  }
}

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
  /** The point at which it stops responding. */
  silent?: 'before-headers' | 'after-headers' | 'after-first-event' | 'comments-only'
  /** End of the connection; `hold`: none. */
  ending?: 'end' | 'reset' | 'hold'
  /** Sent after the last event instead of two line ends; that event is then no `[DONE]`. */
  lastLineEnds?: string
  /** A line of this many bytes after the first event. */
  hugeLineBytes?: number
}

const EMOJI = 'Да 👩‍🚀 é'

const whole: readonly ModelOutput[] = [{ text: 'Hello ' }, { text: EMOJI }, { end: 'completed' }]
const answer = [whole]
const search = (id: string, word = 'chips'): ModelOutput => ({
  call: { id, name: 'search_items', arguments: JSON.stringify({ query: word, limit: 5 }) },
})
const after = (outputs: readonly ModelOutput[]): readonly (readonly ModelOutput[])[] => [
  [...outputs, { end: 'completed' }],
  whole,
]

/** Every named behaviour of the synthetic provider. */
export const MODES = {
  answer: { rounds: answer },
  'clean end without terminal': { rounds: [[{ text: 'Hello ' }, { text: EMOJI }]] },
  reset: { rounds: [[{ text: 'Hello ' }]], ending: 'reset' },
  'held open after its end': { rounds: answer, ending: 'hold' },
  'reset before headers': { ending: 'reset' },
  'silence before headers': { silent: 'before-headers' },
  'silence after headers': { silent: 'after-headers' },
  'silence after first event': { rounds: answer, silent: 'after-first-event' },
  'comments only': { silent: 'comments-only' },
  'HTML 200': { response: { status: 200, type: 'text/html', body: '<html>SECRET</html>' } },
  'JSON 200': { response: { status: 200, type: 'application/json', body: '{"output":"SECRET"}' } },
  'content encoding': { rounds: answer, headers: { 'content-encoding': 'br' } },
  failed: { rounds: [[{ text: 'Hello ' }, { end: 'failed', usage: null }]] },
  incomplete: { rounds: [[{ text: 'Hello ' }, { end: 'incomplete' }]] },
  'error event': { rounds: [[{ text: 'Hello ' }, { end: 'error' }]] },
  refusal: { rounds: [[{ refusal: 'I cannot ' }, { refusal: 'help.' }, { end: 'completed' }]] },
  'empty answer': { rounds: [[{ end: 'completed' }]] },
  '429 with retry-after 3600': {
    response: {
      status: 429,
      type: 'application/json',
      body: '{"error":{"message":"SECRET","code":"rate_limit"}}',
      headers: { 'retry-after': '3600' },
    },
  },
  '500 with HTML': { response: { status: 500, type: 'text/html', body: '<html>SECRET</html>' } },
  redirect: {
    response: { status: 307, type: 'text/plain', body: '', headers: { location: '/elsewhere' } },
  },
  'one final line feed, then a reset': { rounds: answer, lastLineEnds: '\n', ending: 'reset' },
  '200 MiB line': { rounds: [[{ text: 'Hello ' }]], hugeLineBytes: 200 * 1024 * 1024 },
  'three rounds of tools': {
    rounds: [
      [{ reasoning: 'SEALED-1' }, search('call_a', 'chips'), { end: 'completed' }],
      [{ reasoning: 'SEALED-2' }, { text: 'Let me see. ' }, search('call_b', 'robots'), { end: 'completed' }],
      whole,
    ],
  },
  'runaway tools': { rounds: [[search('call_x'), { end: 'completed' }]] },
  'unknown tool': {
    rounds: after([{ call: { id: 'call_u', name: 'delete everything!', arguments: '{}' } }]),
  },
  'bad arguments': {
    rounds: after([{ call: { id: 'call_b', name: 'search_items', arguments: '{"query":' } }]),
  },
  'repeated call ids': {
    rounds: [
      [search('call_r', 'one'), search('call_r', 'two'), search('', 'three'), { end: 'completed' }],
      [search('call_r', 'four'), { end: 'completed' }],
      whole,
    ],
  },
  '30 parallel calls': {
    rounds: after(Array.from({ length: 30 }, (_, index) => search(`call_${index}`, `word ${index}`))),
  },
  'usage null': { rounds: [[{ text: 'Hello' }, { end: 'completed', usage: null }]] },
  'usage negative': {
    rounds: [[{ text: 'Hello' }, { end: 'completed', usage: { in: -5, out: 20, cached: 0 } }]],
  },
  'usage huge': {
    rounds: [[{ text: 'Hello' }, { end: 'completed', usage: { in: 1e15, out: 20, cached: 0 } }]],
  },
  'more cached than read': {
    rounds: [[{ text: 'Hello' }, { end: 'completed', usage: { in: 10, out: 20, cached: 99 } }]],
  },
} as const satisfies Record<string, Behaviour>

export type ModeName = keyof typeof MODES
