import { liveFeedSchema } from '../../../domain/feed/live-items.ts'
import type { LiveFeed } from '../../../domain/feed/live-items.ts'
import type { LiveSort } from '../../../domain/feed/live-sort.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { parseJson } from '../../../domain/text.ts'
import { dayOf } from '../../../domain/time.ts'
import { historyIndex, parseHistoryIndex } from '../../../domain/year/history/history.ts'
import type { ReadableIndex } from '../../../domain/year/history/history.ts'
import { yearEnvelopeSchema } from '../../../domain/year/schema.ts'
import type { YearEnvelope } from '../../../domain/year/schema.ts'
import { once } from '../../../domain/once.ts'
import { parseFeed, provedSnapshots } from '../../../server/feed/proved-snapshots.ts'
import { provedPublications } from '../../../server/year/proved-publications.ts'
import type { CommandContext } from '../../context.ts'
import { existingStores, requireFeed } from '../../data-folder.ts'
import { hostFlag } from '../../settings/environment.ts'

/** A publication of the history. */
export type Publication = ReadableIndex['publications'][number]

/** The Year publications and the live feed of the data folder or of another host, verified by their digests. */
export interface NewsReader {
  /** Publications in the order of selection, and recorded gaps. */
  history(): Promise<ReadableIndex>
  /** The content of a publication of the history; null for an older layout. */
  year(publication: Publication): Promise<YearEnvelope | null>
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

/** No history is older; its days are listed one by one. */
const EARLIEST_DAY = '1970-01-01'

const EMPTY_HISTORY: ReadableIndex = { publications: [], gaps: [] }

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
      if (!existing.ledger) return EMPTY_HISTORY
      const { head, ...proved } = await (await publications()).entries()
      return historyIndex(proved, head)
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
      const index = parseHistoryIndex(await feeds.index(signal))
      if (index === null) throw unusable('no history index at /api/feed/history/index')
      const today = dayOf(Date.now())
      const strange = [...index.publications, ...index.gaps].find(
        ({ asOfDay }) => asOfDay < EARLIEST_DAY || asOfDay >= today,
      )
      if (strange) throw unusable(`a history index with the impossible day ${strange.asOfDay}`)
      return index
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

/**
 * The publication that is current at a time: the last one published by then, without the members that only the local
 * index has; null before the first.
 */
export function publicationAt({ publications }: ReadableIndex, at: number): Publication | null {
  const current = publications.findLast(({ publishedAt }) => Date.parse(publishedAt) <= at)
  if (current === undefined) return null
  const { publicationId, asOfDay, publishedAt, sha256 } = current
  return { publicationId, asOfDay, publishedAt, sha256 }
}
