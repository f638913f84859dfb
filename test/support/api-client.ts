import type { H3 } from 'h3'
import { onTestFinished } from 'vitest'
import { BASE_URL } from '../../src/domain/models/catalogue.ts'
import { createApp } from '../../src/server/app.ts'
import type { ServerPorts } from '../../src/server/app.ts'
import { listenOn } from '../../src/server/listen.ts'
import type { ListenOptions, RunningServer } from '../../src/server/listen.ts'
import type { Log } from '../../src/server/route.ts'
import type { Agent } from '../../src/server/agent/routes.ts'
import type { PublishedResponse } from '../../src/domain/year/published-ledger.ts'
import type { PublicHost } from '../../src/domain/ports.ts'
import { formatInstant } from '../../src/domain/time.ts'
import { seeBytes } from '../../src/domain/year/examine.ts'
import {
  PUBLISHED_HEAD,
  PUBLISHED_LEDGER,
  PUBLISHED_LEGACY_LEDGER,
} from '../../src/domain/year/published-ledger.ts'

export const silentLog: Log = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** An application on a free port of this machine, as `dash serve` bounds requests; closed when the test ends. */
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

interface ShownPage {
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
): Promise<ShownPage> {
  const response = await openApp(stores, changes).request(`http://dash.test${path}`)
  const page = await response.text()
  const text = page.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
  return { status: response.status, headers: response.headers, page, text }
}

/** The chat of a server on which none is set up. */
export const NO_CHAT: Pick<Agent, 'routes' | 'config' | 'shownStatus'> = {
  routes: [],
  config: async () => ({
    enabled: false,
    requireVerification: false,
    itemChat: true,
    briefEnabled: false,
    model: '',
    quotas: { messagesPerSession: 0, messagesPerDay: 0 },
  }),
  shownStatus: async () => ({ ok: true, service: 'agent-worker', budget: 'ok', itemChat: true }),
}

/** An answer with its whole body. */
type WholeAnswer = Omit<PublishedResponse, 'bytes' | 'seen'> & { bytes: Uint8Array }

/** What a lying host makes of an honest answer. `at` is null for its ledgers and its head. */
export type Lie = (
  answer: WholeAnswer,
  question: { path: string; at: number | null; held: readonly string[] },
) => Omit<PublishedResponse, 'seen'>

/** The public answers of an application without a socket, as an auditor asks for them. */
export function publishedBy(app: Pick<H3, 'request'>, lie: Lie = (answer) => answer): PublicHost['history'] {
  const ask = async (
    path: string,
    at: number | null,
    held: readonly string[],
  ): Promise<PublishedResponse> => {
    const ifNoneMatch = held.map((sha256) => `"${sha256}"`).join(', ')
    const response = await app.request(`http://dash.test${path}`, {
      headers: ifNoneMatch === '' ? {} : { 'if-none-match': ifNoneMatch },
    })
    const bytes = new Uint8Array(await response.arrayBuffer())
    const { error } = (
      response.status >= 400 ? JSON.parse(Buffer.from(bytes).toString()) : { error: null }
    ) as {
      error: string | null
    }
    const answer: WholeAnswer = {
      status: response.status,
      etag: response.headers.get('etag'),
      lastModified: response.headers.get('last-modified'),
      requestedAt: response.headers.get('x-year-history-requested-at'),
      error,
      bytes,
    }
    const told = lie(answer, { path, at, held })
    return { ...told, seen: seeBytes(told.bytes ?? new Uint8Array()) }
  }
  return {
    base: 'http://dash.test',
    ledger: () => ask(PUBLISHED_LEDGER, null, []),
    legacyLedger: () => ask(PUBLISHED_LEGACY_LEDGER, null, []),
    head: () => ask(PUBLISHED_HEAD, null, []),
    at: (instant, held) => ask(`/api/feed/history?sort=year&at=${formatInstant(instant)}`, instant, held),
  }
}

/** A refusal of a host, as it would send it. */
export function refusalAnswer(status: number, error: string | null): WholeAnswer {
  const bytes = new TextEncoder().encode(error === null ? 'oops' : JSON.stringify({ error }))
  return { status, etag: null, lastModified: null, requestedAt: null, error, bytes }
}
