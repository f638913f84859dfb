import { z } from 'zod'
import { SHA256_HEX } from './digest.ts'
import { Refusal } from './refusal.ts'
import { firstCodePoints } from './text.ts'

/**
 * Query parameters of a route as one zod schema: each field parses one parameter. The parser, the type (`z.infer`) and
 * the OpenAPI document derive from it.
 */

/**
 * Parses the query parameters of a request. A parameter given twice is invalid; an unknown one is ignored.
 *
 * @param params the parsed query string
 * @param codes refusal code of each parameter
 * @throws Refusal of the first invalid parameter, in the order of the schema, as {@link invalidParameter}
 */
export function parseQuery<Schema extends z.ZodObject, Name extends keyof z.infer<Schema> & string>(
  schema: Schema,
  params: URLSearchParams,
  codes: Readonly<Record<Name, string>>,
): z.infer<Schema> {
  const names = Object.keys(schema.shape) as Name[]
  const entries = names.map((name) => {
    const values = params.getAll(name)
    return [name, values.length > 1 ? values : values[0]]
  })
  const parsed = schema.safeParse(Object.fromEntries(entries))
  if (parsed.success) return parsed.data
  const invalid = new Set(parsed.error.issues.map(({ path }) => path[0]))
  const first = names.find((name) => invalid.has(name))
  if (first === undefined) throw parsed.error
  throw invalidParameter(codes[first], first, params.getAll(first))
}

/** Longest part of an invalid value that a refusal repeats, in code points. */
const VALUE_SHOWN = 100

/**
 * Returns the refusal of a parameter. Its members name the `parameter` and, unless it is missing, its `value`, cut to 100
 * characters.
 *
 * @param values its values; empty if it is missing
 */
export function invalidParameter<Code extends string>(
  code: Code,
  parameter: string,
  values: readonly string[],
): Refusal<Code> {
  const value = values.length === 0 ? {} : { value: firstCodePoints(values.join(', '), VALUE_SHOWN) }
  return new Refusal(code, undefined, { members: { parameter, ...value } })
}

/** Fields that several wire formats have (docs/api.md). */

/** ISO-8601 with milliseconds and Z. */
export const instantField = z.iso.datetime({ precision: 3 })
export const dayField = z.iso.date()
export const countField = z.int().min(0)
/** Position of an entry in its ledger, from 1. */
export const seqField = z.int().min(1)
export const digestField = z.string().regex(SHA256_HEX)
