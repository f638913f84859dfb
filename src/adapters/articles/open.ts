import pLimit from 'p-limit'
import type { IpRange } from '../../domain/address.ts'
import { textLocations, plainText } from '../../domain/feed/article.ts'
import type { SkipReason, ItemWithoutText } from '../../domain/feed/article.ts'
import { isNewsSource } from '../../domain/feed/source.ts'
import type { NewsSource } from '../../domain/feed/source.ts'
import type { ArticleTexts, Clock } from '../../domain/ports.ts'
import { messageOf } from '../../domain/refusal.ts'
import { mediaTypeOf, withTimeLimit } from '../http.ts'
import { workerProcess } from '../worker-process.ts'
import { NEWS_ITEMS } from '../sources/news-items.ts'
import type { NewsUrls } from '../sources/news-items.ts'
import type { SourceClient } from '../sources/source-client.ts'
import { credibleEncoding, decode, headerEncoding, isBinary, likelyEncoding } from './decode.ts'
import type { ExtractRequest, Extracted } from './extract.ts'
import {
  MAX_REDIRECTS,
  openGuardedConnections,
  PageClient,
  PageProblem,
  asPageProblem,
  parsePageUrl,
} from './page-client.ts'
import type { NameLookup, PageHead, PageResponse } from './page-client.ts'
import { ROBOTS_MAX_BYTES, forbidsKeeping, parseRobots } from './robots.ts'
import type { RobotsRules } from './robots.ts'

/** Product token that robots.txt rules name; also the first word of the user agent. */
const PRODUCT_TOKEN = 'dash'

const PAGE_MS = 30_000
const ROBOTS_MS = 10_000

export interface ArticleTextsOptions {
  urls: NewsUrls
  /** Requests the sources' own APIs, whose addresses the operator chooses: they may be private. */
  fetchJson: SourceClient['fetchJson']
  /** User agent sent to the servers of pages, beginning with the product token `dash`. */
  userAgent: string
  clock: Clock
  /** Address ranges that pages may be read from although they are not public. */
  allowed: readonly IpRange[]
  lookup?: NameLookup
  extractor?: ExtractorOptions
  /** Time limit of all requests for one page, in milliseconds. */
  pageMs?: number
}

/** A text and its provenance. */
interface ExtractedText {
  text: string
  provenance: string
}

/**
 * Opens the reader of item texts for one run. It reads them from the items' sources and from the pages they link to
 * (docs/articles.md).
 */
export function openArticleTexts(
  options: ArticleTextsOptions,
): ArticleTexts & { close: () => Promise<void> } {
  const { userAgent, clock, allowed, lookup, pageMs = PAGE_MS } = options
  const http = openGuardedConnections(allowed, lookup)
  const extractor = openExtractor(options.extractor)
  const client = new PageClient(http, userAgent, clock)
  const reader = {
    ...options,
    client,
    extractor,
    pageMs,
    robots: new Map<string, Promise<RobotsRules>>(),
  }
  return {
    async read(item, signal) {
      try {
        return { kind: 'text', ...(await readItem(reader, item, signal)) }
      } catch (error) {
        signal.throwIfAborted()
        const { why, message, notBefore } = asPageProblem(
          error,
          item.url ?? `${item.source} ${item.sourceId}`,
        )
        if (why === null) return { kind: 'failed', reason: message, notBefore }
        return { kind: 'skipped', why, detail: message, notBefore }
      }
    },
    async close() {
      await Promise.all([extractor.close(), http.close()])
    },
  }
}

interface ArticleReader extends Pick<ArticleTextsOptions, 'fetchJson' | 'urls'> {
  client: PageClient
  extractor: Extractor
  pageMs: number
  /** The rules of each origin, requested once per run. */
  robots: Map<string, Promise<RobotsRules>>
}

/** Reads the text of an item at the first place that has one. */
async function readItem(
  reader: ArticleReader,
  item: Pick<ItemWithoutText, 'source' | 'sourceId' | 'url'>,
  signal: AbortSignal,
): Promise<ExtractedText> {
  const { source, sourceId, url } = item
  for (const place of textLocations(item)) {
    if (place === 'page' && url !== null) return fetchPageText(reader, url, signal)
    if (place === 'source' && isNewsSource(source)) {
      const html = await fetchSourceHtml(reader, source, sourceId, signal)
      if (html === '') continue
      const text = plainTextOf(await reader.extractor.extract({ as: 'fragment', html }, signal))
      if (text !== '') return { text, provenance: NEWS_ITEMS[source].textProvenance }
    }
  }
  throw new PageProblem('noText', `${source} ${sourceId}: the item has neither a text nor a link`)
}

/**
 * Requests the text that a news source itself holds of an item, as HTML; empty if it holds none.
 *
 * @throws PageProblem `gone` if the source does not know the item or has deleted it; a failure if it does not
 *   respond or returns another item
 */
async function fetchSourceHtml(
  { fetchJson, urls }: ArticleReader,
  source: NewsSource,
  sourceId: string,
  signal: AbortSignal,
): Promise<string> {
  const { request: requestFor, shape } = NEWS_ITEMS[source]
  const request = requestFor(urls[source], sourceId, 'text')
  const item = await fetchJson({ ...request, absent: null, shape }, signal)
  if (item === null) throw new PageProblem('gone', `${source} ${sourceId}: the source no longer has it`)
  if (item.id !== sourceId)
    throw new PageProblem(
      null,
      `${request.url}: the response is about ${JSON.stringify(item.id.slice(0, 80))}`,
    )
  return item.html ?? ''
}

/** Maximum size of a page after decompression; real articles are far smaller, with everything around them. */
const PAGE_MAX_BYTES = 2 * 1024 * 1024

/** Minimum length of an article in characters; a shorter one is a notice. */
const ARTICLE_MIN_LENGTH = 200

const MARKUP_TYPES: ReadonlySet<string> = new Set(['text/html', 'application/xhtml+xml'])
const PLAIN_TYPES: ReadonlySet<string> = new Set(['text/plain', 'text/markdown', 'text/x-markdown'])

/** Types that say as little as none. */
const UNKNOWN_TYPE = /^[^/]*$|^\*\/\*$|\/unknown$/

/** The beginning of HTML, for pages without a type. */
const MARKUP = /^\s*</

const STATUS_SKIPS: Readonly<Record<number, SkipReason>> = {
  401: 'refused',
  402: 'refused',
  403: 'refused',
  404: 'gone',
  407: 'refused',
  410: 'gone',
  451: 'refused',
}

/**
 * Requests a page and returns its article as plain text with its provenance. A page without an article may open another
 * page.
 *
 * @param hops number of such pages so far
 * @throws PageProblem; errors of the network
 */
async function fetchPageText(
  reader: ArticleReader,
  page: string,
  signal: AbortSignal,
  hops = 0,
): Promise<ExtractedText> {
  const request = {
    url: page,
    accept: 'text/html, application/xhtml+xml, text/plain;q=0.8',
    maxBytes: PAGE_MAX_BYTES,
    // Uses the signal of the run, not of this page: the rules apply to every page of the origin.
    beforeRequest: (each: URL) => requireAllowed(reader, each, signal),
    beforeBody: requireReadable,
  } as const
  const response = await withTimeLimit(reader.pageMs, signal, (limitedSignal) =>
    reader.client.get(request, limitedSignal),
  )
  const { url, status, contentType, notBefore, bytes, isCut } = response
  if (status < 200 || status > 299)
    throw new PageProblem(STATUS_SKIPS[status] ?? null, `${url.href}: responded with ${status}`, {
      notBefore,
    })
  if (isCut) throw new PageProblem('tooLarge', `${url.href}: it is larger than ${PAGE_MAX_BYTES} bytes`)
  const type = mediaTypeOf(contentType)
  if (UNKNOWN_TYPE.test(type) && !MARKUP.test(decode(bytes.subarray(0, 1_024), 'utf-8')))
    throw unsupportedType(url, type)
  const isPlain = PLAIN_TYPES.has(type)
  const extracted: Extracted = isPlain
    ? {
        kind: 'text',
        text: decode(bytes, credibleEncoding(headerEncoding(contentType), bytes) ?? likelyEncoding(bytes)),
      }
    : await reader.extractor.extract({ as: 'page', bytes, contentType, token: PRODUCT_TOKEN }, signal)
  if (extracted.kind === 'text' && isBinary(extracted.text))
    throw new PageProblem('notHtml', `${url.href}: binary data as ${type || 'a page'}`)
  const text = plainTextOf(extracted)
  if (text.length >= ARTICLE_MIN_LENGTH)
    return { text, provenance: `page:${isPlain ? 'plain-text' : 'readability'} ${url.href}` }
  const { target = null } = extracted
  if (target !== null && hops === MAX_REDIRECTS)
    throw new PageProblem('redirects', `${url.href}: more than ${MAX_REDIRECTS} pages that open another one`)
  if (target !== null) return fetchPageText(reader, parsePageUrl(target, url).href, signal, hops + 1)
  if (extracted.kind === 'forbidden') throw forbidden(url)
  throw new PageProblem('noText', `${url.href}: no article found on the page`)
}

function requireReadable({ url, contentType, robotsTags }: PageHead): void {
  if (robotsTags.some((directives) => forbidsKeeping(directives, PRODUCT_TOKEN))) throw forbidden(url)
  const type = mediaTypeOf(contentType)
  if (!UNKNOWN_TYPE.test(type) && !MARKUP_TYPES.has(type) && !PLAIN_TYPES.has(type))
    throw unsupportedType(url, type)
}

function unsupportedType(url: URL, type: string): PageProblem {
  return new PageProblem('notHtml', `${url.href}: unsupported media type ${type.slice(0, 80) || '(none)'}`)
}

function plainTextOf(extracted: Extracted): string {
  return extracted.kind === 'text' ? plainText(extracted.text) : ''
}

function forbidden(url: URL): PageProblem {
  return new PageProblem('robots', `${url.href}: the page forbids storing its text`)
}

/** @throws PageProblem `robots` if the origin disallows the URL; a failure if its rules cannot be read */
async function requireAllowed(reader: ArticleReader, url: URL, signal: AbortSignal): Promise<void> {
  const rules = reader.robots.get(url.origin) ?? fetchRules(reader, url.origin, signal)
  reader.robots.set(url.origin, rules)
  const allows = await rules
  if (!allows(url.pathname + url.search))
    throw new PageProblem('robots', `${url.href}: the robots.txt of ${url.host} forbids reading it`)
}

const ALLOW_ALL: RobotsRules = () => true

async function fetchRules(
  { client }: ArticleReader,
  origin: string,
  signal: AbortSignal,
): Promise<RobotsRules> {
  const url = `${origin}/robots.txt`
  let response: PageResponse
  try {
    const request = { url, accept: 'text/plain, */*;q=0.5', maxBytes: ROBOTS_MAX_BYTES }
    response = await withTimeLimit(ROBOTS_MS, signal, (limitedSignal) => client.get(request, limitedSignal))
  } catch (error) {
    const problem = asPageProblem(error, url)
    // Counts as no rules: RFC 9309, 2.3.1.2.
    if (problem.why === 'redirects') return ALLOW_ALL
    throw problem
  }
  const { status, notBefore, bytes, isCut } = response
  if (status >= 200 && status < 300) {
    const text = decode(bytes, 'utf-8')
    // A part of a rule would be another rule.
    const whole = isCut ? text.slice(0, Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')) + 1) : text
    return parseRobots(whole, PRODUCT_TOKEN)
  }
  if (status >= 400 && status < 500 && status !== 429) return ALLOW_ALL
  // The server failed, so nothing may be read (RFC 9309, 2.3.1.4).
  const reason = `responded with ${status}, so no page of this host is read`
  throw new PageProblem(null, `${response.url.href}: ${reason}`, { notBefore })
}

/** Time limit of one page; a normal page takes some tens of milliseconds. */
const EXTRACT_MS = 5_000

/** Time limit for starting the process, which loads a parser of HTML. */
const EXTRACTOR_START_MS = 60_000

const EXTRACTOR_HEAP_MEBIBYTES = 256

interface Extractor {
  /** @throws PageProblem if the extraction exceeds its limits or fails */
  extract(request: ExtractRequest, signal: AbortSignal): Promise<Extracted>
  close(): Promise<void>
}

export interface ExtractorOptions {
  /** Program of the process, from the build: Node does not load TypeScript. */
  script?: URL
  extractMs?: number
}

/** Opens an extractor of texts from HTML: a process, which is killed if a page needs too much time or memory. */
export function openExtractor({
  script = new URL('./extract-worker.js', import.meta.url),
  extractMs = EXTRACT_MS,
}: ExtractorOptions = {}): Extractor {
  const oneAtATime = pLimit(1)
  const worker = workerProcess(script, {
    name: 'extraction',
    startMs: EXTRACTOR_START_MS,
    env: {},
    execArgv: [`--max-old-space-size=${EXTRACTOR_HEAP_MEBIBYTES}`],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const extract = async (request: ExtractRequest, signal: AbortSignal): Promise<Extracted> => {
    signal.throwIfAborted()
    const stop = (): void => void worker.end()
    signal.addEventListener('abort', stop, { once: true })
    try {
      return (await worker.request(request, extractMs)) as Extracted
    } catch (cause) {
      signal.throwIfAborted()
      throw new PageProblem(null, `the text could not be extracted: ${messageOf(cause)}`, { cause })
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }
  return {
    extract: (request, signal) => oneAtATime(() => extract(request, signal)),
    close: () => worker.end(),
  }
}
