import { H3 } from 'h3'
import type { H3Event } from 'h3'
import type { SearchCaller } from '../domain/feed/search.ts'
import type { IpRange } from '../domain/ip-address.ts'
import type { AuditLog, SharedFeedSearch } from '../domain/ports.ts'
import { addressOf } from './agent/caller.ts'
import type { Agent } from './agent/routes.ts'
import { coalesce } from './coalesce.ts'
import { mountDocs } from './docs/docs.ts'
import { publishedDocuments } from './docs/documents.ts'
import { liveRoutes } from './feed/live-routes.ts'
import { searchRoutes } from './feed/search-routes.ts'
import { mountHealth } from './health.ts'
import type { ReadinessChecks } from './health.ts'
import type { Log } from './log.ts'
import { mcpRoute } from './mcp/route.ts'
import type { McpPorts } from './mcp/route.ts'
import { freeModelRoutes } from './models/routes.ts'
import type { RequestMeter } from './metrics/request-meter.ts'
import { mountAssets } from './page/assets.ts'
import { challengeSources, chatPanel } from './page/chat-panel.ts'
import { feedPanel } from './page/feed-panel.ts'
import { pageHeaders } from './page/headers.ts'
import { mountHome } from './page/home.ts'
import type { HomePanels, HomeSources } from './page/home.ts'
import { mountItemPage } from './page/item-page.ts'
import type { Frame } from './page/layout.ts'
import { modelsPanel } from './page/models-panel.ts'
import { sharedSources } from './page/page-sources.ts'
import type { PageSources } from './page/page-sources.ts'
import { servePages } from './page/rendered-pages.ts'
import { auditFact, chatFact, feedFact, gapFact, modelFact, publicationFact } from './page/status-facts.ts'
import { statusPanel } from './page/status-panel.ts'
import { keptYears } from './page/year-view.ts'
import type { KeptYears } from './page/year-view.ts'
import { openReaders } from './readers.ts'
import type { ReaderPorts, Readers } from './readers.ts'
import { NO_STORE, requestId, respondJson } from './respond.ts'
import type { Route } from './route.ts'
import { history } from './year/history.ts'
import { ledgerRoutes } from './year/ledger-routes.ts'

export interface ServerPorts extends ReaderPorts {
  search: SharedFeedSearch
  /** Proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: readonly IpRange[]
  agent: Pick<Agent, 'routes' | 'config' | 'shownStatus'>
  /** The agent's tools for other programs; null while they are not offered. */
  mcp: McpPorts | null
  /** Address of the script of the human challenge; null while nobody has to prove to be human. */
  widgetUrl: string | null
  audits: Pick<AuditLog, 'newest'>
  checks: ReadinessChecks
  isDraining: () => boolean
  /** Is told which route answers. */
  requests: Pick<RequestMeter, 'routed'>
  demo: boolean
  /** Address the server is reached at from outside, without a slash at its end; asked once it listens. */
  baseUrl: () => string
}

/**
 * The whole HTTP application, without a socket.
 *
 * @param readers of what is served, where others share them
 */
export function createApp(ports: ServerPorts, readers = openReaders(ports)): H3 {
  const { log, demo, clock, requests } = ports
  const { publications, snapshots, recommendation } = readers
  const callerOf = (event: H3Event): SearchCaller => ({
    address: addressOf(event, ports.trustedProxies),
    isChat: false,
    signal: event.req.signal,
  })
  const app = new H3({
    silent: true,
    onResponse(response, event) {
      const answer = event.runtime?.node?.res
      if (answer) requests.routed(answer, event.context.matchedRoute?.route ?? null)
      if (demo) response.headers.set('x-dash-demo', 'true')
    },
    // What no route answers. The library's own error body would repeat the address asked for.
    onError: (error, event) => {
      if (error.status === 404) return respondJson(event, 404, NO_STORE, { error: 'not_found' })
      if (error.status < 500) return respondJson(event, error.status, NO_STORE, { error: 'bad_request' })
      log.error({ requestId: requestId(event.req.headers), err: error }, 'unexpected error')
      return respondJson(event, 500, NO_STORE, { error: 'internal_error' })
    },
  })
  mountHealth(app, ports.checks, ports.isDraining, log)
  const frame = { assets: mountAssets(app), demo }
  const sources = pageSources(ports, readers)
  const mount = servePages(app, { frame, sources, trustedProxies: ports.trustedProxies })
  const kept = keptYears()
  mountHome(mount, {
    frame,
    panelsOf: (read) => homePanels(ports, frame, kept, read),
    sources,
    headers: pageHeaders(challengeSources(ports.widgetUrl)),
    log,
  })
  mountItemPage(mount, frame, log)
  const live = liveRoutes(snapshots, () => ({ baseUrl: ports.baseUrl(), demo }))
  mountDocs(app, mount, publishedDocuments(demo), frame, ports.baseUrl)
  mountRoutes(app, [history(publications, clock), ...ledgerRoutes(publications), ...live], log)
  mountRoutes(app, searchRoutes(ports.search, callerOf), log)
  mountRoutes(app, freeModelRoutes(recommendation, demo, clock), log)
  mountRoutes(app, ports.agent.routes, log)
  if (ports.mcp) mountRoutes(app, [mcpRoute(ports.mcp)], log)
  return app
}

/** What panels read; readings without a memory of their own are shared by requests that come meanwhile. */
function pageSources({ clock, agent, audits, search }: ServerPorts, readers: Readers): PageSources {
  return sharedSources({
    ...readers,
    clock,
    search,
    agent: { config: coalesce(() => agent.config()), status: coalesce(() => agent.shownStatus()) },
    audits: { newest: coalesce(() => audits.newest()) },
  })
}

/** The panels of `/`, which read from the given sources and from nowhere else. */
function homePanels(
  { log, demo, baseUrl, widgetUrl }: ServerPorts,
  { assets }: Frame,
  kept: KeptYears,
  sources: HomeSources,
): HomePanels {
  const { snapshots, publications, recommendation, agent, audits } = sources
  const facts = [
    feedFact(snapshots),
    publicationFact(publications),
    gapFact(publications),
    auditFact(audits),
    modelFact(recommendation),
    chatFact(agent),
  ]
  const lead = feedPanel({ snapshots, publications, kept, baseUrl })
  const models = modelsPanel(recommendation, demo)
  return { panels: [statusPanel(facts, log), lead, models, chatPanel({ agent, assets, widgetUrl })], lead }
}

/** A route answers for its path under every method, so that a wrong one is a 405 and not a 404. */
function mountRoutes(app: H3, routes: readonly Route[], log: Log): void {
  for (const route of routes) app.all(route.path, (event) => route.handle(event, log))
}
