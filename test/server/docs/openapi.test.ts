import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { LIVE_REFUSALS } from '../../../src/domain/feed/live-sort.ts'
import { HISTORY_REFUSALS } from '../../../src/domain/year/history.ts'
import { yearEnvelopeSchema } from '../../../src/domain/year/schema.ts'
import { askHistory, openApp } from '../../support/api-client.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../../support/workspace.ts'

interface OpenApi {
  openapi: string
  info: { version: string }
  paths: Record<string, { get: { parameters: { name: string }[]; responses: Record<string, unknown> } }>
  components: { schemas: Record<string, { required?: string[]; properties?: Record<string, unknown> }> }
}

const historyDocument = (): Promise<OpenApi> => documentAt('/docs/api/top-year-history')

async function documentAt(path: string): Promise<OpenApi> {
  const response = await openApp(await openWorkspace()).request(`http://dash.test${path}/openapi.json`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toContain('application/json')
  return (await response.json()) as OpenApi
}

const DOCUMENTS = ['/docs/api/top-year-history', '/docs/api/feed']

test.each(['top-year-history', 'feed', 'search', 'free-llm', 'agent-chat', 'mcp'])(
  'the OpenAPI document of %s is valid 3.1 under an independent validator',
  async (name) => {
    const document = await documentAt(`/docs/api/${name}`)
    const validator = new Validator()
    const result = await validator.validate({ ...document })
    expect([result.errors ?? [], result.valid]).toEqual([[], true])
    expect([document.openapi, validator.version]).toEqual(['3.1.0', '3.1'])
  },
)

test.each(['top-year-history', 'feed', 'search', 'free-llm', 'agent-chat'])(
  'the OpenAPI document of %s has the version of the interface, whatever the release',
  async (name) => {
    const { info } = await documentAt(`/docs/api/${name}`)
    expect(info.version).toBe('1.0.0')
  },
)

test('the OpenAPI document names every parameter, status and refusal code, and the envelope as it is parsed', async () => {
  const { paths, components } = await historyDocument()
  const operation = paths['/api/feed/history']?.get
  expect(operation?.parameters.map(({ name }) => name)).toEqual(['sort', 'at', 'If-None-Match'])
  expect(Object.keys(operation?.responses ?? {}).sort()).toEqual(['200', '304', '400', '404', '405', '503'])
  const text = JSON.stringify(operation?.responses)
  for (const code of HISTORY_REFUSALS) expect(text).toContain(`"${code}"`)
  expect(components.schemas['YearPublication']?.required).toEqual(Object.keys(yearEnvelopeSchema.shape))
  expect(JSON.stringify(paths)).toContain('#/components/schemas/YearPublication')
})

test('the OpenAPI document describes the published ledgers by their media type, status and refusal codes', async () => {
  const { paths } = await historyDocument()
  const described = ['ledger', 'ledger/legacy', 'head'].map((name) => {
    const operation = paths[`/api/feed/history/${name}`]?.get
    const answers = Object.entries(operation?.responses ?? {}) as [string, { content?: object }][]
    return [name, answers.map(([status]) => status), Object.keys(answers[0]?.[1].content ?? {})]
  })
  const statuses = ['200', '304', '405', '503']
  expect(described).toEqual([
    ['ledger', statuses, ['application/x-ndjson']],
    ['ledger/legacy', statuses, ['application/x-ndjson']],
    ['head', ['200', '304', '404', '405', '503'], ['application/json']],
  ])
})

test('the OpenAPI document of the live feed names its media types, codes and what they say', async () => {
  const { paths, components } = await documentAt('/docs/api/feed')
  const described = Object.entries(paths).map(([path, { get }]) => {
    const answers = get.responses as Record<string, { content?: object }>
    return [path, Object.keys(answers), Object.keys(answers['200']?.content ?? {})]
  })
  const statuses = ['200', '304', '400', '404', '405', '503']
  expect(described).toEqual([
    ['/api/feed', statuses, ['application/json']],
    ['/api/rss', statuses, ['application/rss+xml']],
    ['/api/atom', statuses, ['application/atom+xml']],
    ['/api/feed.json', statuses, ['application/feed+json']],
  ])
  const refused = paths['/api/feed']?.get.responses ?? {}
  for (const code of LIVE_REFUSALS) expect(JSON.stringify(refused)).toContain(`"${code}"`)
  expect(refused['400']).toMatchObject({
    content: {
      'application/json': {
        schema: { required: ['error'], properties: { history: { enum: ['/api/feed/history?sort=year'] } } },
      },
    },
  })
  expect(Object.keys(components.schemas).sort().join(' ')).toBe(
    'JsonFeed LiveFeed LiveHackerNewsItem LiveHypeItem LiveItem LiveLessWrongItem LiveLobstersItem',
  )
})

test('a real answer fits the published schema', async () => {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(sampleSignals())
  await publishDays(workspace, [AS_OF])
  const { bytes } = await askHistory(openApp(workspace), '?sort=year')
  expect(yearEnvelopeSchema.safeParse(JSON.parse(bytes.toString())).success).toBe(true)
})

test('every page and what it loads come from this server, under a policy that allows nothing else', async () => {
  const app = openApp(await openWorkspace())
  for (const path of ['/', '/docs', ...DOCUMENTS]) {
    const response = await app.request(`http://dash.test${path}`)
    const page = await response.text()
    expect([path, response.status]).toEqual([path, 200])
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(response.headers.get('content-security-policy')).not.toMatch(/https?:/)
    expect(page).not.toMatch(/<(?!a\s)[^>]*\s(?:src|href|action)="(?:https?:)?\/\//)
    expect(page).not.toMatch(/<script(?![^>]*\ssrc=)/)
    for (const [, asset = ''] of page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)) {
      const loaded = await app.request(`http://dash.test${asset}`)
      expect([asset, loaded.status]).toEqual([asset, 200])
      expect((await loaded.arrayBuffer()).byteLength).toBeGreaterThan(0)
    }
  }
})

test('the pages of a demo say so, the pages of a real server do not', async () => {
  const workspace = await openWorkspace()
  const [described = ''] = DOCUMENTS
  for (const path of ['/', '/docs', described, `${described}/openapi.json`]) {
    const demo = await openApp(workspace, { demo: true }).request(`http://dash.test${path}`)
    const real = await openApp(workspace).request(`http://dash.test${path}`)
    const marks = [demo.headers.get('x-dash-demo'), real.headers.get('x-dash-demo')]
    expect([path, ...marks]).toEqual([path, 'true', null])
    expect(await demo.text()).toContain('DEMO')
    expect(await real.text()).not.toContain('DEMO')
  }
})

test('what no route answers has a short body that repeats nothing of the request', async () => {
  const app = openApp(await openWorkspace())
  const missing = await app.request('http://dash.test/secret-path?token=1')
  expect([missing.status, await missing.text()]).toEqual([404, '{"error":"not_found"}'])
  const malformed = await app.request('http://dash.test/%ZZ')
  expect([malformed.status, await malformed.text()]).toEqual([400, '{"error":"bad_request"}'])
})
