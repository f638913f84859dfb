import { DATA_MARKER } from '../../domain/agent/prompt.ts'

/** A JSON object of which nothing is known. */
type Fields = Readonly<Record<string, unknown>>

/** A request to the demo's model, as far as its script looks at it. */
export interface DemoQuestion {
  language: 'en' | 'ru'
  /** The user's last words. */
  text: string
  /** The stored data the turn began with; null when there is none. */
  data: Fields | null
  /** Results of the tools that were called, in the order of the calls. */
  results: readonly { tool: string; data: Fields }[]
  /** Tool calls the model made so far were made in so many rounds. */
  rounds: number
  /** False when the model is given no tools. */
  mayCall: boolean
}

const BLOCK_BEGIN = new RegExp(`^<<<${DATA_MARKER} \\w+$`, 'm')
const BLOCK_END = new RegExp(`^${DATA_MARKER} \\w+>>>$`, 'm')

/** Reads a request of the Responses API; null when it is none. */
export function readDemoQuestion(body: unknown): DemoQuestion | null {
  const request = fieldsOf(body)
  const input = listOf(request?.['input']).map(fieldsOf)
  if (!request || input.length === 0 || request['stream'] !== true) return null
  const items = input.filter((item) => item !== null)
  const said = items
    .filter(({ type, role }) => type === 'message' && role === 'user')
    .map((item) => textOf(item['content']))
  const text = said.at(-1) ?? ''
  const names = new Map(
    items.map((item) => [item['call_id'], textOf(item['name'])] as const).filter(([, name]) => name !== ''),
  )
  const outputs = items.filter(({ type }) => type === 'function_call_output')
  return {
    language: languageOf(said, text),
    text,
    data: dataOf(said[0] ?? ''),
    results: outputs.map((item) => ({
      tool: names.get(item['call_id']) ?? '',
      data: parseFields(textOf(item['output'])) ?? {},
    })),
    rounds: items.filter(({ type }, index) => isResult(type) && !isResult(items[index - 1]?.['type'])).length,
    mayCall: listOf(request['tools']).length > 0,
  }
}

function isResult(type: unknown): boolean {
  return type === 'function_call_output'
}

/** The language preferred, else the one the question is written in. */
function languageOf(said: readonly string[], text: string): 'en' | 'ru' {
  const preferences = parseFields(/^My preferences\b[^{]*(\{.*\})$/s.exec(said[1] ?? '')?.[1] ?? '')
  const preferred = preferences?.['language']
  if (preferred === 'Russian') return 'ru'
  if (preferred === 'English') return 'en'
  return /\p{Script=Cyrillic}/u.test(text) ? 'ru' : 'en'
}

function dataOf(message: string): Fields | null {
  const begin = BLOCK_BEGIN.exec(message)
  if (!begin) return null
  const after = message.slice(begin.index + begin[0].length)
  const end = BLOCK_END.exec(after)
  return end ? parseFields(after.slice(0, end.index)) : null
}

function parseFields(text: string): Fields | null {
  try {
    return fieldsOf(JSON.parse(text))
  } catch {
    return null
  }
}

export function fieldsOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
