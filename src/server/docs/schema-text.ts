import { html, NOTHING } from '../page/html.ts'
import type { Html } from '../page/html.ts'

/** The members of a JSON Schema that the interfaces' documents use. */
export interface JsonSchema {
  $ref?: string
  type?: string
  enum?: readonly unknown[]
  const?: unknown
  anyOf?: readonly JsonSchema[]
  items?: JsonSchema
  properties?: Readonly<Record<string, JsonSchema>>
  required?: readonly string[]
  additionalProperties?: boolean | JsonSchema
  pattern?: string
  format?: string
  minimum?: number
  maximum?: number
  maxItems?: number
  default?: unknown
  description?: string
}

/** One member of an object, those of objects inside it under dotted names. */
export interface Member {
  name: string
  schema: JsonSchema
  required: boolean
}

/** Every member of an object, in its order. */
export function membersOf({ properties = {}, required = [] }: JsonSchema, prefix = ''): Member[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const member = { name: `${prefix}${name}`, schema, required: required.includes(name) }
    const inner = schema.items?.properties ? schema.items : schema
    const within = inner === schema ? `${member.name}.` : `${member.name}[].`
    return [member, ...membersOf(inner, within)]
  })
}

/** A schema in words, other schemas of the document as links. */
export function schemaText(schema: JsonSchema): Html {
  const { $ref, anyOf, items, additionalProperties: named } = schema
  if ($ref !== undefined) {
    const name = $ref.split('/').at(-1) ?? ''
    return html`<a href="#schema-${name}">${name}</a>`
  }
  if (anyOf) return separated(anyOf.map(schemaText), ' or ')
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`
  if (schema.enum) {
    const values = schema.enum.map((value) => html`<code>${JSON.stringify(value)}</code>`)
    return separated(values, ', ')
  }
  if (items) return html`array of ${schemaText(items)}`
  if (schema.type === 'object' && typeof named === 'object' && !schema.properties)
    return html`object of ${schemaText(named)} by name`
  return html`${schema.type ?? 'anything'}${boundsOf(schema)}`
}

function boundsOf({ format, pattern, minimum, maximum }: JsonSchema): Html {
  const least = minimum === undefined || minimum <= Number.MIN_SAFE_INTEGER ? null : minimum
  const most = maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? null : maximum
  const parts = [
    format === undefined ? null : html`${format}`,
    format !== undefined || pattern === undefined ? null : html`<code>${pattern}</code>`,
    least === null ? null : html`at least ${least}`,
    most === null ? null : html`at most ${most}`,
  ].filter((part) => part !== null)
  return parts.length === 0 ? NOTHING : html` (${separated(parts, ', ')})`
}

function separated(parts: readonly Html[], separator: string): Html {
  return html`${parts.map((part, index) => (index === 0 ? part : html`${separator}${part}`))}`
}
