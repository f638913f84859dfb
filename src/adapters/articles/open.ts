import { plainText } from '../../domain/feed/plain-text.ts'
import { placesOfText } from '../../domain/feed/article-plan.ts'
import type { ArticleReading, WantedItem } from '../../domain/feed/article-plan.ts'
import { isNewsSource } from '../../domain/feed/source.ts'
import type { IpRange } from '../../domain/ip-address.ts'
import type { ArticleTexts, Clock } from '../../domain/ports.ts'
import { openExtractor } from './extractor.ts'
import type { ExtractorOptions } from './extractor.ts'
import { openGuardedAgent } from './guarded-agent.ts'
import type { NameLookup } from './guarded-agent.ts'
import { PageClient } from './page-client.ts'
import { asPageProblem, PageProblem } from './page-problem.ts'
import { pageText } from './page-text.ts'
import type { PageTools } from './page-text.ts'
import { PRODUCT_TOKEN, RobotsGate } from './robots-gate.ts'
import { sourceHtml } from './source-html.ts'
import type { ArticleSourceUrls, AskJson } from './source-html.ts'

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
  const agent = openGuardedAgent(allowed, lookup)
  const extractor = openExtractor(options.extractor)
  const client = new PageClient(agent, userAgent, clock)
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
      await agent.destroy()
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
