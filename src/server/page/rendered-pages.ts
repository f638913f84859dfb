import { promisify } from 'node:util'
import zlib from 'node:zlib'
import type { H3, H3Event } from 'h3'
import { matchesEntityTag } from '../../domain/conditional.ts'
import { sha256Hex } from '../../domain/digest.ts'
import type { IpRange } from '../../domain/ip-address.ts'
import { addressOf } from '../agent/caller.ts'
import { acceptsGzip } from '../compression.ts'
import { respond } from '../respond.ts'
import { heldBack } from '../route.ts'
import { keptPages } from './kept-pages.ts'
import type { RenderedPage } from './kept-pages.ts'
import type { Frame } from './layout.ts'
import { pageQuery } from './page-query.ts'
import type { PageQuery, QueryRules } from './page-query.ts'
import { PageLimit, pageRefusals } from './page-refusals.ts'
import { recordReads } from './page-sources.ts'
import type { PageSources } from './page-sources.ts'
import { renderTurns } from './render-turns.ts'
import type { RenderTurns } from './render-turns.ts'

const compress = promisify(zlib.gzip)

/** Most bytes of a page's query, as it was sent. */
const QUERY_MAX_BYTES = 1_024

/** What a render gives: a text of any type, or the address to go to instead. */
export interface PageText {
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
 * (docs/decisions/0051-pages-from-memory.md).
 */
export function servePages(app: H3, { frame, sources, trustedProxies }: PagesPorts): MountPage {
  const kept = keptPages()
  const flights = new Map<string, Flight>()
  const refuse = pageRefusals(frame)
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
        const isOthers = error instanceof PageLimit && flight.address !== addressOf(event, trustedProxies)
        if (isJoined && !isOthers) throw error
      }
    }
  }

  return (page) => {
    app.get(page.path, async (event) => {
      const { carriedMax = QUERY_MAX_BYTES } = page.query ?? {}
      if (sentQueryBytes(event) > QUERY_MAX_BYTES) return refuse(event, 'query_too_long')
      const query = pageQuery(event.url.searchParams, page.query, page.path)
      if (String(query.params).length > carriedMax) return refuse(event, 'query_too_long')
      try {
        return respondRendered(event, await pageOf(page, query, event))
      } catch (error) {
        if (!(error instanceof PageLimit)) throw error
        await heldBack()
        return refuse(event, 'page_limit', error.retryAfterSeconds)
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
  const zipped = acceptsGzip(event.req.headers.get('accept-encoding'))
  const etag = digest === null ? null : zipped ? `"${digest}-gzip"` : `"${digest}"`
  const common = { ...headers, vary: 'Accept-Encoding', ...(etag === null ? {} : { etag }) }
  if (etag !== null && matchesEntityTag(event.req.headers.get('if-none-match'), etag))
    return respond(event, 304, common, null)
  if (!zipped) return respond(event, status, common, body)
  return respond(event, status, { ...common, 'content-encoding': 'gzip' }, gzip)
}
