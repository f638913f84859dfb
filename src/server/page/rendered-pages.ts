import { promisify } from 'node:util'
import zlib from 'node:zlib'
import type { H3, H3Event } from 'h3'
import { LRUCache } from 'lru-cache'
import type { IpRange } from '../../domain/address.ts'
import { sha256Hex } from '../../domain/digest.ts'
import { isRefusal } from '../../domain/refusal.ts'
import { once } from '../../domain/once.ts'
import type { CallerSearch, Clock, State } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import type { Agent } from '../agent/routes.ts'
import { addressOf } from '../callers.ts'
import { BUSY_REFUSAL } from '../computed-requests.ts'
import type { ComputedRequests } from '../computed-requests.ts'
import type { ProvedSnapshots } from '../feed/proved-snapshots.ts'
import type { ServedRecommendation } from '../models/routes.ts'
import type { StoredRuns } from '../models/changes-feed.ts'
import { NO_STORE, requestId, respond, respondCompressed } from '../respond.ts'
import { delayRefusal, retryAfter } from '../route.ts'
import type { Log } from '../route.ts'
import type { ProvedPublications } from '../year/proved-publications.ts'
import type { ReadYearLists } from '../year/year-lists.ts'
import { searchForm, HTML_TYPE, PAGE_HEADERS, layout, pageQuery } from './layout.ts'
import { NOTHING, codeSpans, html } from './html.ts'
import type { Frame, PageQuery, QueryRules } from './layout.ts'
import type { ShownLog } from './year/proof-panel.ts'

export interface PageSources {
  clock: Clock
  snapshots: ProvedSnapshots
  publications: Pick<ProvedPublications, 'entries' | 'publication'>
  lists: ReadYearLists
  log: () => Promise<ShownLog>
  recommendation: ServedRecommendation
  runs: StoredRuns
  agent: Pick<Agent, 'config'> & { status: Agent['pageStatus'] }
  audits: Pick<State['audits'], 'newest'>
  search: Pick<CallerSearch, 'itemTrend' | 'search' | 'similar'>
}

export interface View {
  sources: PageSources
  frame: Frame
  log: Log
  requestId: string
  now: Instant
  query: PageQuery
}

/** Time for which a rendered page is served, in milliseconds from the start of its render. */
const LIFETIME_MS = 10_000

/** Size of the page cache, in bytes and in pages. */
const MAX_BYTES = 32 * 1024 * 1024
const MAX_PAGES = 500

interface RenderedPage {
  status: number
  headers: Readonly<Record<string, string>>
  body: Buffer
  gzip: Buffer
  /** Digest of the body; null for a page that is not cached and never a 304. */
  digest: string | null
}

/** Refusals of every page before rendering (docs/page.md). */
const REFUSALS = {
  not_found: {
    status: 404,
    title: 'This page does not exist',
    when: 'this server has no page at the requested address',
  },
  query_too_long: {
    status: 400,
    title: 'This address is too long',
    when: 'a query has at most 1,024 bytes',
  },
  busy: { status: BUSY_REFUSAL.status, title: 'Too many requests at once', when: BUSY_REFUSAL.when },
}

/** Returns a function that responds with a page for a refusal, rendered once so that it is cheap under a flood. */
export function refusalPage(frame: Frame, code: keyof typeof REFUSALS) {
  const { status, title, when } = REFUSALS[code]
  const body = once(() => {
    const main = html`<h1>${title}</h1>
      ${
        code === 'not_found'
          ? html`<p>Search for it, or read what is here.</p>
              ${searchForm('search-again')}`
          : html`<p class="refusal" role="alert"><code>${code}</code>: ${codeSpans(when)}.</p>`
      }
      <p><a href="/">The start page</a></p>`
    return Buffer.from(layout(frame, { title: `${title} · dash`, head: NOTHING, main }))
  })
  return (event: H3Event, headers: Readonly<Record<string, string>> = {}): Response =>
    respond(event, status, { ...PAGE_HEADERS, ...NO_STORE, 'content-type': HTML_TYPE, ...headers }, body())
}

const compress = promisify(zlib.gzip)

/** Most bytes of a page's query, as it was sent: the links of a page repeat it. */
const QUERY_MAX_BYTES = 1_024

/** The result of a render, or a redirect. */
interface PageText {
  status: number
  headers: Readonly<Record<string, string>>
  text: string
  /** True if a part could not be shown: the next request renders it again. */
  isPartial?: boolean
}

export interface Page {
  path: string
  query?: QueryRules
  /** Renders the page. An error is a fault of the server; sections show their refusals themselves. */
  render(view: View): Promise<PageText> | PageText
}

export interface PagesPorts {
  frame: Frame
  /** Shared by all clients. */
  sources: PageSources
  trustedProxies: readonly IpRange[]
  computed: ComputedRequests
  log: Log
}

export type MountPage = (page: Page) => void

/**
 * Serves a page for ten seconds once it is rendered. Requests share a render, which is a computed request of the address
 * that asked first (docs/decisions/0051-page-cache.md).
 */
export function servePages(app: H3, ports: PagesPorts): MountPage {
  const { frame, sources, trustedProxies, computed, log } = ports
  const cache = new LRUCache<string, RenderedPage>({
    max: MAX_PAGES,
    maxSize: MAX_BYTES,
    sizeCalculation: ({ body, gzip }) => body.byteLength + gzip.byteLength,
    ttl: LIFETIME_MS,
  })
  const pendingRenders = new Map<string, Promise<RenderedPage>>()
  const refuseQuery = refusalPage(frame, 'query_too_long')
  const refuseRender = refusalPage(frame, 'busy')

  const render = async (page: Page, key: string, query: PageQuery, event: H3Event): Promise<RenderedPage> => {
    const start = performance.now()
    const id = requestId(event.req.headers)
    const view = { sources, frame, log, requestId: id, now: sources.clock(), query }
    const { status, headers, text, isPartial = false } = await page.render(view)
    const body = Buffer.from(text)
    const isCacheable = status === 200 && !isPartial
    const digest = isCacheable ? sha256Hex(body) : null
    const rendered = { status, headers, body, gzip: await compress(body), digest }
    if (isCacheable) cache.set(key, rendered, { start })
    return rendered
  }

  const startRender = (page: Page, key: string, query: PageQuery, event: H3Event): Promise<RenderedPage> => {
    // A page without a query counts as a separate caller, so that no address can delay it.
    const address = query.params.size === 0 ? page.path : addressOf(event, trustedProxies)
    const response = event.runtime?.node?.res
    const rendered = computed
      .run(address, () => render(page, key, query, event), response)
      .finally(() => pendingRenders.delete(key))
    pendingRenders.set(key, rendered)
    return rendered
  }

  const renderedPage = async (page: Page, query: PageQuery, event: H3Event): Promise<RenderedPage> => {
    const key = `${page.path}?${String(query.params)}`
    for (;;) {
      const cached = cache.get(key)
      if (cached) return cached
      const pending = pendingRenders.get(key)
      if (!pending) return startRender(page, key, query, event)
      try {
        return await pending
      } catch (error) {
        // A refusal of another request does not apply to this one.
        if (!isRefusal(error, 'busy')) throw error
      }
    }
  }

  return (page) => {
    app.get(page.path, async (event) => {
      if (sentQueryBytes(event) > QUERY_MAX_BYTES) return refuseQuery(event)
      const query = pageQuery(event.url.searchParams, page.query, page.path)
      try {
        return respondRendered(event, await renderedPage(page, query, event))
      } catch (error) {
        if (!isRefusal(error, 'busy')) throw error
        await delayRefusal()
        return refuseRender(event, retryAfter(error.members))
      }
    })
  }
}

/** Length of the query as sent, in bytes: parsing lengthens some characters. */
function sentQueryBytes(event: H3Event): number {
  const target = event.runtime?.node?.req.url ?? event.req.url
  const start = target.indexOf('?')
  return start === -1 ? 0 : Buffer.byteLength(target) - Buffer.byteLength(target.slice(0, start + 1))
}

function respondRendered(event: H3Event, { status, headers, body, gzip, digest }: RenderedPage): Response {
  if (status === 303) return respond(event, status, headers, null)
  return respondCompressed(event, status, headers, { body, gzip: () => gzip, digest })
}
