import { liveFeedSchema } from '../../../domain/feed/live-items.ts'
import type { LiveFeed } from '../../../domain/feed/live-items.ts'
import type { LiveSort } from '../../../domain/feed/live-sort.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { parseJson } from '../../../domain/text.ts'
import { dayOf, formatInstant } from '../../../domain/time.ts'
import { parseHistoryIndex } from '../../../domain/year/history/history.ts'
import type { ListedPublication } from '../../../domain/year/history/history.ts'
import { yearEnvelopeSchema } from '../../../domain/year/schema.ts'
import type { YearEnvelope } from '../../../domain/year/schema.ts'
import { once } from '../../../domain/once.ts'
import { parseFeed, provedSnapshots } from '../../../server/feed/proved-snapshots.ts'
import { provedPublications } from '../../../server/year/proved-publications.ts'
import type { CommandContext } from '../../context.ts'
import { existingStores, requireFeed } from '../../data-folder.ts'
import { hostFlag } from '../../settings/environment.ts'

/** The Year publications and the live feed of the data folder or of another host, verified by their digests. */
export interface NewsReader {
  /** Publications in the order of selection. */
  history(): Promise<ListedPublication[]>
  /** The content of a publication of the history; null for an older layout. */
  year(publication: ListedPublication): Promise<YearEnvelope | null>
  /** The newest live feed of a period; null before the first snapshot. */
  live(sort: LiveSort): Promise<LiveFeed | null>
}

/**
 * Opens the data folder, or the host of `--url`.
 *
 * @throws Refusal `usage` for an invalid URL; `storage_unavailable` and refusals of the configuration for a data folder
 *   without data
 */
export function openNews(context: CommandContext, url: string | undefined): Promise<NewsReader> {
  return url === undefined ? ownNews(context) : hostNews(context, url)
}

const READ_ADVICE =
  'read a running server with --url, create one with dash import signals, or correct --data-dir'

/** Reads the data folder as the server does. A missing store is empty, unless nothing is stored at all. */
async function ownNews({ config, container }: CommandContext): Promise<NewsReader> {
  const existing = existingStores(config)
  if (!existing.ledger && !existing.feed) requireFeed(config, READ_ADVICE)
  const publications = once(async () =>
    provedPublications({
      ledger: await container.ledger(),
      objects: await container.objects(),
      year: await container.year(),
      clock: Date.now,
    }),
  )
  return {
    async history() {
      if (!existing.ledger) return []
      const { timeline } = await (await publications()).entries()
      return timeline.map(({ manifest: { publicationId, asOfDay, publishedAt, sha256 } }) => ({
        publicationId,
        asOfDay,
        publishedAt: formatInstant(publishedAt),
        sha256,
      }))
    },
    async year({ publishedAt }) {
      const proved = await (await publications()).latestAt(Date.parse(publishedAt))
      return proved && parseYear(proved.published.body)
    },
    async live(sort) {
      if (!existing.feed) return null
      const proved = await provedSnapshots(await container.feed()).newest(sort)
      return proved && parseFeed(proved)
    },
  }
}

/** Reads the public API of another host. Every publication must have the digest that the host's index names. */
async function hostNews({ container, signal }: CommandContext, url: string): Promise<NewsReader> {
  const base = hostFlag('--url', url)
  const feeds = await container.publishedFeeds(base)
  const published = await container.publishedHistory(base)
  const unusable = (what: string): Refusal =>
    new Refusal('source_unavailable', `the host ${base} serves ${what}; check --url`)
  return {
    async history() {
      const listed = parseHistoryIndex(await feeds.index(signal))
      if (listed === null) throw unusable('no history index at /api/feed/history/index')
      const today = dayOf(Date.now())
      const early = listed.find(({ asOfDay }) => asOfDay >= today)
      if (early) throw unusable(`a history index with the impossible day ${early.asOfDay}`)
      return listed
    },
    async year({ publicationId, publishedAt, sha256 }) {
      const response = await published.at(Date.parse(publishedAt), [], signal)
      if (response.is !== 'text') throw unusable(`${publicationId} with status ${response.description}`)
      if (response.bytes === null || response.sha256 !== sha256)
        throw unusable(`${publicationId} with other bytes than its index names`)
      return parseYear(response.bytes)
    },
    async live(sort) {
      const json = await feeds.live(sort, signal)
      if (json === null) return null
      const feed = liveFeedSchema.safeParse(json).data
      if (feed === undefined) throw unusable(`no live feed of a known layout at /api/feed?sort=${sort}`)
      return feed
    },
  }
}

function parseYear(bytes: Uint8Array): YearEnvelope | null {
  return yearEnvelopeSchema.safeParse(parseJson(new TextDecoder().decode(bytes))).data ?? null
}
