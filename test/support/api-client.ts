import type { H3 } from 'h3'
import { onTestFinished } from 'vitest'
import { BASE_URL } from '../../src/domain/models/catalogue.ts'
import { createApp } from '../../src/server/app.ts'
import type { ServerPorts } from '../../src/server/app.ts'
import { listenOn } from '../../src/server/listen.ts'
import type { ListenOptions, RunningServer } from '../../src/server/listen.ts'
import type { Log } from '../../src/server/route.ts'
import type { Agent } from '../../src/server/agent/routes.ts'

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
  return { status: response.status, headers: response.headers, page, text: plainText(page) }
}

/** HTML without its markup. */
export const plainText = (html: string): string => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')

/** The save keys of the rows of a page, in their order. */
export const keysIn = (page: string): string[] =>
  Array.from(page.matchAll(/data-key="([^"]*)"/g), ([, key = '']) => key)

/** The targets of the links of a page, in their order. */
export const hrefsIn = (page: string): string[] =>
  Array.from(page.matchAll(/href="([^"]*)"/g), ([, href = '']) => href.replaceAll('&amp;', '&'))

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
