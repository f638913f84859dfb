import { PassThrough } from 'node:stream'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BODY_MAX_BYTES } from '../../../src/domain/agent/bounds.ts'
import { TOOL_DEFINITIONS } from '../../../src/domain/agent/tools.ts'
import { UNTRUSTED } from '../../../src/domain/agent/shown-data.ts'
import type { Signal } from '../../../src/domain/feed/signal.ts'
import type { SearchCaller } from '../../../src/domain/feed/search/search.ts'
import type { CallerSearch } from '../../../src/domain/ports.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { runCall } from '../../../src/server/agent/tools.ts'
import type { AgentSources } from '../../../src/server/agent/tools.ts'
import { MCP_REFUSALS, mcpContract } from '../../../src/server/mcp/route.ts'
import type { McpPorts, McpRefusal } from '../../../src/server/mcp/route.ts'
import { serveStdio } from '../../../src/server/mcp/tool-server.ts'
import { settledWorkspace, sourcesOf } from '../agent/agent-reads.ts'
import { openApp, listenLocally } from '../../support/api-client.ts'
import { examplesOf } from '../../documents/examples.ts'
import { ranges } from '../../adapters/articles/pages.ts'
import { AS_OF, openWorkspace, publishDays, RUN_AT, sampleSignals } from '../../support/workspace.ts'
import { ownOrigins } from '../../../src/domain/agent/chat-request.ts'

const NOW = RUN_AT + 3_600_000
const ALLOWED = 'https://allowed.example'
const never = new AbortController().signal

async function startMcp(
  changes: Partial<Omit<McpPorts, 'sources'>> & { sources?: Partial<AgentSources> } = {},
  signals: readonly Signal[] = sampleSignals(),
) {
  const workspace = await settledWorkspace(signals, NOW)
  await publishDays(workspace, [AS_OF])
  const faults: unknown[] = []
  const sources = { ...sourcesOf(workspace, NOW), ...changes.sources }
  let origins: readonly string[] = []
  const mcp: McpPorts = {
    version: '1.2.3',
    demo: false,
    origins: () => origins,
    trustedProxies: [],
    requestsPerMinute: 1_000,
    clock: () => NOW,
    onFault: (_, error) => faults.push(error),
    ...changes,
    sources,
  }
  const server = await listenLocally(openApp(workspace, { mcp }))
  // An opaque origin is never allowed, even if it is listed.
  origins = [...ownOrigins(server.url, null), ALLOWED, 'null']
  return { url: server.url, sources, faults }
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  // The class has the members of the interface, which does not say that they may be undefined.
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)) as Transport)
  onTestFinished(() => client.close())
  return client
}

const TYPES = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }

const post = (
  url: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Response> => fetch(`${url}/mcp`, { method: 'POST', body, headers: { ...TYPES, ...headers } })

const message = (rest: object): string => JSON.stringify({ jsonrpc: '2.0', ...rest })

/** A call of a tool as it is sent. */
const toolCall = (name: string, given: object, id = 1): string =>
  message({ id, method: 'tools/call', params: { name, arguments: given } })

const PING = message({ id: 1, method: 'ping' })

/** The code of a refusal, which is held to the contract. */
async function refused(response: Response): Promise<string> {
  const { status, headers } = response
  const body = (await response.json()) as { error: McpRefusal; retryAfterSeconds?: number }
  expect(MCP_REFUSALS).toContain(body.error)
  expect(status).toBe(mcpContract.refusals[body.error].status)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('vary')).toBe('Origin')
  expect(headers.get('retry-after')).toBe(body.retryAfterSeconds?.toString() ?? null)
  return body.error
}

describe('the tools over HTTP', () => {
  test('the tools over HTTP are those of the chat, marked as read-only, and of a demo as a sample', async () => {
    const client = await connect((await startMcp()).url)
    expect(client.getServerVersion()).toMatchObject({ name: 'dash', version: '1.2.3' })
    expect(client.getInstructions()).toContain('never instructions')
    const { tools } = await client.listTools()
    const required = [['query'], ['period'], [], ['key'], ['key'], []]
    expect(
      tools.map(({ name, description, inputSchema }) => ({ name, description, parameters: inputSchema })),
    ).toEqual(
      TOOL_DEFINITIONS.map(({ parameters, ...tool }, index) => ({
        ...tool,
        parameters: { ...parameters, required: required[index] },
      })),
    )
    for (const tool of tools)
      expect(tool).toMatchObject({
        annotations: {
          readOnlyHint: true,
          destructiveHint: false,
          idempotentHint: true,
          openWorldHint: false,
        },
        outputSchema: {
          type: 'object',
          properties: { untrusted: { const: true }, notice: { const: UNTRUSTED.notice } },
          required: ['untrusted', 'notice', 'source'],
        },
      })
    const demo = await connect((await startMcp({ demo: true })).url)
    expect(demo.getServerVersion()).toMatchObject({ title: 'DEMO: dash' })
    expect(demo.getInstructions()).toMatch(/^DEMO: /)
  })

  test("a tool over HTTP returns the chat's result, as text and as structured content marked as untrusted", async () => {
    const { url, sources } = await startMcp()
    const client = await connect(url)
    // The client holds values to the schema only when it knows the tools.
    await client.listTools()
    const [name, given] = ['get_feed_snapshot', { sort: 'week', limit: 2 }] as const
    const { content, structuredContent, isError } = await client.callTool({ name, arguments: given })
    const call = { name, arguments: JSON.stringify(given) }
    const options = { group: 'chat', onFault: () => undefined } as const
    const { output, failed } = await runCall(call, sources, options, never)
    expect([failed, isError, content]).toEqual([false, undefined, [{ type: 'text', text: output }]])
    expect(structuredContent).toEqual(JSON.parse(output))
    expect(structuredContent).toMatchObject({ untrusted: true, source: `dash ${name}` })
  })

  test('the tools over HTTP return readable errors for a wrong call, an unknown tool and a failing store', async () => {
    const { url, faults } = await startMcp({
      sources: { feed: () => Promise.reject(new Error('the disk is gone')) },
    })
    const client = await connect(url)
    await client.listTools()
    const errorOf = async (name: string, given?: Record<string, unknown>): Promise<string> => {
      const result = await client.callTool({ name, ...(given && { arguments: given }) })
      expect(result).toMatchObject({ isError: true })
      expect(result.structuredContent).toBeUndefined()
      const [text] = result.content as { text: string }[]
      return (JSON.parse(text?.text ?? '') as { error: string }).error
    }
    expect(await errorOf('search_items', { query: ['two', 'words'] })).toContain('query: ')
    expect(await errorOf('search_items')).toContain('query: ')
    expect(await errorOf('drop_tables', {})).toContain('unknown tool')
    expect(await errorOf('search_items', { query: 'x'.repeat(5_000) })).toContain('longer than 4096')
    expect(faults).toEqual([])
    expect(await errorOf('get_feed_snapshot', { sort: 'week', limit: 1 })).toBe('the data could not be read')
    expect(faults).toMatchObject([{ message: 'the disk is gone' }])
  })
})

describe('POST /mcp', () => {
  test('POST /mcp responds with JSON and its length, without a session, and is 404 when it is off', async () => {
    const { url } = await startMcp()
    const response = await post(url, PING)
    expect([response.status, await response.json()]).toEqual([200, { jsonrpc: '2.0', id: 1, result: {} }])
    const { 'mcp-session-id': session, ...headers } = Object.fromEntries(response.headers)
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'content-length': expect.any(String) })
    expect([headers['content-type'], session]).toEqual([
      expect.stringContaining('application/json'),
      undefined,
    ])
    const notified = await post(url, message({ method: 'notifications/initialized' }))
    expect([notified.status, await notified.text()]).toEqual([202, ''])
    const off = openApp(await openWorkspace())
    expect((await off.request('http://dash.test/mcp', { method: 'POST', body: PING })).status).toBe(404)
  })

  test('POST /mcp refuses pages of other origins, and needs no origin for other clients', async () => {
    const { url } = await startMcp()
    for (const origin of ['https://evil.example', 'null', url.replace('127.0.0.1', 'rebound.example')])
      expect(await refused(await post(url, PING, { origin }))).toBe('forbidden_origin')
    const allowed = (response: Response): unknown[] => [
      response.status,
      response.headers.get('access-control-allow-origin'),
    ]
    for (const origin of [ALLOWED, url])
      expect(allowed(await post(url, PING, { origin }))).toEqual([200, origin])
    expect(allowed(await post(url, PING))).toEqual([200, null])
    const preflight = (origin: string): Promise<Response> =>
      fetch(`${url}/mcp`, { method: 'OPTIONS', headers: { origin } })
    const response = await preflight(ALLOWED)
    expect(allowed(response)).toEqual([204, ALLOWED])
    expect(response.headers.get('access-control-allow-headers')).toContain('mcp-protocol-version')
    expect(allowed(await preflight('https://evil.example'))[1]).toBeNull()
  })

  test('POST /mcp accepts one protocol message of bounded length', async () => {
    const { url } = await startMcp()
    expect(await refused(await post(url, 'x'.repeat(BODY_MAX_BYTES + 1)))).toBe('payload_too_large')
    for (const [body, headers, status, code] of [
      [`[${PING}]`, {}, 400, -32_600],
      ['{bad', {}, 400, -32_700],
      ['{"a":1}', {}, 400, -32_600],
      [PING, { 'content-type': 'text/plain' }, 415, -32_000],
      [PING, { accept: 'text/html' }, 406, -32_000],
      [PING, { 'mcp-protocol-version': '1999-01-01' }, 400, -32_000],
    ] as const) {
      const response = await post(url, body, headers)
      expect(response.status).toBe(status)
      expect(await response.json()).toMatchObject({ jsonrpc: '2.0', error: { code } })
    }
  })

  test('POST /mcp counts the requests of an address per minute', async () => {
    let now = NOW
    const trustedProxies = ranges('127.0.0.1')
    const { url } = await startMcp({ requestsPerMinute: 2, clock: () => now, trustedProxies })
    const from = (address: string): Promise<Response> => post(url, PING, { 'x-forwarded-for': address })
    for (const _time of [1, 2]) expect((await from('192.0.2.1')).status).toBe(200)
    const third = await from('192.0.2.1')
    expect(Number(third.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refused(third)).toBe('rate_limited')
    expect((await from('192.0.2.2')).status).toBe(200)
    now += 60_000
    expect((await from('192.0.2.1')).status).toBe(200)
  })

  test('POST /mcp queries the search for an MCP client, and not as the chat', async () => {
    const callers: SearchCaller[] = []
    const none = (): Promise<never> => Promise.reject(new Refusal('item_not_found'))
    const by = (caller: SearchCaller): CallerSearch => {
      callers.push(caller)
      return { search: none, similar: none, itemTrend: none, termTrend: none }
    }
    const { url } = await startMcp({ sources: { search: { by } } })
    const call = toolCall('find_similar_items', { key: 'hn-hn3', limit: 1 })
    expect((await post(url, call)).status).toBe(200)
    expect(callers).toMatchObject([{ group: 'mcp' }])
  })
})

test('the page about the tools shows client settings as complete JSON, with absolute paths or the URL', () => {
  const blocks = examplesOf('docs/mcp.md').filter(({ language }) => language === 'json')
  const configurations = blocks.map(({ text }) => JSON.parse(text) as Record<string, unknown>)
  expect(configurations).toHaveLength(3)
  for (const { mcpServers, servers = mcpServers } of configurations) {
    const { dash } = servers as { dash: { command?: string; args?: string[]; url?: string } }
    if (dash.url === undefined)
      expect([dash.command, dash.args?.[0], ...(dash.args ?? []).slice(2)]).toEqual([
        '/usr/bin/node',
        '/opt/dash/dist/cli/main.js',
        '--dotenv',
        '/etc/dash/.env',
      ])
    else expect(new URL(dash.url).pathname).toBe('/mcp')
  }
})

test('a cancelled call on standard input gets no response, and its reads are aborted', async () => {
  const input = new PassThrough()
  const output = new PassThrough()
  input.write(`${toolCall('get_feed_snapshot', { sort: 'week', limit: 1 })}\n`)
  const { sources, faults } = await startMcp({
    sources: {
      feed() {
        input.end(`${message({ method: 'notifications/cancelled', params: { requestId: 1 } })}\n`)
        return new Promise<never>(() => undefined)
      },
    },
  })
  const tools = { sources, version: '1.2.3', demo: false }
  const onFault = (_: string, error: unknown): void => void faults.push(error)
  await serveStdio({ ...tools, onFault }, { input, output, signal: never, onProblem: expect.unreachable })
  expect(output.read()).toBeNull()
  // Nobody gave it up as reading that takes too long.
  expect(faults).toEqual([])
})
