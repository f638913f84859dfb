import { promisify } from 'node:util'
import zlib from 'node:zlib'
import type { H3, H3Event } from 'h3'
import { LRUCache } from 'lru-cache'
import type { IpRange } from '../../domain/address.ts'
import { sha256Hex } from '../../domain/digest.ts'
import { Refusal } from '../../domain/refusal.ts'
import { once } from '../../domain/once.ts'
import { addressOf } from '../callers.ts'
import { BUSY_REFUSAL } from '../computed-requests.ts'
import type { ComputedRequests } from '../computed-requests.ts'
import { NO_STORE, notesOf, respond, respondCompressed } from '../respond.ts'
import { delayRefusal, retryAfter } from '../route.ts'
import { singleFlight } from '../single-flight.ts'
import { searchForm } from './header.ts'
import { NOTHING, codeSpans, html } from './html.ts'
import { HTML_TYPE, PAGE_HEADERS, layout, pageQuery } from './layout.ts'
import type { Frame, PageQuery, QueryRules } from './layout.ts'
import { recordReads } from './page-sources.ts'
import type { PageSources, RecordedReads } from './page-sources.ts'

/** Size of the page cache, in bytes and in pages. */
const MAX_BYTES = 32 * 1024 * 1024
const MAX_PAGES = 500

/** A page as it is sent. */
export interface RenderedPage {
  status: number
  headers: Readonly<Record<string, string>>
  body: Buffer
  gzip: Buffer
  /** Digest of the body; null for a page that is not cached and never a 304. */
  digest: string | null
}

/** A cache of rendered pages by URL, bounded in bytes and pages, which evicts the least recently used page. */
export interface PageCache {
  /** Resolves to the page of a URL if all of its reads, repeated after this call, are unchanged; else to null. */
  get(key: string): Promise<RenderedPage | null>
  /** Caches a page and replaces an earlier one of the same URL. */
  set(key: string, page: RenderedPage, reads: Pick<RecordedReads, 'isUnchanged'>): void
  delete(key: string): void
}

export function openPageCache(maxBytes = MAX_BYTES, maxPages = MAX_PAGES): PageCache {
  const cache = new LRUCache<string, { page: RenderedPage; isUnchanged: RecordedReads['isUnchanged'] }>({
    max: maxPages,
    maxSize: maxBytes,
    sizeCalculation: ({ page }) => page.body.byteLength + page.gzip.byteLength,
  })
  return {
    delete: (key) => void cache.delete(key),
    async get(key) {
      const cached = cache.get(key)
      return cached && (await cached.isUnchanged()) ? cached.page : null
    },
    set: (key, page, reads) =>
      void cache.set(key, { page, isUnchanged: singleFlight(() => reads.isUnchanged()) }),
  }
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
    when: 'a query has at most 1,024 bytes, and the part that the start page repeats in its links at most 512',
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
    return Buffer.from(layout(frame, { title, head: NOTHING, main }))
  })
  return (event: H3Event, headers: Readonly<Record<string, string>> = {}): Response =>
    respond(event, status, { ...PAGE_HEADERS, ...NO_STORE, 'content-type': HTML_TYPE, ...headers }, body())
}

const compress = promisify(zlib.gzip)

/** Most bytes of a page's query, as it was sent. */
const QUERY_MAX_BYTES = 1_024

/** The result of a render: a text of any type, or a redirect. */
interface PageText {
  status: number
  headers: Readonly<Record<string, string>>
  text: string
}

/** A page: its path, its query parameters, and its renderer. */
export interface Page {
  path: string
  query?: QueryRules
  /**
   * Renders the page from the given sources only. An error is a fault of the server; panels show their refusals
   * themselves.
   */
  render(sources: PageSources, query: PageQuery, event: H3Event): Promise<PageText> | PageText
}

export interface PagesPorts {
  frame: Frame
  /** Shared by all clients. */
  sources: PageSources
  trustedProxies: readonly IpRange[]
  computed: ComputedRequests
}

function isBusy(error: unknown): error is Refusal {
  return error instanceof Refusal && error.code === 'busy'
}

/** Mounts a page. */
export type MountPage = (page: Page) => void

/** A render under way. */
interface PendingRender {
  /** True once the render has started to read: later requests must check that nothing has changed since. */
  hasStarted: boolean
  /** Address whose request started it. */
  address: string
  page: Promise<RenderedPage>
}

/**
 * Serves a cached page while its reads, repeated for each request, are unchanged. Renders another page once for all
 * concurrent requests, as a computed request of the address that asked first (docs/decisions/0051-page-cache.md).
 */
export function servePages(app: H3, { frame, sources, trustedProxies, computed }: PagesPorts): MountPage {
  const cache = openPageCache()
  const pendingRenders = new Map<string, PendingRender>()
  const refuseQuery = refusalPage(frame, 'query_too_long')
  const refuseRender = refusalPage(frame, 'busy')

  const render = async (page: Page, key: string, query: PageQuery, event: H3Event): Promise<RenderedPage> => {
    const reads = recordReads(sources)
    const { status, headers, text } = await page.render(reads.sources, query, event)
    const body = Buffer.from(text)
    const isCacheable = status === 200 && reads.isConsistent()
    const digest = isCacheable ? sha256Hex(body) : null
    const rendered = { status, headers, body, gzip: await compress(body), digest }
    if (isCacheable) cache.set(key, rendered, reads)
    else cache.delete(key)
    return rendered
  }

  const startRender = (page: Page, key: string, query: PageQuery, event: H3Event): PendingRender => {
    // A page without a query counts as a separate caller, so that no address can delay it.
    const address = query.params.size === 0 ? page.path : addressOf(event, trustedProxies)
    const start = (): Promise<RenderedPage> => {
      pending.hasStarted = true
      return render(page, key, query, event)
    }
    const pending: PendingRender = { hasStarted: false, address, page: computed.run(address, start) }
    pendingRenders.set(key, pending)
    const end = (): void => void (pendingRenders.get(key) === pending && pendingRenders.delete(key))
    pending.page.then(end, end)
    return pending
  }

  const renderedPage = async (page: Page, query: PageQuery, event: H3Event): Promise<RenderedPage> => {
    const key = query.params.size === 0 ? page.path : `${page.path}?${String(query.params)}`
    for (;;) {
      const cached = await cache.get(key)
      if (cached) return cached
      const pending = pendingRenders.get(key)
      notesOf(event.runtime?.node?.res).endTurn?.()
      if (!pending) return startRender(page, key, query, event).page
      const joinedBeforeStart = !pending.hasStarted
      try {
        const rendered = await pending.page
        if (joinedBeforeStart) return rendered
      } catch (error) {
        // The refusal of another address does not apply to this one.
        const isOtherAddress = isBusy(error) && pending.address !== addressOf(event, trustedProxies)
        if (joinedBeforeStart && !isOtherAddress) throw error
      }
    }
  }

  return (page) => {
    app.get(page.path, async (event) => {
      const { linkQueryMaxBytes = QUERY_MAX_BYTES } = page.query ?? {}
      if (sentQueryBytes(event) > QUERY_MAX_BYTES) return refuseQuery(event)
      const query = pageQuery(event.url.searchParams, page.query, page.path)
      if (String(query.params).length > linkQueryMaxBytes) return refuseQuery(event)
      try {
        return respondRendered(event, await renderedPage(page, query, event))
      } catch (error) {
        if (!isBusy(error)) throw error
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
