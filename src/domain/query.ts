import type { z } from 'zod'
import { Refusal } from './refusal.ts'

/**
 * Query parameters of a route as one zod schema: each field parses one parameter. The parser, the type (`z.infer`) and
 * the OpenAPI document derive from it.
 */

/**
 * Parses the query parameters of a request. A parameter given twice is invalid; an unknown one is ignored.
 *
 * @param params the parsed query string
 * @param codes refusal code of each parameter, or a function that makes its refusal
 * @throws Refusal of the first invalid parameter, in the order of the schema
 */
export function parseQuery<Schema extends z.ZodObject, Name extends keyof z.infer<Schema> & string>(
  schema: Schema,
  params: URLSearchParams,
  codes: Readonly<Record<Name, string | ((name: Name) => Refusal)>>,
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
  const code = codes[first]
  throw typeof code === 'string' ? new Refusal(code) : code(first)
}
