import { COLUMNS } from '../feed/columns.ts'
import { factsOf } from '../feed/source.ts'
import { MAX_LEVELS, decodeJson } from '../answers/written-json.ts'
import { asJsonObject, parseJson } from '../text.ts'
import type { JsonObject } from '../text.ts'
import { dayOf, parseInstant } from '../time.ts'

/** Reads tool arguments that models write in another form but whose meaning is plain (docs/agent-tools.md). */

/** The part of an argument's JSON Schema that tells how to read it. */
export interface ArgumentSchema {
  type?: string | readonly string[]
  enum?: readonly unknown[]
  items?: ArgumentSchema
}

/** Members that hold the arguments when a model writes the whole call in place of them. */
const WRAPPERS = ['arguments', 'parameters', 'args', 'params', 'input', 'function']

/** Takes the arguments out of the call in which a model wrapped them. */
export function unwrapArguments(given: JsonObject, tool: string, names: readonly string[]): JsonObject {
  let fields = given
  for (let level = 0; level < MAX_LEVELS; level += 1) {
    if (Object.keys(fields).some((name) => names.includes(name.toLowerCase()))) break
    const wrapped = [...WRAPPERS, tool].map((name) => asObject(fields[name])).find((inner) => inner !== null)
    if (wrapped === undefined) break
    fields = wrapped
  }
  return fields
}

function asObject(value: unknown): JsonObject | null {
  return asJsonObject(typeof value === 'string' ? decodeJson(value) : value)
}

/** Converts each argument to the type of its schema if its meaning is plain; unknown names with null are dropped. */
export function plainArguments(
  properties: Readonly<Record<string, ArgumentSchema>>,
  given: JsonObject,
): JsonObject {
  const fields = Object.entries(given).map(([name, value]) => {
    const known = Object.hasOwn(properties, name) ? name : name.toLowerCase()
    const schema = Object.hasOwn(properties, known) ? properties[known] : undefined
    return schema === undefined ? ([name, value] as const) : ([known, plain(known, value, schema)] as const)
  })
  return Object.fromEntries(
    fields.filter(([name, value]) => value !== null || Object.hasOwn(properties, name)),
  )
}

function plain(name: string, value: unknown, schema: ArgumentSchema): unknown {
  const { type = [], enum: options = [], items = {} } = schema
  const types = new Set([type].flat())
  if (Array.isArray(value)) {
    if (!types.has('array')) return value.length === 1 ? plain(name, value[0], schema) : value
    if (types.has('null') && value.length === 1 && isAll(value[0])) return null
    return value.map((item: unknown) => plain(name, item, items))
  }
  if (typeof value === 'number') return types.has('string') ? String(value) : value
  if (typeof value !== 'string') return value
  const text = value.trim()
  if (types.has('null') && /^(?:null|none|undefined)?$/i.test(text)) return null
  if (types.has('integer') && /^\d{1,9}(?:\.0+)?$/.test(text)) return Number(text)
  if (types.has('array')) {
    const list = parseJson(text)
    return plain(name, Array.isArray(list) ? list : text.split(/[,;]/), schema)
  }
  if (name === 'from' || name === 'to') return plainDay(text)
  if (name === 'at') return plainInstant(text)
  return options.find((option) => isNameOf(option, text)) ?? text
}

function isAll(value: unknown): boolean {
  return typeof value === 'string' && /^\s*(?:all|any|\*)\s*$/i.test(value)
}

/** The UTC day of an instant; other texts stay. */
function plainDay(text: string): string {
  const at = parseInstant(plainInstant(text))
  return at === null ? text : dayOf(at)
}

/** Completes an instant without seconds or zone; other texts stay. */
function plainInstant(text: string): string {
  const [, day, time, seconds = ':00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)[t ](\d\d:\d\d)(:\d\d(?:\.\d+)?)? ?(z|utc|[+-]\d\d:\d\d)?$/i.exec(text) ?? []
  if (day === undefined || time === undefined) return text
  return `${day}T${time}${seconds}${/^(?:z|utc)$/i.test(zone) ? 'Z' : zone}`
}

/** True if a text is an option, or names it as readers see it: `Hacker News` for `hn` and `hackerNews`. */
function isNameOf(option: unknown, text: string): boolean {
  if (typeof option !== 'string') return false
  const names = new Set([option, factsOf(option)?.name, columnTitle(option)].map(lettersOf))
  return [text, factsOf(text.toLowerCase())?.name].some(
    (name) => lettersOf(name) !== '' && names.has(lettersOf(name)),
  )
}

function columnTitle(name: string): string | undefined {
  return Object.hasOwn(COLUMNS, name) ? COLUMNS[name as keyof typeof COLUMNS] : undefined
}

function lettersOf(name = ''): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}
