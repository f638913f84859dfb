import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import type { H3, H3Event } from 'h3'
import { LRUCache } from 'lru-cache'
import type { IpRange } from '../../domain/address.ts'
import { networkOf } from '../../domain/client-address.ts'
import { sha256Hex } from '../../domain/digest.ts'
import { fairQueue } from '../../domain/fair-queue.ts'
import type { SlotBounds } from '../../domain/fair-queue.ts'
import type { Clock } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addressOf, requestRate } from '../callers.ts'
import { NO_STORE, respond, respondCompressed } from '../respond.ts'
import { heldBack, retryAfter } from '../route.ts'
import { singleFlight, once } from '../single-flight.ts'
import { NOTHING, codeSpans, html } from './html.ts'
import { HTML_TYPE, PAGE_HEADERS, layout, pageQuery } from './layout.ts'
import type { Frame, PageQuery, QueryRules } from './layout.ts'
import { recordReads } from './page-sources.ts'
import type { PageSources, RecordedReads } from './page-sources.ts'

/** Renders that one address, and one network, may ask for in a minute. */
const PER_MINUTE = { address: 120, network: 240 }

/** Renders that may wait. */
const WAITING: SlotBounds = { perAddress: 12, perNetwork: 12, all: 32 }

/** Pause after a render, in its own durations: a tenth of the time at most is spent on rendering. */
const PAUSE_SHARE = 9

/** After this time the pause begins although the render goes on: it waits for a store, and holds nothing up. */
const SLOW_MS = 12

/** Seconds in which a full line of waiting renders is surely shorter. */
const LINE_SECONDS = 4

/**
 * Lets renders begin one after another, with pauses between them, so that whatever else is served meets few of them.
 * Addresses are served in turn.
 */
export interface RenderTurns {
  /**
   * Runs a render when its turn comes.
   *
   * @param address whose request causes it
   * @throws Refusal `page_limit` when too many wait, or the address or its network has used up its minute; also for a render that
   *   waits, when another network needs its place
   */
  run<T>(address: string, render: () => Promise<T>): Promise<T>
}

interface Job {
  address: string
  render(): Promise<unknown>
  refuse(limit: Refusal): void
}

/** @param pause between two renders, in milliseconds */
export function renderTurns(clock: Clock, pause: (ms: number) => Promise<unknown> = sleep): RenderTurns {
  const countAddress = requestRate(PER_MINUTE.address, clock)
  const countNetwork = requestRate(PER_MINUTE.network, clock)
  const line = fairQueue<Job>(WAITING)
  let isServing = false

  const admit = (job: Job): void => {
    // Who is over the rate takes no place from others.
    const seconds = countAddress(job.address) ?? countNetwork(networkOf(job.address))
    if (seconds !== null) throw pageLimit(seconds)
    let admission = line.add(job.address, job)
    if (admission === 'all_full') {
      const displaced = line.displace(job.address)
      displaced?.refuse(pageLimit(LINE_SECONDS))
      if (displaced) admission = line.add(job.address, job)
    }
    if (admission !== 'admitted') throw pageLimit(LINE_SECONDS)
  }
  const serveLine = async (): Promise<void> => {
    if (isServing) return
    isServing = true
    // Who asks in the same turn of the event loop shares a render that has not begun.
    await nextTurn()
    for (let next = line.next(); next; next = line.next()) {
      line.leave(next.address)
      const startedAt = performance.now()
      await Promise.race([next.render().catch(() => undefined), sleep(SLOW_MS)])
      await pause(PAUSE_SHARE * Math.min(SLOW_MS, performance.now() - startedAt))
    }
    isServing = false
  }
  return {
    run: (address, render) =>
      new Promise((resolve, reject) => {
        admit({ address, render: () => render().then(resolve, reject), refuse: reject })
        void serveLine()
      }),
  }
}

function pageLimit(retryAfterSeconds: number): Refusal {
  return new Refusal('page_limit', undefined, { members: { retryAfterSeconds } })
}

/** True for the refusal of a render, whose members say how long to wait. */
function isPageLimit(error: unknown): error is Refusal {
  return error instanceof Refusal && error.code === 'page_limit'
}

/** Bytes and pages kept, all together. */
const MAX_BYTES = 32 * 1024 * 1024
const MAX_PAGES = 500

/** A page as it is sent. */
export interface RenderedPage {
  status: number
  headers: Readonly<Record<string, string>>
  body: Buffer
  gzip: Buffer
  /** Digest of the body; null for a page that is not kept and never a 304. */
  digest: string | null
}

/** Rendered pages by address, up to a number of bytes and of pages; the one used longest ago goes first. */
export interface KeptPages {
  /** The page of an address, if everything it was rendered from is unchanged; read again after this was called. */
  current(key: string): Promise<RenderedPage | null>
  /** Keeps a page in place of an earlier one of the same address. */
  keep(key: string, page: RenderedPage, reads: Pick<RecordedReads, 'isUnchanged'>): void
  forget(key: string): void
}

export function keptPages(maxBytes = MAX_BYTES, maxPages = MAX_PAGES): KeptPages {
  const kept = new LRUCache<string, { page: RenderedPage; isUnchanged: RecordedReads['isUnchanged'] }>({
    max: maxPages,
    maxSize: maxBytes,
    sizeCalculation: ({ page }) => page.body.byteLength + page.gzip.byteLength,
  })
  return {
    forget: (key) => void kept.delete(key),
    async current(key) {
      const found = kept.get(key)
      return found && (await found.isUnchanged()) ? found.page : null
    },
    keep: (key, page, reads) =>
      void kept.set(key, { page, isUnchanged: singleFlight(() => reads.isUnchanged()) }),
  }
}

/** What every page may refuse with before it is rendered (docs/page.md). */
const REFUSALS = {
  query_too_long: {
    status: 400,
    title: 'This address is too long',
    when: 'a query has at most 1,024 bytes, and what the start page keeps of it in its links at most 512',
  },
  page_limit: {
    status: 429,
    title: 'Too many new pages at once',
    when: 'your address, or all together, asked for more pages that had to be made than this server makes at a time; try again in a moment',
  },
}

/** A refusal as a page. It is made once: under a flood it must cost next to nothing. */
function refusalPage(frame: Frame, code: keyof typeof REFUSALS) {
  const { status, title, when } = REFUSALS[code]
  const body = once(() => {
    const main = html`<h1>${title}</h1>
      <p class="refusal" role="alert"><code>${code}</code>: ${codeSpans(when)}.</p>
      <p><a href="/">The start page</a></p>`
    return Buffer.from(layout(frame, { title, head: NOTHING, rooms: [], main }))
  })
  return (event: H3Event, headers: Readonly<Record<string, string>> = {}): Response =>
    respond(event, status, { ...PAGE_HEADERS, ...NO_STORE, 'content-type': HTML_TYPE, ...headers }, body())
}

const compress = promisify(zlib.gzip)

/** Most bytes of a page's query, as it was sent. */
const QUERY_MAX_BYTES = 1_024

/** What a render gives: a text of any type, or the address to go to instead. */
interface PageText {
  status: number
  headers: Readonly<Record<string, string>>
  text: string
}

/** One page: its path, the parameters it knows, and how it is rendered. */
export interface Page {
  path: string
  query?: QueryRules
  /** Reads from the given sources alone. What is thrown is the server's fault; panels show their refusals themselves. */
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
interface Flight {
  /** Whether it reads already: who asks from then on needs to know that nothing has changed since. */
  begun: boolean
  /** In whose turn it is. */
  address: string
  page: Promise<RenderedPage>
}

/**
 * Serves pages from memory while everything they were rendered from is unchanged, which is read again for each request;
 * renders the others one after another, each page once for all who ask for it, within limits by address and in all
 * (docs/decisions/0051-page-cache.md).
 */
export function servePages(app: H3, { frame, sources, trustedProxies }: PagesPorts): MountPage {
  const kept = keptPages()
  const flights = new Map<string, Flight>()
  const refuseQuery = refusalPage(frame, 'query_too_long')
  const refuseRender = refusalPage(frame, 'page_limit')
  // A flood of queries never takes the turns of the pages that have none.
  const turns = { plain: renderTurns(sources.clock), asked: renderTurns(sources.clock) }

  const render = async (page: Page, key: string, query: PageQuery, event: H3Event): Promise<RenderedPage> => {
    const reads = recordReads(sources)
    const { status, headers, text } = await page.render(reads.sources, query, event)
    const body = Buffer.from(text)
    const isKept = status === 200 && reads.isConsistent()
    const digest = isKept ? sha256Hex(body) : null
    const rendered = { status, headers, body, gzip: await compress(body), digest }
    if (isKept) kept.keep(key, rendered, reads)
    else if (!reads.wasCrowded()) kept.forget(key)
    return rendered
  }

  const begin = (turn: RenderTurns, page: Page, key: string, query: PageQuery, event: H3Event): Flight => {
    const address = addressOf(event, trustedProxies)
    const start = (): Promise<RenderedPage> => {
      flight.begun = true
      return render(page, key, query, event)
    }
    const flight: Flight = { begun: false, address, page: turn.run(address, start) }
    flights.set(key, flight)
    const end = (): void => void (flights.get(key) === flight && flights.delete(key))
    flight.page.then(end, end)
    return flight
  }

  const pageOf = async (page: Page, query: PageQuery, event: H3Event): Promise<RenderedPage> => {
    const isPlain = query.params.size === 0
    const key = isPlain ? page.path : `${page.path}?${String(query.params)}`
    for (;;) {
      const current = await kept.current(key)
      if (current) return current
      const flight = flights.get(key)
      if (!flight) return begin(turns[isPlain ? 'plain' : 'asked'], page, key, query, event).page
      const isJoined = !flight.begun
      try {
        const rendered = await flight.page
        if (isJoined) return rendered
      } catch (error) {
        // What another address may not have, this one may.
        const isOthers = isPageLimit(error) && flight.address !== addressOf(event, trustedProxies)
        if (isJoined && !isOthers) throw error
      }
    }
  }

  return (page) => {
    app.get(page.path, async (event) => {
      const { carriedMax = QUERY_MAX_BYTES } = page.query ?? {}
      if (sentQueryBytes(event) > QUERY_MAX_BYTES) return refuseQuery(event)
      const query = pageQuery(event.url.searchParams, page.query, page.path)
      if (String(query.params).length > carriedMax) return refuseQuery(event)
      try {
        return respondRendered(event, await pageOf(page, query, event))
      } catch (error) {
        if (!isPageLimit(error)) throw error
        await heldBack()
        return refuseRender(event, retryAfter(error.members))
      }
    })
  }
}

/** As it was sent: parsing makes some characters longer. */
function sentQueryBytes(event: H3Event): number {
  const target = event.runtime?.node?.req.url ?? event.req.url
  const start = target.indexOf('?')
  return start === -1 ? 0 : Buffer.byteLength(target) - Buffer.byteLength(target.slice(0, start + 1))
}

function respondRendered(event: H3Event, { status, headers, body, gzip, digest }: RenderedPage): Response {
  if (status === 303) return respond(event, status, headers, null)
  return respondCompressed(event, status, headers, { body, gzip: () => gzip, digest })
}
