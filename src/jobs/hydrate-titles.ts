import { saveKey } from '../domain/feed/source.ts'
import type { Clock, FeedStore, TitleSource } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { rankYear } from '../domain/year/rank.ts'
import type { RankedYear, VerifiedTitle, YearEvent } from '../domain/year/rank.ts'

/** Time all titles of one ranking may take together. */
const ALL_TITLES_MS = 300_000

/** Questions open at one source at a time. */
const PER_SOURCE = 4

export interface TitlePorts {
  feed: Pick<FeedStore, 'verifiedTitles' | 'saveVerifiedTitle'>
  titles: TitleSource
  clock: Clock
}

/**
 * Ranks a window, asking the owning sources for every title the ranking needs and nobody has verified yet
 * (docs/ranking.md, rule 7). Each answer is kept at once, so that none is asked for twice.
 *
 * @param keep false for a dry run, which writes nothing
 * @throws Refusal `source_unavailable` or `title_not_vouched`: the first that occurs ends the whole ranking
 */
export async function rankWithTitles(
  { feed, titles, clock }: TitlePorts,
  events: readonly YearEvent[],
  keep: boolean,
  signal: AbortSignal,
): Promise<RankedYear> {
  const known = new Map<string, VerifiedTitle>()
  const deadline = clock() + ALL_TITLES_MS
  for (;;) {
    const outcome = rankYear(events, known)
    if (outcome.do === 'ranked') return outcome.year
    const stored = await feed.verifiedTitles(outcome.events)
    for (const [key, title] of stored) known.set(key, title)
    const missing = outcome.events.filter(({ source, sourceId }) => !stored.has(saveKey(source, sourceId)))
    await askAll(missing, signal, async (event, until) => {
      if (clock() > deadline) {
        throw new Refusal('source_unavailable', `the titles asked for took more than ${ALL_TITLES_MS} ms`)
      }
      const title = await titles.title(event, until)
      if (keep) await feed.saveVerifiedTitle(event.source, event.sourceId, title, clock())
      known.set(saveKey(event.source, event.sourceId), title)
    })
  }
}

/** Asks for each event, a few at a time in each source; the first failure ends the others. */
async function askAll(
  events: readonly YearEvent[],
  signal: AbortSignal,
  ask: (event: YearEvent, until: AbortSignal) => Promise<void>,
): Promise<void> {
  const queues = new Map<string, YearEvent[]>()
  for (const event of events) queues.set(event.source, [...(queues.get(event.source) ?? []), event])
  const failed = new AbortController()
  const until = AbortSignal.any([signal, failed.signal])
  const worker = async (queue: YearEvent[]): Promise<void> => {
    for (let event = queue.shift(); event; event = queue.shift()) {
      until.throwIfAborted()
      await ask(event, until)
    }
  }
  const workers = [...queues.values()].flatMap((queue) =>
    Array.from({ length: PER_SOURCE }, () => worker(queue)),
  )
  let first: { error: unknown } | null = null
  await Promise.all(
    workers.map((running) =>
      running.catch((error: unknown) => {
        first ??= { error }
        failed.abort()
      }),
    ),
  )
  throwFirst(first)
}

function throwFirst(first: { error: unknown } | null): void {
  if (first) throw first.error
}
