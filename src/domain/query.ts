import type { z } from 'zod'
import { Refusal } from './refusal.ts'

/**
 * The query of a route as one zod schema: a field a parameter, from its text to its value. The parser, the type
 * (`z.infer`) and the published description derive from it.
 */

/**
 * Parses the query of a request by its schema. A parameter given twice is invalid; one that the schema does not name is
 * ignored.
 *
 * @param params the query as parsed
 * @param codes refusal code of each parameter
 * @throws Refusal with the code of the first invalid parameter, in the order of the schema
 */
export function parseQuery<Schema extends z.ZodObject>(
  schema: Schema,
  params: URLSearchParams,
  codes: Readonly<Record<keyof z.infer<Schema> & string, string>>,
): z.infer<Schema> {
  const names = Object.keys(schema.shape) as (keyof typeof codes)[]
  const given = names.map((name) => {
    const values = params.getAll(name)
    return [name, values.length > 1 ? values : values[0]]
  })
  const parsed = schema.safeParse(Object.fromEntries(given))
  if (parsed.success) return parsed.data
  const invalid = new Set(parsed.error.issues.map(({ path }) => path[0]))
  const first = names.find((name) => invalid.has(name))
  throw first === undefined ? parsed.error : new Refusal(codes[first])
}
