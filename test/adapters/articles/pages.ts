import type { LookupAddress } from 'node:dns'
import type { ServerResponse } from 'node:http'
import { afterAll, onTestFinished } from 'vitest'
import { openArticleTexts } from '../../../src/adapters/articles/open.ts'
import type { ArticleTextsOptions } from '../../../src/adapters/articles/open.ts'
import type { NameLookup } from '../../../src/adapters/articles/page-client.ts'
import { parseIpRange } from '../../../src/domain/address.ts'
import type { IpRange } from '../../../src/domain/address.ts'
import type { ArticleReading } from '../../../src/domain/feed/article.ts'
import type { ArticleTexts } from '../../../src/domain/ports.ts'
import { builtModule } from '../../support/compiled-sources.ts'
import { localSource } from '../../support/local-source.ts'
import type { LocalSource, SourceRequest } from '../../support/local-source.ts'

/** Parses IP ranges as the configuration does. */
export const ranges = (...texts: string[]): IpRange[] => texts.flatMap((text) => parseIpRange(text) ?? [])

/** The allowed ranges: local servers stand for public ones. */
export const LOOPBACK = ranges('127.0.0.0/8', '::1')

/** An article of some length in a page with a menu around it. */
export function pageHtml(text: string, head = ''): string {
  const paragraph = `<p>${text}, with enough words, commas, and sentences to be taken for an article of some length.</p>`
  return `<!doctype html><html><head><title>T</title>${head}</head><body>
    <nav><ul><li><a href="/">Menu entry</a></li></ul></nav>
    <article><h1>Heading</h1>${paragraph.repeat(8)}</article><footer>Imprint</footer></body></html>`
}

/** A site without a robots.txt and with a responder for the other pages. */
export function site(
  respond: (request: SourceRequest, response: ServerResponse) => void,
  robots: (response: ServerResponse) => void = (response) => void response.writeHead(404).end(),
): Promise<LocalSource> {
  return localSource((request, response) => {
    if (request.target === '/robots.txt') robots(response)
    else respond(request, response)
  })
}

/** A site that serves the same HTML for every page. */
export function htmlSite(html: string, headers: Record<string, string> = {}): Promise<LocalSource> {
  return site((_question, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(html)
  })
}

/** A scripted DNS lookup that returns the next list each time, and repeats the last one. */
export function scriptedLookup(...lists: string[][]): NameLookup & { lookups: string[] } {
  const lookups: string[] = []
  const lookup: NameLookup = (hostname, _options, callback) => {
    const addresses = lists[Math.min(lookups.length, lists.length - 1)] ?? []
    lookups.push(hostname)
    const found = addresses.map((address): LookupAddress => ({
      address,
      family: address.includes(':') ? 6 : 4,
    }))
    process.nextTick(() => callback(null, found))
  }
  return Object.assign(lookup, { lookups })
}

/** Article texts as a run reads them, with the compiled worker; closed when the test ends. */
export function openTexts(changes: Partial<ArticleTextsOptions> = {}): ArticleTexts {
  const texts = openLocalTexts(changes)
  onTestFinished(() => texts.close())
  return texts
}

/** Article texts of one run for all tests of a file, which starts the worker once; for sites without a robots.txt. */
export function textsOfFile(changes: Partial<ArticleTextsOptions> = {}): ArticleTexts {
  const texts = openLocalTexts(changes)
  afterAll(() => texts.close())
  return texts
}

function openLocalTexts(changes: Partial<ArticleTextsOptions>): ReturnType<typeof openArticleTexts> {
  return openArticleTexts({
    urls: { hn: 'http://hn.test', lobsters: 'http://lobsters.test', lesswrong: 'http://lesswrong.test' },
    fetchJson: ({ url }) => Promise.reject(new Error(`${url} was asked`)),
    userAgent: 'dash/0.0.0 (+https://dash.example/)',
    clock: Date.now,
    allowed: LOOPBACK,
    extractor: { script: new URL(builtModule('adapters/articles/extract-worker.js')) },
    ...changes,
  })
}

/** Reads the text of an item that links to this URL. */
export const readPage = (texts: ArticleTexts, url: string): Promise<ArticleReading> =>
  texts.read({ source: 'hn', sourceId: '1', url }, new AbortController().signal)
