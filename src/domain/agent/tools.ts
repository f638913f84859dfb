import { z } from 'zod'
import { COLUMN_NAMES, COLUMNS } from '../feed/columns.ts'
import { LIVE_SORTS } from '../feed/live-sort.ts'
import { HYPE_PROVIDERS, NEWS_SOURCES, itemsOfKey, factsOf } from '../feed/source.ts'
import { asJsonObject, parseJson } from '../json.ts'
import { parseDay, parseInstant, dayOf } from '../time.ts'
import { ARGUMENTS_MAX_LENGTH } from './bounds.ts'
import { TOOL_NAMES, toolNameOf } from './model-call.ts'
import type { ToolCall, ToolDefinition, ToolName } from './model-call.ts'
import { decodeJson, MAX_LEVELS } from '../answers/written-json.ts'
import type { JsonObject } from '../json.ts'

/** The six tools. Definitions, types and the parser of calls derive from one schema per tool (docs/agent-tools.md). */

const TEXT_MAX_LENGTH = 200

const SOURCES = [
  ...NEWS_SOURCES,
  ...HYPE_PROVIDERS.map((name) => `hype:${name}` as const),
  'midjourney',
] as const

const key = z
  .string()
  .refine((value) => itemsOfKey(value).length > 0, 'must be the key of an item, as other results give it')
  .describe('key of an item, as the data gives it, like hn-123')
const searchText = z
  .string()
  .refine((value) => value.trim() !== '', 'is empty')
  .refine((value) => value.length <= TEXT_MAX_LENGTH, `is longer than ${TEXT_MAX_LENGTH} characters`)
const day = z.string().refine((value) => parseDay(value) !== null, 'must be a real YYYY-MM-DD day')
const from = day.nullable().describe('first UTC day, YYYY-MM-DD; null: no bound')
const to = day.nullable().describe('last UTC day, YYYY-MM-DD; null: no bound')
const limit = (max: number) => z.int().min(1).max(max).nullable().describe(`how many, 1 to ${max}; null: 10`)

const at = z
  .string()
  .refine((value) => parseInstant(value) !== null, 'must be an ISO-8601 instant such as 2026-03-01T12:00:00Z')
  .nullable()
  .describe(
    'only for year: the ranking as it was published at this instant, ISO-8601 with Z; null: the newest',
  )

type Days = { from: string | null; to: string | null }
const isInOrder = (days: Days): boolean => days.from === null || days.to === null || days.from <= days.to
const IN_ORDER = { path: ['from'], error: 'is later than to' }

const TOOLS = {
  search_items: {
    title: 'Search items',
    description: 'Finds stored items by words, best first.',
    parameters: z
      .strictObject({
        query: searchText.describe(
          'words to look for in titles and texts; "quotes" for a phrase, begin* for a beginning',
        ),
        sources: z
          .array(z.enum(SOURCES))
          .max(SOURCES.length)
          .nullable()
          .describe('only these sources; null: all'),
        from,
        to,
        limit: limit(20),
      })
      .refine(isInOrder, IN_ORDER),
  },
  get_period_top: {
    title: 'Top of a period',
    description: 'The top items of a period in one list: day, week and month now, year from the archive.',
    parameters: z
      .strictObject({
        period: z
          .enum(['day', 'week', 'month', 'year'])
          .describe('the last 24 hours, 7 days, 30 days or 365 days'),
        list: z
          .enum(COLUMN_NAMES)
          .nullable()
          .describe('one source, or popular: the news sources merged; null: popular'),
        limit: limit(50),
        at,
      })
      .refine((given) => given.at === null || given.period === 'year', {
        path: ['at'],
        error: 'only the year has a history; give null',
      }),
  },
  get_feed_snapshot: {
    title: 'Newest snapshot of the feed',
    description: 'The newest snapshot of the feed: the top of every list in one sort.',
    parameters: z.strictObject({
      sort: z
        .enum(LIVE_SORTS)
        .nullable()
        .describe('trending: what rises now; day, week, month: the top of that period; null: trending'),
      limit: limit(20).describe('how many of each list, 1 to 20; null: 5'),
    }),
  },
  read_article: {
    title: 'Read an article',
    description: 'The stored text of an item, in parts. Says so when no text is stored.',
    parameters: z.strictObject({
      key,
      offset: z
        .int()
        .min(0)
        .max(1_000_000)
        .nullable()
        .describe('where to read on, from next_offset; null: the beginning'),
    }),
  },
  find_similar_items: {
    title: 'Find similar items',
    description: 'Stored items like another: the same page elsewhere, or the same subject.',
    parameters: z.strictObject({ key, limit: limit(20) }),
  },
  get_trend_history: {
    title: 'Trend of an item or a term',
    description:
      'How an item did by day (points, rank), or how often a term was mentioned by day. Exactly one of key and term.',
    parameters: z
      .strictObject({
        key: key.nullable().describe('an item: its points and rank by day; null when term is given'),
        term: searchText
          .nullable()
          .describe('a word or phrase: how many items mention it by day; null when key is given'),
        from,
        to,
      })
      .refine((given) => (given.key === null) !== (given.term === null), {
        path: ['key, term'],
        error: 'give exactly one of them, and null for the other',
      })
      .refine(isInOrder, IN_ORDER),
  },
} satisfies Record<ToolName, { title: string; description: string; parameters: z.ZodObject }>

export type Arguments = { [Name in ToolName]: z.infer<(typeof TOOLS)[Name]['parameters']> }

export type KnownCall<Name extends ToolName = ToolName> = {
  [Each in Name]: { name: Each; arguments: Arguments[Each] }
}[Name]

/** The order is fixed, because providers cache the definitions as part of the prompt. */
export const TOOL_DEFINITIONS: readonly ToolDefinition[] = TOOL_NAMES.map((name) => ({
  name,
  description: TOOLS[name].description,
  parameters: jsonSchemaOf(TOOLS[name].parameters),
}))

/** Tool names for people. */
export const TOOL_TITLES = Object.fromEntries(
  TOOL_NAMES.map((name) => [name, TOOLS[name].title]),
) as Readonly<Record<ToolName, string>>

/**
 * JSON Schema of the arguments in the subset that providers accept as strict: null is one of two types, and texts have
 * no length limits.
 */
function jsonSchemaOf(schema: z.ZodObject): Record<string, unknown> {
  const result = z.toJSONSchema(schema, {
    override: ({ jsonSchema }) => {
      const [value, nullSchema] = jsonSchema.anyOf ?? []
      if (!value || typeof value !== 'object' || typeof nullSchema !== 'object' || nullSchema.type !== 'null')
        return
      delete jsonSchema.anyOf
      const { type, enum: values, ...rest } = value
      Object.assign(jsonSchema, { ...rest, ...jsonSchema, type: [type, 'null'] })
      if (values) jsonSchema.enum = [...values, null]
    },
  })
  delete result.$schema
  return result
}

export type ParsedCall = { ok: true; call: KnownCall } | { ok: false; problem: string }

/** Parses a tool call. The problem of an invalid call is worded so that the model can correct it. */
export function parseToolCall({ name, arguments: text }: Pick<ToolCall, 'name' | 'arguments'>): ParsedCall {
  const toolName = toolNameOf(name)
  if (toolName === null) return invalidCall(`unknown tool; the tools are ${TOOL_NAMES.join(', ')}`)
  if (text.length > ARGUMENTS_MAX_LENGTH)
    return invalidCall(`the arguments are longer than ${ARGUMENTS_MAX_LENGTH} characters`)
  const names = Object.keys(PROPERTIES[toolName])
  const decoded = decodeJson(text)
  if (decoded === undefined)
    return invalidCall(`the arguments are not JSON: give an object with ${names.join(', ')}`)
  const given = asJsonObject(decoded)
  if (given === null) return invalidCall(`arguments: give a JSON object with ${names.join(', ')}`)
  const fields = unwrapArguments(given, toolName, names)
  const { parameters } = TOOLS[toolName]
  const none = Object.fromEntries(names.map((each) => [each, null]))
  const exact = parameters.safeParse({ ...none, ...fields })
  const parsed = exact.success
    ? exact
    : parameters.safeParse({ ...none, ...plainArguments(PROPERTIES[toolName], fields) })
  if (!parsed.success) return invalidCall(describeArgumentIssues(parsed.error, names))
  return { ok: true, call: { name: toolName, arguments: parsed.data } as KnownCall }
}

const PROPERTIES = Object.fromEntries(
  TOOL_DEFINITIONS.map(({ name, parameters }) => [name, parameters['properties']]),
) as Readonly<Record<ToolName, Readonly<Record<string, ArgumentSchema>>>>

const PROBLEMS_MAX = 5

/** Describes invalid arguments by their names; never repeats the values. */
function describeArgumentIssues(error: z.ZodError, names: readonly string[]): string {
  const problems = error.issues.slice(0, PROBLEMS_MAX).map((issue) => {
    const where = issue.path.join('.') || 'arguments'
    if (issue.code === 'unrecognized_keys') return `${where}: only ${names.join(', ')} are known`
    return `${where}: ${issue.message}`
  })
  return problems.join('; ')
}

function invalidCall(problem: string): ParsedCall {
  return { ok: false, problem }
}

/** Reads tool arguments that models write in another form but whose meaning is plain (docs/agent-tools.md). */

/** The part of an argument's JSON Schema that tells how to read it. */
interface ArgumentSchema {
  type?: string | readonly string[]
  enum?: readonly unknown[]
  items?: ArgumentSchema
}

/** Members that hold the arguments when a model writes the whole call in place of them. */
const WRAPPERS = ['arguments', 'parameters', 'args', 'params', 'input', 'function']

/** Takes the arguments out of the call in which a model wrapped them. */
function unwrapArguments(given: JsonObject, tool: string, names: readonly string[]): JsonObject {
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
function plainArguments(properties: Readonly<Record<string, ArgumentSchema>>, given: JsonObject): JsonObject {
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
  const instant = parseInstant(plainInstant(text))
  return instant === null ? text : dayOf(instant)
}

/** Completes an instant without seconds or zone; other texts stay. */
function plainInstant(text: string): string {
  const [, date, time, seconds = ':00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)[t ](\d\d:\d\d)(:\d\d(?:\.\d+)?)? ?(z|utc|[+-]\d\d:\d\d)?$/i.exec(text) ?? []
  if (date === undefined || time === undefined) return text
  return `${date}T${time}${seconds}${/^(?:z|utc)$/i.test(zone) ? 'Z' : zone}`
}

/** True if a text is an option, or names it as readers see it: `Hacker News` for `hn` and `hackerNews`. */
function isNameOf(option: unknown, text: string): boolean {
  if (typeof option !== 'string') return false
  const title = COLUMNS[option as keyof typeof COLUMNS] as string | undefined
  const names = new Set([option, factsOf(option)?.name, title].map(lettersOf))
  return [text, factsOf(text.toLowerCase())?.name].some(
    (name) => lettersOf(name) !== '' && names.has(lettersOf(name)),
  )
}

function lettersOf(name = ''): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}
