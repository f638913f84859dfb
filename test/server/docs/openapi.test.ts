import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { AGENT_ERRORS } from '../../../src/domain/agent/schema.ts'
import { LIVE_REFUSALS } from '../../../src/domain/feed/live-sort.ts'
import { SEARCH_REFUSALS } from '../../../src/domain/feed/search/search.ts'
import { FREE_MODELS_REFUSALS } from '../../../src/domain/models/shortlist.ts'
import { HISTORY_REFUSALS } from '../../../src/domain/year/history/history.ts'
import { yearEnvelopeSchema } from '../../../src/domain/year/schema.ts'
import { MCP_REFUSALS } from '../../../src/server/mcp/route.ts'
import { openApp } from '../../support/api-client.ts'
import { openWorkspace } from '../../support/workspace.ts'

interface Operation {
  parameters?: { name: string }[]
  security?: unknown
  responses: Record<string, { content?: Record<string, unknown> }>
}

interface OpenApi {
  openapi: string
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, { required?: string[] }>; securitySchemes?: unknown }
}

async function documentOf(name: string): Promise<OpenApi> {
  const path = `/docs/api/${name}/openapi.json`
  const response = await openApp(await openWorkspace()).request(`http://dash.test${path}`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toContain('application/json')
  return (await response.json()) as OpenApi
}

/** Operations with their parameters, statuses and media types, as one line each. */
function linesOf({ paths }: OpenApi): string[] {
  return Object.entries(paths).map(([path, { options: _options, ...methods }]) => {
    const [[method, operation] = []] = Object.entries(methods)
    const names = operation?.parameters?.map(({ name }) => name) ?? []
    const { responses = {} } = operation ?? {}
    const types = Object.keys(responses['200']?.content ?? {})
    return [method, path, `(${names.join(' ')})`, ...Object.keys(responses), ...types].join(' ')
  })
}

const CODES: Readonly<Record<string, readonly string[]>> = {
  'top-year-history': HISTORY_REFUSALS,
  'top-year-log': ['year_log_not_found'],
  feed: LIVE_REFUSALS,
  search: SEARCH_REFUSALS,
  'free-llm': FREE_MODELS_REFUSALS,
  'agent-chat': AGENT_ERRORS,
  v1: ['missing_api_key'],
  mcp: MCP_REFUSALS,
}

test.each(Object.entries(CODES))(
  'the OpenAPI document of %s is valid 3.1 under an independent validator, has its own version, and describes every refusal',
  async (name, codes) => {
    const document = await documentOf(name)
    const validator = new Validator()
    const result = await validator.validate({ ...document })
    expect([result.errors ?? [], result.valid]).toEqual([[], true])
    expect([document.openapi, validator.version, document.info.version]).toEqual(['3.1.0', '3.1', '1.0.0'])
    expect(document).toMatchObject({ servers: [{ url: '/' }], security: [] })
    for (const [path, operations] of Object.entries(document.paths)) {
      const names = Object.values(operations).map(({ parameters = [] }) =>
        parameters.map((each) => each.name),
      )
      for (const [, rest] of path.matchAll(/\{(\w+)\}/g))
        for (const named of names) expect([path, named]).toEqual([path, expect.arrayContaining([rest])])
      // OpenAPI ignores parameters with these names.
      expect(names.flat()).not.toEqual(
        expect.arrayContaining([expect.stringMatching(/^A(ccept|uthorization)$/)]),
      )
    }
    const text = JSON.stringify(document)
    for (const code of codes) expect(text).toContain(`"${code}"`)
  },
)

test('an OpenAPI document describes every operation with its parameters, statuses and media types', async () => {
  expect(linesOf(await documentOf('search'))).toEqual([
    'get /api/search (q source minPoints minComments from to sort limit cursor If-None-Match) 200 304 400 405 429 503 application/json',
    'get /api/search.csv (q source minPoints minComments from to sort limit cursor If-None-Match) 200 304 400 405 429 503 text/csv',
    'get /api/similar (key limit If-None-Match) 200 304 400 404 405 429 503 application/json',
    'get /api/trend (key term from to If-None-Match) 200 304 400 404 405 429 503 application/json',
  ])
  expect(linesOf(await documentOf('agent-chat'))).toContain(
    'post /api/agent/chat (X-Agent-Session Origin) 200 400 401 403 405 413 429 500 503 text/event-stream',
  )
})

test('an OpenAPI document describes the key of its callers, and statuses that are no refusals', async () => {
  const { paths, components } = await documentOf('v1')
  expect(components.securitySchemes).toEqual({ key: { type: 'http', scheme: 'bearer' } })
  const secured = Object.keys(paths).filter((path) => paths[path]?.['post']?.security)
  expect(secured).toEqual(['/v1/chat/completions'])
  expect(linesOf(await documentOf('mcp'))).toEqual([
    'post /mcp (Origin MCP-Protocol-Version) 200 202 400 403 405 406 413 415 429 500 application/json',
  ])
})

test('an OpenAPI document describes the members and headers of a refusal beside its code', async () => {
  const { paths, components } = await documentOf('top-year-history')
  expect(components.schemas['YearPublication']?.required).toEqual(Object.keys(yearEnvelopeSchema.shape))
  expect(JSON.stringify(paths)).toContain('#/components/schemas/YearPublication')
  const refused = (await documentOf('feed')).paths['/api/feed']?.['get']?.responses['400']
  const properties = { history: { enum: ['/api/feed/history?sort=year'] } }
  const schema = { required: ['error'], properties }
  expect(refused).toMatchObject({ content: { 'application/json': { schema } } })
  const chat = JSON.stringify(await documentOf('agent-chat'))
  for (const name of ['Retry-After', 'X-Accel-Buffering', 'ip_mismatch']) expect(chat).toContain(name)
})

test('the pages of a demo say so, the pages of a real server do not', async () => {
  const workspace = await openWorkspace()
  const described = '/docs/api/top-year-history'
  for (const path of ['/', '/docs', described, `${described}/openapi.json`]) {
    const demo = await openApp(workspace, { demo: true }).request(`http://dash.test${path}`)
    const real = await openApp(workspace).request(`http://dash.test${path}`)
    const marks = [demo.headers.get('x-dash-demo'), real.headers.get('x-dash-demo')]
    expect([path, ...marks]).toEqual([path, 'true', null])
    expect(await demo.text()).toContain('DEMO')
    expect(await real.text()).not.toContain('DEMO')
  }
})
