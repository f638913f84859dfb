import type { H3 } from 'h3'
import { onTestFinished } from 'vitest'
import { BASE_URL } from '../../src/domain/models/catalogue.ts'
import { createApp } from '../../src/server/app.ts'
import type { ServerPorts } from '../../src/server/app.ts'
import { listenOn } from '../../src/server/listen.ts'
import type { ListenOptions, RunningServer } from '../../src/server/listen.ts'
import type { Log } from '../../src/server/route.ts'
import type { Agent } from '../../src/server/agent/routes.ts'
import { readResponse } from '../../src/adapters/audited-hosts.ts'
import type { PublishedResponse } from '../../src/domain/year/published-ledger.ts'
import type { PublishedHistory } from '../../src/domain/year/ports.ts'
import { formatInstant } from '../../src/domain/time.ts'

export const silentLog: Log = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** Serves an application on a free local port with the timeouts of `dash serve`; closed when the test ends. */
export async function listenLocally(app: H3, changes: Partial<ListenOptions> = {}): Promise<RunningServer> {
  const server = await listenOn(app, {
    host: '127.0.0.1',
    port: 0,
    log: silentLog,
    isDraining: () => false,
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 15_000,
    ...changes,
  })
  onTestFinished(() => server.close(0))
  return server
}

/** The stores of an application. */
type Stores = Pick<
  ServerPorts,
  'ledger' | 'objects' | 'year' | 'feed' | 'search' | 'recommendations' | 'audits'
> &
  Record<'ledger' | 'objects', { ping(): Promise<void> }>

/** The whole application over stores, without a socket. */
export function openApp(stores: Stores, changes: Partial<ServerPorts> = {}): H3 {
  return createApp({
    ...stores,
    trustedProxies: [],
    agent: NO_CHAT,
    mcp: null,
    v1: null,
    embedOrigins: [],
    widgetUrl: null,
    clock: Date.now,
    log: silentLog,
    checks: { ledger: () => stores.ledger.ping(), archive: () => stores.objects.ping() },
    isDraining: () => false,
    demo: false,
    publishedBaseUrl: BASE_URL,
    baseUrl: () => 'http://dash.test',
    ...changes,
  })
}

interface RenderedPage {
  status: number
  headers: Headers
  page: string
  /** Without the markup. */
  text: string
}

/** A page of the application over stores. */
export async function openPage(
  stores: Parameters<typeof openApp>[0],
  path: string,
  changes: Partial<ServerPorts> = {},
): Promise<RenderedPage> {
  const response = await openApp(stores, changes).request(`http://dash.test${path}`)
  const page = await response.text()
  const text = page.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
  return { status: response.status, headers: response.headers, page, text }
}

/** The chat of a server on which none is set up. */
export const NO_CHAT: Pick<Agent, 'routes' | 'config' | 'pageStatus'> = {
  routes: [],
  config: async () => ({
    enabled: false,
    requireVerification: false,
    itemChat: true,
    briefEnabled: false,
    model: '',
    quotas: { messagesPerSession: 0, messagesPerDay: 0 },
  }),
  pageStatus: async () => ({ ok: true, service: 'agent-worker', budget: 'ok', itemChat: true }),
}

/** A response as a host sends it. */
export interface SentResponse {
  status: number
  etag: string | null
  lastModified: string | null
  requestedAt: string | null
  bytes: Uint8Array
}

/** Changes an honest response as a lying host would. `at` is null for the ledgers and the head. */
export type Lie = (
  honest: SentResponse,
  request: { path: string; at: number | null; held: readonly string[] },
) => SentResponse

/** The public history of an application without a socket, as an auditor reads it. */
export function publishedBy(app: Pick<H3, 'request'>, tamper: Lie = (honest) => honest): PublishedHistory {
  const request = async (
    path: string,
    at: number | null,
    held: readonly string[],
  ): Promise<PublishedResponse> => {
    const ifNoneMatch = held.map((sha256) => `"${sha256}"`).join(', ')
    const response = await app.request(`http://dash.test${path}`, {
      headers: ifNoneMatch === '' ? {} : { 'if-none-match': ifNoneMatch },
    })
    const honest: SentResponse = {
      status: response.status,
      etag: response.headers.get('etag'),
      lastModified: response.headers.get('last-modified'),
      requestedAt: response.headers.get('x-year-history-requested-at'),
      bytes: new Uint8Array(await response.arrayBuffer()),
    }
    return received(tamper(honest, { path, at, held }))
  }
  return {
    base: 'http://dash.test',
    at: (instant, held) => request(`/api/feed/history?sort=year&at=${formatInstant(instant)}`, instant, held),
    file: (path) => request(path, null, []),
  }
}

/** Reads a response as an auditor does. */
async function received(sent: SentResponse): Promise<PublishedResponse> {
  const headers = {
    ...(sent.etag === null ? {} : { etag: sent.etag }),
    ...(sent.lastModified === null ? {} : { 'last-modified': sent.lastModified }),
    ...(sent.requestedAt === null ? {} : { 'x-year-history-requested-at': sent.requestedAt }),
  }
  const body = (async function* () {
    yield sent.bytes
  })()
  return readResponse({ statusCode: sent.status, headers, body }, Infinity)
}

/** A refusal of a host, as it would send it. */
export function refusalResponse(status: number, error: string | null): SentResponse {
  const bytes = new TextEncoder().encode(error === null ? 'oops' : JSON.stringify({ error }))
  return { status, etag: null, lastModified: null, requestedAt: null, bytes }
}
