import { NOTHING, codeSpans, html } from '../page/html.ts'
import type { Html } from '../page/html.ts'

/** The parts of an OpenAPI document that are rendered, as `openapi.ts` makes them. */
interface OpenApi {
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  components: { schemas: Readonly<Record<string, JsonSchema>> }
}

interface Operation {
  operationId: string
  summary: string
  description?: string
  parameters?: readonly Parameter[]
  requestBody?: { content: Content }
  responses: Readonly<Record<string, { description: string; headers?: Headers; content?: Content }>>
}

interface Parameter {
  in: string
  name: string
  required?: boolean
  description: string
  schema: JsonSchema
  example?: string
}

type Content = Readonly<Record<string, { schema: JsonSchema }>>
type Headers = Readonly<Record<string, { description: string }>>

/** One published interface: its page is at `path`, its OpenAPI document at `path/openapi.json`. */
export interface PublishedDocument {
  path: string
  title: string
  summary: string
  document: () => Record<string, unknown>
}

/** Renders the reference of an interface: every operation with its parameters and responses, and every schema. */
export function renderReference({ path, title, summary, document }: PublishedDocument): Html {
  const { paths, components } = document() as unknown as OpenApi
  const operations = Object.entries(paths).flatMap(([at, methods]) =>
    Object.entries(methods)
      .filter(([method]) => method !== 'options')
      .map(([method, operation]) => operationText(method, at, operation)),
  )
  return html`<h1>${title}</h1>
    <p>${summary}</p>
    <p>
      <a href="${path}/openapi.json">OpenAPI 3.1</a>. Every path also supports <code>OPTIONS</code>, for pages
      of other origins.
    </p>
    ${operations}
    <h2>Schemas</h2>
    ${Object.entries(components.schemas).map(([name, schema]) => schemaSection(name, schema))}`
}

function operationText(method: string, path: string, operation: Operation): Html {
  const { operationId, summary, description = '', parameters = [], requestBody, responses } = operation
  return html`<h2 id="${operationId}"><code>${method.toUpperCase()} ${path}</code></h2>
    <p><strong>${summary}.</strong> ${codeSpans(description)}</p>
    ${method === 'get' ? exampleRequest(path, parameters) : NOTHING}
    ${
      requestBody
        ? html`<h3>Body</h3>
            ${contentText(requestBody.content)}`
        : NOTHING
    }
    <h3>Parameters</h3>
    ${parameterTable(parameters)}
    <h3>Responses</h3>
    ${responseTable(responses)}`
}

/** An example request that can be opened directly. */
function exampleRequest(path: string, parameters: readonly Parameter[]): Html {
  const examples = parameters.flatMap(({ name, example }): [string, string][] =>
    example === undefined ? [] : [[name, example]],
  )
  const query = new URLSearchParams(examples).toString()
  const address = query === '' ? path : `${path}?${query}`
  return html`<p>For example <a href="${address}">${address}</a></p>`
}

function parameterTable(parameters: readonly Parameter[]): Html {
  const rows = parameters.map(
    ({ in: location, name, required = false, description, schema }) =>
      html`<tr>
        <th scope="row"><code>${name}</code>${location === 'header' ? html` (header)` : NOTHING}</th>
        <td>${schemaText(schema)}${required ? html`, required` : NOTHING}</td>
        <td>${codeSpans(description)}</td>
      </tr>`,
  )
  return table(['Name', 'Value', 'Meaning'], rows)
}

function responseTable(responses: Operation['responses']): Html {
  const rows = Object.entries(responses).map(
    ([status, { description, headers = {}, content = {} }]) =>
      html`<tr>
        <th scope="row">${status}</th>
        <td>
          ${description.split('\n\n').map((part) => html`<p>${codeSpans(part)}</p>`)} ${contentText(content)}
        </td>
        <td>${status === '200' ? headerList(headers) : NOTHING}</td>
      </tr>`,
  )
  return table(['Status', 'When', 'Headers'], rows)
}

function contentText(content: Content): Html {
  return html`${Object.entries(content).map(
    ([type, { schema }]) => html`<p><code>${type}</code>: ${schemaText(schema)}</p>`,
  )}`
}

function headerList(headers: Headers): Html {
  const entries = Object.entries(headers)
  return html`<ul>
    ${entries.map(([name, { description }]) => html`<li><code>${name}</code>: ${codeSpans(description)}</li>`)}
  </ul>`
}

function schemaSection(name: string, schema: JsonSchema): Html {
  const rows = membersOf(schema).map(
    (member) =>
      html`<tr>
        <th scope="row"><code>${member.name}</code></th>
        <td>${schemaText(member.schema)}${member.required ? NOTHING : html`, may be absent`}</td>
        <td>${codeSpans(member.schema.description ?? '')}</td>
      </tr>`,
  )
  return html`<h3 id="schema-${name}">${name}</h3>
    ${rows.length > 0 ? table(['Member', 'Value', 'Meaning'], rows) : html`<p>${schemaText(schema)}</p>`}`
}

function table(titles: readonly string[], rows: readonly Html[]): Html {
  return html`<div class="wide" tabindex="0" role="group" aria-label="table">
    <table>
      <thead>
        <tr>
          ${titles.map((title) => html`<th scope="col">${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`
}

/** The members of a JSON Schema that the interfaces' documents use. */
interface JsonSchema {
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

/** One member of an object; members of nested objects have dotted names. */
interface Member {
  name: string
  schema: JsonSchema
  required: boolean
}

/** Every member of an object, in order. */
function membersOf({ properties = {}, required = [] }: JsonSchema, prefix = ''): Member[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const member = { name: `${prefix}${name}`, schema, required: required.includes(name) }
    const inner = schema.items?.properties ? schema.items : schema
    const within = inner === schema ? `${member.name}.` : `${member.name}[].`
    return [member, ...membersOf(inner, within)]
  })
}

/** Renders a schema as text with links to other schemas. */
function schemaText(schema: JsonSchema): Html {
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
  const lower = minimum === undefined || minimum <= Number.MIN_SAFE_INTEGER ? null : minimum
  const upper = maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? null : maximum
  const parts = [
    format === undefined ? null : html`${format}`,
    format !== undefined || pattern === undefined ? null : html`<code>${pattern}</code>`,
    lower === null ? null : html`at least ${lower}`,
    upper === null ? null : html`at most ${upper}`,
  ].filter((part) => part !== null)
  return parts.length === 0 ? NOTHING : html` (${separated(parts, ', ')})`
}

function separated(parts: readonly Html[], separator: string): Html {
  return html`${parts.map((part, index) => (index === 0 ? part : html`${separator}${part}`))}`
}
