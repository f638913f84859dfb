import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import type { H3, H3Event } from 'h3'
import { LRUCache } from 'lru-cache'
import type { IpRange } from '../../domain/address.ts'
import { sha256Hex } from '../../domain/digest.ts'
import { fairQueue } from '../../domain/fair-queue.ts'
import type { SlotBounds } from '../../domain/fair-queue.ts'
import { Refusal } from '../../domain/refusal.ts'
import { once } from '../../domain/once.ts'
import { addressOf } from '../callers.ts'
import { NO_STORE, respond, respondCompressed } from '../respond.ts'
import { delayRefusal, retryAfter, retryLater } from '../route.ts'
import { singleFlight } from '../single-flight.ts'
import { searchForm } from './header.ts'
import { NOTHING, codeSpans, html } from './html.ts'
import { HTML_TYPE, PAGE_HEADERS, layout, pageQuery } from './layout.ts'
import type { Frame, PageQuery, QueryRules } from './layout.ts'
import { recordReads } from './page-sources.ts'
import type { PageSources, RecordedReads } from './page-sources.ts'

/** Renders that may wait or run. */
const QUEUE_SLOTS: SlotBounds = { perAddress: 32, perNetwork: 32, all: 64 }

/** Most renders that start at once, so that they share reads of the stores. */
const STARTS_MAX = 8

/** Time, in milliseconds, for which renders may block other requests without a pause. */
const SHORT_MS = 4

/** Pause after a longer block, as a multiple of its duration: renders of up to 12 ms take at most a tenth of the time. */
const PAUSE_FACTOR = 9

/** Longest pause after a block, and pauses that may be owed, in milliseconds: one block may be something else's. */
const PAUSE_MAX_MS = 108

/**
 * Time, in milliseconds, after which the next renders start although these continue: they then wait for a store and do
 * not block.
 */
const RENDER_WAIT_MS = 12

/** Seconds after which a full queue has become shorter. */
const QUEUE_RETRY_SECONDS = 4

/**
 * Starts as many renders at once as block other requests for a short time only, with pauses after those that block them
 * longer. Addresses take turns.
 */
export interface RenderQueue {
  /**
   * Runs a render when its turn comes.
   *
   * @param address whose request causes it
   * @throws Refusal `page_limit` if the queue is full, or if another network takes the slot of this waiting render
   */
  run<T>(address: string, render: () => Promise<T>): Promise<T>
}

interface Job {
  address: string
  render(): Promise<unknown>
  refuse(limit: Refusal): void
}

/** The clock and the event loop of a queue, with times in milliseconds. */
export interface RenderTimes {
  now: () => number
  pause: (ms: number) => Promise<unknown>
  /** Begins to measure; the result ends it and returns the longest time for which the event loop was blocked. */
  watch: () => () => number
}

const TIMES: RenderTimes = {
  now: () => performance.now(),
  pause: sleep,
  watch() {
    let [last, longest] = [performance.now(), 0]
    const tick = (): void => {
      const now = performance.now()
      ;[last, longest] = [now, Math.max(longest, now - last)]
    }
    const timer = setInterval(tick, 1)
    return () => {
      clearInterval(timer)
      tick()
      return longest
    }
  },
}

export function openRenderQueue(times: Partial<RenderTimes> = {}): RenderQueue {
  const { now, pause, watch } = { ...TIMES, ...times }
  const queue = fairQueue<Job>(QUEUE_SLOTS)
  let isRunning = false
  /** Most renders that start at once now. */
  let starts = 1
  /** When all pauses that are owed would be over. */
  let pausedUntil = 0

  const admit = (job: Job): void => {
    let admission = queue.add(job.address, job)
    if (admission === 'all_full') {
      const displaced = queue.displace(job.address)
      displaced?.refuse(pageLimit())
      if (displaced) admission = queue.add(job.address, job)
    }
    if (admission !== 'admitted') throw pageLimit()
  }
  const takeJobs = (count: number): Job[] => {
    const jobs: Job[] = []
    for (let next = queue.next(); next; next = jobs.length < count ? queue.next() : undefined) jobs.push(next)
    return jobs
  }
  const start = (job: Job): Promise<void> =>
    job
      .render()
      .catch(() => undefined)
      .then(() => queue.leave(job.address))
  const runQueue = async (): Promise<void> => {
    if (isRunning) return
    isRunning = true
    // Requests of the same turn of the event loop share a render that has not started.
    await nextTurn()
    for (;;) {
      const owed = pausedUntil - now()
      if (owed > PAUSE_MAX_MS) await pause(owed - PAUSE_MAX_MS)
      const jobs = takeJobs(starts)
      if (jobs.length === 0) break
      const endWatch = watch()
      await Promise.race([Promise.all(jobs.map(start)), sleep(RENDER_WAIT_MS)])
      const blocked = endWatch()
      const isShort = blocked <= SHORT_MS
      starts = isShort ? Math.min(STARTS_MAX, starts + 1) : Math.ceil(jobs.length / 2)
      if (!isShort)
        pausedUntil = Math.max(pausedUntil, now()) + Math.min(PAUSE_MAX_MS, PAUSE_FACTOR * blocked)
      await nextTurn()
    }
    isRunning = false
  }
  return {
    run: (address, render) =>
      new Promise((resolve, reject) => {
        admit({ address, render: () => render().then(resolve, reject), refuse: reject })
        void runQueue()
      }),
  }
}

const pageLimit = (): Refusal => retryLater('page_limit', QUEUE_RETRY_SECONDS)

/** True for the refusal of a render, whose members include `retryAfterSeconds`. */
function isPageLimit(error: unknown): error is Refusal {
  return error instanceof Refusal && error.code === 'page_limit'
}

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
  page_limit: {
    status: 429,
    title: 'Too many new pages at once',
    when: 'as many new pages wait as the server allows, for your address or in all; try again in a moment',
  },
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
 * concurrent requests; the renders that wait are limited per address and in all (docs/decisions/0051-page-cache.md).
 */
export function servePages(app: H3, { frame, sources, trustedProxies }: PagesPorts): MountPage {
  const cache = openPageCache()
  const pendingRenders = new Map<string, PendingRender>()
  const refuseQuery = refusalPage(frame, 'query_too_long')
  const refuseRender = refusalPage(frame, 'page_limit')
  // Separate queues, so that a flood of queries never delays pages without a query.
  const queues = { withoutQuery: openRenderQueue(), withQuery: openRenderQueue() }

  const render = async (page: Page, key: string, query: PageQuery, event: H3Event): Promise<RenderedPage> => {
    const reads = recordReads(sources)
    const { status, headers, text } = await page.render(reads.sources, query, event)
    const body = Buffer.from(text)
    const isCacheable = status === 200 && reads.isConsistent()
    const digest = isCacheable ? sha256Hex(body) : null
    const rendered = { status, headers, body, gzip: await compress(body), digest }
    if (isCacheable) cache.set(key, rendered, reads)
    else if (!reads.wasSearchBusy()) cache.delete(key)
    return rendered
  }

  const startRender = (
    queue: RenderQueue,
    page: Page,
    key: string,
    query: PageQuery,
    event: H3Event,
  ): PendingRender => {
    const address = addressOf(event, trustedProxies)
    const start = (): Promise<RenderedPage> => {
      pending.hasStarted = true
      return render(page, key, query, event)
    }
    const pending: PendingRender = { hasStarted: false, address, page: queue.run(address, start) }
    pendingRenders.set(key, pending)
    const end = (): void => void (pendingRenders.get(key) === pending && pendingRenders.delete(key))
    pending.page.then(end, end)
    return pending
  }

  const renderedPage = async (page: Page, query: PageQuery, event: H3Event): Promise<RenderedPage> => {
    const hasNoQuery = query.params.size === 0
    const key = hasNoQuery ? page.path : `${page.path}?${String(query.params)}`
    for (;;) {
      const cached = await cache.get(key)
      if (cached) return cached
      const pending = pendingRenders.get(key)
      if (!pending)
        return startRender(queues[hasNoQuery ? 'withoutQuery' : 'withQuery'], page, key, query, event).page
      const joinedBeforeStart = !pending.hasStarted
      try {
        const rendered = await pending.page
        if (joinedBeforeStart) return rendered
      } catch (error) {
        // The refusal of another address does not apply to this one.
        const isOtherAddress = isPageLimit(error) && pending.address !== addressOf(event, trustedProxies)
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
        if (!isPageLimit(error)) throw error
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
