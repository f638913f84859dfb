import { z } from 'zod'
import type { IpRange } from '../../domain/address.ts'
import { placesOfText, plainText } from '../../domain/feed/article.ts'
import type { ArticleReading, SkipReason, WantedItem } from '../../domain/feed/article.ts'
import { isNewsSource } from '../../domain/feed/source.ts'
import type { NewsSource } from '../../domain/feed/source.ts'
import type { ArticleTexts, Clock } from '../../domain/ports.ts'
import { withTimeLimit } from '../http.ts'
import { decodePage, mediaTypeOf } from './extract.ts'
import { openExtractor } from './extractor.ts'
import type { Extractor, ExtractorOptions } from './extractor.ts'
import { PageClient, PageProblem, asPageProblem, openGuardedConnections } from './page-client.ts'
import type { NameLookup, PageAnswer } from './page-client.ts'
import { ALLOW_ALL, ROBOTS_MAX_BYTES, forbidsKeeping, parseRobots } from './robots.ts'
import type { RobotsRules } from './robots.ts'

/** The name rules are written for; also the first word of the user agent. */
const PRODUCT_TOKEN = 'dash'

/** Each origin's robots.txt, asked once and kept while this lives: one run. */
class RobotsGate {
  readonly #client: PageClient
  readonly #limitMs: number
  readonly #rules = new Map<string, Promise<RobotsRules>>()

  constructor(client: PageClient, limitMs: number) {
    this.#client = client
    this.#limitMs = limitMs
  }

  /**
   * @param signal ends the run, not one page: what is asked here is for every page of the origin
   * @throws PageProblem `robots` for a URL its origin asks not to read; a failure when that cannot be known
   */
  async require(url: URL, signal: AbortSignal): Promise<void> {
    let rules = this.#rules.get(url.origin)
    if (!rules) {
      rules = this.#ask(url.origin, signal)
      this.#rules.set(url.origin, rules)
    }
    if (!(await rules).allows(url.pathname + url.search)) {
      throw new PageProblem('robots', `${url.href}: the robots.txt of ${url.host} asks not to`)
    }
  }

  async #ask(origin: string, signal: AbortSignal): Promise<RobotsRules> {
    const url = `${origin}/robots.txt`
    const question = {
      url,
      accept: 'text/plain, */*;q=0.5',
      limit: { maxBytes: ROBOTS_MAX_BYTES, beyond: 'cut' },
      mayAsk: () => Promise.resolve(),
      mayRead: () => undefined,
    } as const
    try {
      const answer = await withTimeLimit(this.#limitMs, signal, (limited) =>
        this.#client.get(question, limited),
      )
      return rulesOf(answer)
    } catch (error) {
      const problem = asPageProblem(error, url)
      // As if there were none: RFC 9309, 2.3.1.2.
      if (problem.why === 'redirects') return ALLOW_ALL
      throw problem
    }
  }
}

/** @throws PageProblem when the server failed: then nothing may be read (RFC 9309, 2.3.1.4) */
function rulesOf({ status, url, bytes, notBefore }: PageAnswer): RobotsRules {
  if (status === 200) return parseRobots(new TextDecoder().decode(bytes), PRODUCT_TOKEN)
  if (status >= 400 && status < 500 && status !== 429) return ALLOW_ALL
  throw new PageProblem(null, `${url.href}: it answered ${status}, so that nothing may be read`, {
    notBefore,
  })
}

/** Largest page, decompressed; articles with everything around them are far smaller. */
const PAGE_MAX_BYTES = 2 * 1024 * 1024

/** A page whose article is shorter, in characters, shows a notice, not an article. */
const ARTICLE_MIN_LENGTH = 200

const MEDIA_TYPES: ReadonlySet<string> = new Set(['text/html', 'application/xhtml+xml', 'text/plain'])

const STATUS_SKIPS: Readonly<Record<number, SkipReason>> = {
  401: 'refused',
  402: 'refused',
  403: 'refused',
  404: 'gone',
  407: 'refused',
  410: 'gone',
  451: 'refused',
}

interface PageTools {
  client: PageClient
  robots: RobotsGate
  extractor: Extractor
  /** For everything that is asked of servers for one page. */
  pageMs: number
}

/**
 * The article of a page as plain text, with where it was found.
 *
 * @throws PageProblem, or whatever made it impossible
 */
async function pageText(
  { client, robots, extractor, pageMs }: PageTools,
  url: string,
  signal: AbortSignal,
): Promise<{ text: string; provenance: string }> {
  const answer = await withTimeLimit(pageMs, signal, (limited) =>
    client.get(
      {
        url,
        accept: 'text/html, application/xhtml+xml, text/plain;q=0.8',
        limit: { maxBytes: PAGE_MAX_BYTES, beyond: 'refuse' },
        mayAsk: (each) => robots.require(each, signal),
        mayRead: requireReadable,
      },
      limited,
    ),
  )
  requireStatus(answer)
  const decoded = decodePage(answer.bytes, answer.contentType)
  if (mediaTypeOf(answer.contentType) === 'text/plain') {
    return { text: longEnough(decoded, answer.url), provenance: `page:plain-text ${answer.url.href}` }
  }
  const extracted = await extractor.extract({ html: decoded, as: 'page', token: PRODUCT_TOKEN }, signal)
  if (extracted.kind === 'forbidden') throw forbidden(answer.url)
  const text = longEnough(extracted.kind === 'text' ? extracted.text : '', answer.url)
  return { text, provenance: `page:readability ${answer.url.href}` }
}

function requireReadable({ url, contentType, robotsTags }: Omit<PageAnswer, 'bytes'>): void {
  if (robotsTags.some((words) => forbidsKeeping(words, PRODUCT_TOKEN))) throw forbidden(url)
  const type = mediaTypeOf(contentType)
  if (!MEDIA_TYPES.has(type)) {
    throw new PageProblem('notHtml', `${url.href}: it is ${type.slice(0, 80) || 'of no media type'}`)
  }
}

function requireStatus({ url, status, notBefore }: PageAnswer): void {
  if (status === 200) return
  throw new PageProblem(STATUS_SKIPS[status] ?? null, `${url.href}: it answered ${status}`, { notBefore })
}

function forbidden(url: URL): PageProblem {
  return new PageProblem('robots', `${url.href}: the page asks not to be kept`)
}

function longEnough(text: string, url: URL): string {
  const plain = plainText(text)
  if (plain.length >= ARTICLE_MIN_LENGTH) return plain
  throw new PageProblem('noText', `${url.href}: no article was found on it`)
}

export interface ArticleTextsOptions {
  urls: ArticleSourceUrls
  /** How the sources' own APIs are asked; they are the operator's choice and may be anywhere. */
  askJson: AskJson
  /** Names the product to the servers of pages, beginning with its robots token `dash`. */
  userAgent: string
  clock: Clock
  /** Ranges of addresses pages may be read from although they are not public. */
  allowed: readonly IpRange[]
  lookup?: NameLookup
  extractor?: ExtractorOptions
  /** For everything that is asked of servers for one page. */
  pageMs?: number
  /** For one robots.txt. */
  robotsMs?: number
}

const PAGE_MS = 30_000
const ROBOTS_MS = 10_000

/** Texts of items, from their sources and from the pages they link to (docs/articles.md); for one run. */
export function openArticleTexts(
  options: ArticleTextsOptions,
): ArticleTexts & { close: () => Promise<void> } {
  const { userAgent, clock, allowed, lookup, pageMs = PAGE_MS, robotsMs = ROBOTS_MS } = options
  const connections = openGuardedConnections(allowed, lookup)
  const extractor = openExtractor(options.extractor)
  const client = new PageClient(connections, userAgent, clock)
  const tools: PageTools = { client, robots: new RobotsGate(client, robotsMs), extractor, pageMs }
  return {
    async read(item, signal) {
      try {
        return { kind: 'text', ...(await readItem(options, tools, item, signal)) }
      } catch (error) {
        signal.throwIfAborted()
        return readingOf(asPageProblem(error, item.url ?? `${item.source} ${item.sourceId}`))
      }
    },
    async close() {
      await extractor.close()
      await connections.close()
    },
  }
}

/** The text at the first place that has one. */
async function readItem(
  { askJson, urls }: ArticleTextsOptions,
  tools: PageTools,
  item: Pick<WantedItem, 'source' | 'sourceId' | 'url'>,
  signal: AbortSignal,
): Promise<{ text: string; provenance: string }> {
  const { source, sourceId, url } = item
  for (const place of placesOfText(item)) {
    if (place === 'page' && url !== null) return pageText(tools, url, signal)
    if (place === 'source' && isNewsSource(source)) {
      const { html, provenance } = await sourceHtml(askJson, urls, { source, sourceId }, signal)
      if (html === '') continue
      const extracted = await tools.extractor.extract({ html, as: 'fragment', token: PRODUCT_TOKEN }, signal)
      const text = extracted.kind === 'text' ? plainText(extracted.text) : ''
      if (text !== '') return { text, provenance }
    }
  }
  throw new PageProblem('noText', `${source} ${sourceId}: neither a text of its own nor a link`)
}

function readingOf({ why, message, notBefore }: PageProblem): Exclude<ArticleReading, { kind: 'text' }> {
  if (why === null) return { kind: 'failed', reason: message, notBefore }
  return { kind: 'skipped', why, detail: message, notBefore }
}

/** Asks an API for a JSON answer; null for a 404 or 410, and anything else that is no answer is thrown. */
export type AskJson = (request: { url: string; body?: unknown }, signal: AbortSignal) => Promise<unknown>

/** Base of each owning source's API, without a trailing slash. */
type ArticleSourceUrls = Record<NewsSource, string>

interface Owner {
  provenance: string
  ask(base: string, sourceId: string): { url: string; body?: unknown }
  /** The item's own id and its text as HTML, or null when there is no such item. */
  read(answer: unknown): { id: string; html: string } | null
}

const hackerNewsItem = z.object({
  id: z.int(),
  text: z.string().nullish(),
  deleted: z.boolean().nullish(),
  dead: z.boolean().nullish(),
})

const lobstersStory = z.object({ short_id: z.string(), description: z.string().nullish() })

const lessWrongAnswer = z.object({
  data: z.object({
    post: z
      .object({
        result: z
          .object({ _id: z.string(), contents: z.object({ html: z.string().nullish() }).nullish() })
          .nullable(),
      })
      .nullable(),
  }),
})

const LESSWRONG_QUERY =
  'query Body($id: String) { post(input: { selector: { _id: $id } }) { result { _id contents { html } } } }'

const OWNERS: Record<NewsSource, Owner> = {
  hn: {
    provenance: 'hn:item-text',
    ask: (base, id) => ({ url: `${base}/item/${encodeURIComponent(id)}.json` }),
    read(answer) {
      const item = hackerNewsItem.nullable().parse(answer)
      if (item === null || item.deleted === true || item.dead === true) return null
      return { id: String(item.id), html: item.text ?? '' }
    },
  },
  lobsters: {
    provenance: 'lobsters:story-description',
    ask: (base, id) => ({ url: `${base}/s/${encodeURIComponent(id)}.json` }),
    read(answer) {
      const story = lobstersStory.nullable().parse(answer)
      return story && { id: story.short_id, html: story.description ?? '' }
    },
  },
  lesswrong: {
    provenance: 'lesswrong:post-body',
    ask: (base, id) => ({ url: base, body: { query: LESSWRONG_QUERY, variables: { id } } }),
    read(answer) {
      const post = lessWrongAnswer.nullable().parse(answer)?.data.post?.result
      return post ? { id: post._id, html: post.contents?.html ?? '' } : null
    },
  },
}

/**
 * The text a news source itself holds of an item, as HTML; empty when it holds none.
 *
 * @throws PageProblem `gone` when the source does not know the item or has deleted it; a failure when it does not
 *   answer, or for another item
 */
async function sourceHtml(
  askJson: AskJson,
  urls: ArticleSourceUrls,
  { source, sourceId }: { source: NewsSource; sourceId: string },
  signal: AbortSignal,
): Promise<{ html: string; provenance: string }> {
  const owner = OWNERS[source]
  const question = owner.ask(urls[source], sourceId)
  const answer = await askJson(question, signal)
  let item
  try {
    item = owner.read(answer)
  } catch (cause) {
    throw new PageProblem(null, `${question.url}: its answer has another shape than expected`, { cause })
  }
  if (item === null) throw new PageProblem('gone', `${source} ${sourceId}: its source has it no more`)
  if (item.id !== sourceId) {
    throw new PageProblem(null, `${question.url}: it answered for ${JSON.stringify(item.id.slice(0, 80))}`)
  }
  return { html: item.html, provenance: owner.provenance }
}
