import type { Said } from './provider-wire.ts'

/** How a provider behaves: what its model says in each round of a turn, and what the wire makes of it. */
export interface Behaviour {
  /** What is said in each round; the last one for all after it. */
  rounds?: readonly (readonly Said[])[]
  /** An answer that is no stream. */
  answer?: { status: number; type: string; body: string; headers?: Record<string, string> }
  /** Headers of the stream beside its type. */
  headers?: Record<string, string>
  /** Where it falls silent. */
  silent?: 'before-headers' | 'after-headers' | 'after-first-event' | 'comments-only'
  /** How the connection ends; `hold`: not at all. */
  ending?: 'end' | 'reset' | 'hold'
  lineEnd?: '\n' | '\r\n' | '\r'
  /** Each byte is a chunk of its own. */
  byteByByte?: boolean
  byteOrderMark?: boolean
  /** Sent after the last event instead of two line ends; that event is then no `[DONE]`. */
  lastLineEnds?: string
  /** Ends with half of an event. */
  halfEvent?: boolean
  /** A line of this many bytes after the first event. */
  hugeLineBytes?: number
}

const EMOJI = 'Да 👩‍🚀 é'

const whole: readonly Said[] = [{ text: 'Hello ' }, { text: EMOJI }, { end: 'completed' }]
const answer = [whole]
const search = (id: string, word = 'chips'): Said => ({
  call: { id, name: 'search_items', arguments: JSON.stringify({ query: word, limit: 5 }) },
})
const after = (said: readonly Said[]): readonly (readonly Said[])[] => [
  [...said, { end: 'completed' }],
  whole,
]

/** Every named behaviour of the synthetic provider. */
export const MODES = {
  answer: { rounds: answer },
  'clean end without terminal': { rounds: [[{ text: 'Hello ' }, { text: EMOJI }]] },
  'half an event at the end': { rounds: [[{ text: 'Hello ' }]], halfEvent: true },
  reset: { rounds: [[{ text: 'Hello ' }]], ending: 'reset' },
  'held open after its end': { rounds: answer, ending: 'hold' },
  'reset before headers': { ending: 'reset' },
  'silence before headers': { silent: 'before-headers' },
  'silence after headers': { silent: 'after-headers' },
  'silence after first event': { rounds: answer, silent: 'after-first-event' },
  'comments only': { silent: 'comments-only' },
  'HTML 200': { answer: { status: 200, type: 'text/html', body: '<html>SECRET</html>' } },
  'JSON 200': { answer: { status: 200, type: 'application/json', body: '{"output":"SECRET"}' } },
  'content encoding': { rounds: answer, headers: { 'content-encoding': 'br' } },
  failed: { rounds: [[{ text: 'Hello ' }, { end: 'failed', usage: null }]] },
  incomplete: { rounds: [[{ text: 'Hello ' }, { end: 'incomplete' }]] },
  'error event': { rounds: [[{ text: 'Hello ' }, { end: 'error' }]] },
  refusal: { rounds: [[{ refusal: 'I cannot ' }, { refusal: 'help.' }, { end: 'completed' }]] },
  'empty answer': { rounds: [[{ end: 'completed' }]] },
  '429 with retry-after 3600': {
    answer: {
      status: 429,
      type: 'application/json',
      body: '{"error":{"message":"SECRET","code":"rate_limit"}}',
      headers: { 'retry-after': '3600' },
    },
  },
  '500 with HTML': { answer: { status: 500, type: 'text/html', body: '<html>SECRET</html>' } },
  redirect: {
    answer: { status: 307, type: 'text/plain', body: '', headers: { location: '/elsewhere' } },
  },
  'one-byte chunks': { rounds: answer, byteByByte: true },
  CRLF: { rounds: answer, lineEnd: '\r\n' },
  'CRLF in one-byte chunks': { rounds: answer, lineEnd: '\r\n', byteByByte: true },
  'CR alone': { rounds: answer, lineEnd: '\r' },
  'byte order mark': { rounds: answer, byteOrderMark: true },
  'no final line end': { rounds: answer, lastLineEnds: '' },
  'one final line feed': { rounds: answer, lastLineEnds: '\n' },
  'one final CR': { rounds: answer, lineEnd: '\r', lastLineEnds: '\r' },
  'one final CRLF': { rounds: answer, lineEnd: '\r\n', lastLineEnds: '\r\n' },
  'half of the final CRLF': { rounds: answer, lineEnd: '\r\n', lastLineEnds: '\r\n\r' },
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
  'usage zero': {
    rounds: [[{ text: 'Hello' }, { end: 'completed', usage: { in: 0, out: 0, cached: 0 } }]],
  },
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
