import { saveKey } from '../domain/feed/source.ts'
import type { Clock, FeedStore, TitleSource } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { rankYear } from '../domain/year/rank.ts'
import type { RankedYear, VerifiedTitle, YearEvent } from '../domain/year/rank.ts'
import { concurrently } from './concurrently.ts'

/** Timeout of all titles of one ranking together, in milliseconds. */
const TITLES_TIMEOUT_MS = 300_000

/** Concurrent requests per source. */
const PER_SOURCE = 4

interface RankingRun {
  feed: Pick<FeedStore, 'saveVerifiedTitle'>
  titles: TitleSource
  clock: Clock
  signal: AbortSignal
  dryRun: boolean
}

/**
 * Ranks a window, fetching every unverified title that the ranking needs from its owning source (docs/ranking.md, rule
 * 7). Each title is stored at once, except in a dry run, so that none is fetched twice.
 *
 * @param stored stored verified titles of the events, by save key
 * @throws Refusal `source_unavailable` or `title_not_vouched`: the first one ends the ranking
 */
export async function rankWithTitles(
  { feed, titles, clock, signal, dryRun }: RankingRun,
  events: readonly YearEvent[],
  stored: ReadonlyMap<string, VerifiedTitle>,
): Promise<RankedYear> {
  const known = new Map(stored)
  const deadline = clock() + TITLES_TIMEOUT_MS
  const fetchTitle = async (event: YearEvent, combinedSignal: AbortSignal): Promise<void> => {
    if (clock() > deadline)
      throw new Refusal(
        'source_unavailable',
        `the requests for titles timed out after ${TITLES_TIMEOUT_MS} ms`,
      )
    const title = await titles.title(event, combinedSignal)
    if (!dryRun) await feed.saveVerifiedTitle(event.source, event.sourceId, title, clock())
    known.set(saveKey(event.source, event.sourceId), title)
  }
  for (;;) {
    const outcome = rankYear(events, known)
    if (outcome.do === 'ranked') return outcome.year
    const sources = new Set(outcome.events.map(({ source }) => source))
    await concurrently(sources, Infinity, signal, (source, combinedSignal) =>
      concurrently(
        outcome.events.filter((event) => event.source === source),
        PER_SOURCE,
        combinedSignal,
        fetchTitle,
      ),
    )
  }
}
