import { H3 } from 'h3'
import type { H3Event } from 'h3'
import type { IpRange } from '../domain/address.ts'
import type { State, FeedSearch } from '../domain/ports.ts'
import type { Objects } from '../domain/year/ports.ts'
import type { Agent } from './agent/routes.ts'
import { computeFor, openComputedRequests } from './computed-requests.ts'
import { mountDocs } from './docs/docs.ts'
import { publishedInterfaces } from './docs/openapi.ts'
import type { FeedHost } from './feed/feeds.ts'
import { liveRoutes } from './feed/live-routes.ts'
import { provedSnapshots } from './feed/proved-snapshots.ts'
import type { ProvedSnapshots, SnapshotReader } from './feed/proved-snapshots.ts'
import { searchRoutes } from './feed/search-routes.ts'
import { mcpRoute } from './mcp/route.ts'
import type { McpPorts } from './mcp/route.ts'
import { modelChangesRoute, storedRuns } from './models/changes-feed.ts'
import { freeModelRoutes, servedRecommendation } from './models/routes.ts'
import type { ServedRecommendation } from './models/routes.ts'
import type { StoredRuns } from './models/changes-feed.ts'
import { mountAssets } from './page/assets.ts'
import { chatPage, mountEmbed } from './page/chat-panel.ts'
import { homePage } from './page/home-page.ts'
import { ITEM_PAGE } from './page/item/item-page.ts'
import { MODELS_PAGE } from './page/models/models-page.ts'
import { refusalPage, servePages } from './page/rendered-pages.ts'
import type { PageSources } from './page/rendered-pages.ts'
import { SEARCH_PAGE } from './page/search-page.ts'
import { mountSections } from './page/sections.ts'
import { STATUS_PAGE } from './page/status-panel.ts'
import { shownLog } from './page/year/proof-panel.ts'
import { ROWS_PAGE } from './page/year/year-view.ts'
import { SINCE_PAGE } from './page/year/since-panel.ts'
import { NO_STORE, addHeader, requestId, respondJson } from './respond.ts'
import type { Log, Route } from './route.ts'
import { singleFlight, withTimeout } from './single-flight.ts'
import { historyRoutes, ledgerRoutes, objectRoute } from './year/routes.ts'
import { logRoutes, servedLog } from './year/log-routes.ts'
import { changesRoutes } from './year/year-changes.ts'
import { rankRoutes } from './year/rank-routes.ts'
import { yearListReader } from './year/year-lists.ts'
import type { ReadYearLists } from './year/year-lists.ts'
import { provedPublications } from './year/proved-publications.ts'
import type { ProvedPublications, PublicationPorts } from './year/proved-publications.ts'
import type { ServedLog } from './year/log-routes.ts'
import { V1_OFF, v1Routes } from './v1/routes.ts'
import type { V1Ports } from './v1/complete.ts'

export interface ServerPorts extends ReaderPorts {
  objects: ReaderPorts['objects'] & Pick<Objects, 'logFiles'>
  search: Pick<FeedSearch, 'by'>
  /** Proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: readonly IpRange[]
  agent: Pick<Agent, 'routes' | 'config' | 'pageStatus'>
  /** The agent's tools for MCP clients; null if they are off. */
  mcp: McpPorts | null
  /** The OpenAI-compatible interface; null if it is off. */
  v1: V1Ports | null
  /** URL of the script of the human challenge; null if no verification is required. */
  widgetUrl: string | null
  /** Origins whose pages may show the chat in a frame. */
  embedOrigins: readonly string[]
  audits: Pick<State['audits'], 'newest'>
  checks: ReadinessChecks
  isDraining: () => boolean
  demo: boolean
  /** Public URL of the server, without a trailing slash; called once the server listens. */
  baseUrl: () => string
}

/**
 * The whole HTTP application, without a socket.
 *
 * @param readers verified readers, if they are shared with other parts
 */
export function createApp(ports: ServerPorts, readers = openReaders(ports)): H3 {
  const { log, demo, clock, baseUrl } = ports
  const { publications, snapshots, recommendation, runs } = readers
  const computed = openComputedRequests()
  const compute = computeFor(computed, ports.trustedProxies)
  const app = new H3({
    silent: true,
    // A hook delays every response, so only the demo has one.
    ...(demo && { onResponse: (response: Response) => addHeader(response, 'x-dash-demo', 'true') }),
    // Requests that no route handles. The library's own error body would repeat the requested URL.
    onError: (error, event) => {
      if (error.status === 404) return respondNotFound(event)
      if (error.status < 500) return respondJson(event, error.status, NO_STORE, BAD_REQUEST)
      log.error({ requestId: requestId(event.req.headers), err: error }, 'unexpected error')
      return respondJson(event, 500, NO_STORE, { error: 'internal_error' })
    },
  })
  mountHealth(app, ports.checks, ports.isDraining, log)
  const frame = { assets: mountAssets(app), demo, baseUrl, widgetUrl: ports.widgetUrl }
  const notFoundPage = refusalPage(frame, 'not_found')
  const respondNotFound = (event: H3Event): Response =>
    asksForHtml(event) ? notFoundPage(event) : respondJson(event, 404, NO_STORE, NOT_FOUND)
  const lists = yearListReader(publications, ports.objects)
  const readLog = servedLog(ports.objects.logFiles, publications, clock)
  const sources = pageSources(ports, readers, lists, readLog)
  const mount = servePages(app, { frame, sources, trustedProxies: ports.trustedProxies, computed, log })
  const pages = [MODELS_PAGE, SINCE_PAGE, ROWS_PAGE, STATUS_PAGE, ITEM_PAGE, SEARCH_PAGE]
  for (const page of [homePage(frame), chatPage(frame), ...pages]) mountSections(mount, page)
  mountEmbed(app, mount, frame, ports.embedOrigins)
  mountDocs(app, mount, publishedInterfaces(demo), baseUrl)
  const host = (): FeedHost => ({ baseUrl: baseUrl(), demo })
  const live = liveRoutes(snapshots, host, compute)
  const listPorts = { publications, lists, clock, host, compute }
  const year = [
    ...historyRoutes(publications, clock, host, compute),
    ...ledgerRoutes(publications),
    objectRoute(publications),
    ...changesRoutes(listPorts),
    ...rankRoutes(listPorts),
    ...logRoutes(readLog, clock, compute),
  ]
  mountRoutes(app, [...year, ...live, ...searchRoutes(ports.search, compute)], log)
  const models = [
    ...freeModelRoutes(recommendation, demo, clock),
    modelChangesRoute({ runs, recommendation, host }),
  ]
  mountRoutes(app, [...models, ...ports.agent.routes], log)
  if (ports.mcp) mountRoutes(app, [mcpRoute(ports.mcp, compute)], log)
  mountRoutes(app, ports.v1 ? v1Routes(ports.v1, recommendation, compute) : [V1_OFF], log)
  return app
}

const NOT_FOUND = {
  error: 'not_found',
  message: 'no such path for this method; /docs lists the addresses of this server',
}

const BAD_REQUEST = {
  error: 'bad_request',
  message: 'the address cannot be decoded; percent-encode it, as %25 for %',
}

/** True for a browser that opens a page. */
function asksForHtml({ req }: H3Event): boolean {
  return ['GET', 'HEAD'].includes(req.method) && (req.headers.get('accept') ?? '').includes('text/html')
}

/** The sources of the pages. Concurrent requests share one read of a source that has no cache. */
function pageSources(
  { clock, agent, audits, search }: ServerPorts,
  readers: Readers,
  lists: ReadYearLists,
  readLog: () => Promise<ServedLog | null>,
): PageSources {
  return {
    ...readers,
    lists,
    log: () => shownLog(readLog),
    clock,
    search: search.by({ group: 'others', signal: null }),
    agent: {
      config: singleFlight(() => agent.config()),
      status: singleFlight(() => agent.pageStatus()),
    },
    audits: { newest: singleFlight(() => audits.newest()) },
  }
}

/** A route handles every method of its path, so that a wrong method is a 405 and not a 404. */
function mountRoutes(app: H3, routes: readonly Route[], log: Log): void {
  for (const route of routes) app.all(route.path, (event) => route.handle(event, log))
}

/** Readers of verified data; interfaces, pages and metrics share them. */
export interface Readers {
  publications: ProvedPublications
  snapshots: ProvedSnapshots
  recommendation: ServedRecommendation
  runs: StoredRuns
}

export interface ReaderPorts extends PublicationPorts {
  feed: SnapshotReader
  recommendations: Pick<Objects['recommendations'], 'current' | 'run' | 'versions'>
  /** URL of the routing service to publish with every recommendation. */
  publishedBaseUrl: string
  log: Log
}

export function openReaders(ports: ReaderPorts): Readers {
  const { recommendations, publishedBaseUrl, log, feed } = ports
  const recommendation = servedRecommendation(recommendations, publishedBaseUrl, log)
  return {
    publications: provedPublications(ports),
    snapshots: provedSnapshots(feed),
    recommendation,
    runs: storedRuns(recommendations, recommendation),
  }
}

/** The readiness check of each store; it resolves if the store can be used. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<void>>>

/** Two checks in a row finish within the five seconds that a load balancer or a scrape waits. */
const CHECK_TIMEOUT_MS = 2_000

/** Adds a timeout to each check: a store may accept a connection and never respond. */
export function checksWithTimeout(checks: ReadinessChecks, timeoutMs = CHECK_TIMEOUT_MS): ReadinessChecks {
  return Object.fromEntries(
    Object.entries(checks).map(([name, check]) => [name, () => withTimeout(check(), timeoutMs)]),
  )
}

/**
 * Mounts `/healthz`, which does no I/O, and `/readyz`, which is 503 while the server drains or a store is unreachable or
 * not migrated (docs/operations.md).
 */
export function mountHealth(app: H3, checks: ReadinessChecks, isDraining: () => boolean, log: Log): void {
  app.get('/healthz', (event) => respondJson(event, 200, NO_STORE, { status: 'ok' }))
  const checkAll = singleFlight(() => runChecks(checks, log))
  app.get('/readyz', async (event) => respondChecks(event, await checkAll(), isDraining()))
}

type CheckResults = [name: string, result: 'ok' | 'unavailable'][]

async function runChecks(checks: ReadinessChecks, log: Log): Promise<CheckResults> {
  return Promise.all(
    Object.entries(checks).map(async ([name, check]): Promise<CheckResults[number]> => {
      try {
        await check()
        return [name, 'ok']
      } catch (error) {
        log.warn({ check: name, err: error }, 'not ready')
        return [name, 'unavailable']
      }
    }),
  )
}

function respondChecks(event: H3Event, results: CheckResults, draining: boolean): Response {
  const ready = results.every(([, result]) => result === 'ok')
  const status = draining ? 'draining' : ready ? 'ready' : 'unavailable'
  const body = { status, checks: Object.fromEntries(results) }
  return respondJson(event, status === 'ready' ? 200 : 503, NO_STORE, body)
}
