import { plainText } from '../../domain/feed/article.ts'
import type { SkipReason } from '../../domain/feed/article.ts'
import { withTimeLimit } from '../http.ts'
import { decodePage, mediaTypeOf } from './extract.ts'
import type { Extractor } from './extractor.ts'
import { PageProblem, asPageProblem } from './page-client.ts'
import type { PageAnswer, PageClient } from './page-client.ts'
import { ALLOW_ALL, ROBOTS_MAX_BYTES, forbidsKeeping, parseRobots } from './robots.ts'
import type { RobotsRules } from './robots.ts'

/** The name rules are written for; also the first word of the user agent. */
export const PRODUCT_TOKEN = 'dash'

/** Each origin's robots.txt, asked once and kept while this lives: one run. */
export class RobotsGate {
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

export interface PageTools {
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
export async function pageText(
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
