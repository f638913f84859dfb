import { plainText } from '../../domain/feed/plain-text.ts'
import { forbidsKeeping } from '../../domain/feed/robots.ts'
import type { SkipReason } from '../../domain/feed/article-plan.ts'
import { decodePage, mediaTypeOf } from './decode-html.ts'
import type { Extractor } from './extractor.ts'
import type { PageAnswer, PageClient } from './page-client.ts'
import { PageProblem } from './page-problem.ts'
import { PRODUCT_TOKEN } from './robots-gate.ts'
import type { RobotsGate } from './robots-gate.ts'
import { withTimeLimit } from '../time-limit.ts'

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
