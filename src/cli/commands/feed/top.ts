import type { ColumnName } from '../../../domain/feed/columns.ts'
import type { LiveSort } from '../../../domain/feed/live-sort.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { addDays, parseDay, startOfDay } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { parsePastInstant } from '../../../domain/year/history/history.ts'
import type { ListedPublication } from '../../../domain/year/history/history.ts'
import type { CommandContext } from '../../context.ts'
import { EXIT } from '../../exit-codes.ts'
import { flagValue, wholeFlag } from '../../settings/environment.ts'
import { fail } from '../../terminal.ts'
import { layoutOf, rankingLines } from './item-lines.ts'
import type { NewsItem } from './item-lines.ts'
import { openNews } from './reader.ts'
import type { NewsReader } from './reader.ts'

interface TopFlags {
  at?: string
  source?: string
  limit?: string
  url?: string
}

/** A ranking that can be printed. */
interface Ranking {
  lists: Readonly<Record<ColumnName, readonly NewsItem[]>>
  /** Where the ranking comes from, in one line. */
  caption: string
  /** Time from which ages count. */
  now: Instant
  publication: ListedPublication | null
  snapshot: { snapshotId: string; generatedAt: string } | null
}

const LIMIT_DEFAULT = 20
const LIMIT_MAX = 100

/**
 * `dash top`: prints a ranking of the live feed, or a Year.
 *
 * @returns 0, or 1 if nothing is ranked or published by then
 * @throws Refusal `usage` for an invalid flag; refusals of the stores and of the host
 */
export async function topCommand(
  context: CommandContext,
  { at, source, limit = String(LIMIT_DEFAULT), url }: TopFlags,
  [named = 'trending']: readonly string[],
): Promise<number> {
  const { terminal } = context
  const sort = named as LiveSort | 'year'
  if (at !== undefined && sort !== 'year')
    throw new Refusal('usage', `--at needs the Year: dash top year --at ${at}; no older ${sort} is kept`)
  const now = Date.now()
  const moment = at === undefined ? now : flagValue('--at', at, AT_FORM, (text) => parseMoment(text, now))
  const count = wholeFlag('--limit', limit, 1, LIMIT_MAX)
  const news = await openNews(context, url)
  const ranking = sort === 'year' ? await yearAt(news, moment) : await liveRanking(news, sort)
  if (typeof ranking === 'string') return fail(terminal, ranking, EXIT.failed)
  const list = source === undefined ? 'popular' : (LISTS[source] ?? 'hypeReplicate')
  const items = ranking.lists[list].filter((item) => isOf(item, source)).slice(0, count)
  const { caption, publication, snapshot } = ranking
  const lines = rankingLines(items, ranking.now, layoutOf(context))
  terminal.note(caption)
  terminal.result(
    { sort, list, source: source ?? null, publication, snapshot, items },
    items.length === 0 ? 'nothing is ranked here' : lines.join('\n'),
    true,
  )
  return EXIT.done
}

const AT_FORM = 'a day, or an instant such as 2026-03-02T12:00:00Z, that is not in the future'

/** Parses `--at`: an instant, or the end of a day. */
function parseMoment(text: string, now: Instant): Instant | null {
  const day = parseDay(text)
  if (day === null) return parsePastInstant([text], now)
  return startOfDay(day) <= now ? Math.min(now, startOfDay(addDays(day, 1)) - 1) : null
}

/** Lists of sources; all others are in the list of the hype sources. */
const LISTS: Readonly<Record<string, ColumnName>> = {
  hn: 'hackerNews',
  lobsters: 'lobsters',
  lesswrong: 'lessWrong',
  midjourney: 'midjourney',
}

/** Only the list of the hype sources has items of several sources. */
function isOf(item: NewsItem, source: string | undefined): boolean {
  return !source?.startsWith('hype:') || item.source === source
}

/** Returns the Year at a time, or why there is none. */
async function yearAt(news: NewsReader, at: Instant): Promise<Ranking | string> {
  const publications = await news.history()
  const publication = publications.findLast(({ publishedAt }) => Date.parse(publishedAt) <= at)
  const [first] = publications
  if (first === undefined) return 'nothing has been published yet; dash publish-year publishes a Year'
  if (publication === undefined)
    return `no Year was published by ${new Date(at).toISOString()}; the first one is of ${first.publishedAt}`
  const envelope = await news.year(publication)
  const { publicationId, asOfDay, publishedAt, sha256 } = publication
  if (envelope === null) return `${publicationId} has an older layout, which dash top cannot print`
  return {
    lists: envelope.feed,
    caption: `Top Year up to ${asOfDay}, published ${publishedAt}, SHA-256 ${sha256}`,
    now: Date.parse(publishedAt),
    publication,
    snapshot: null,
  }
}

async function liveRanking(news: NewsReader, sort: LiveSort): Promise<Ranking | string> {
  const feed = await news.live(sort)
  if (feed === null) return 'the live feed has not been ranked yet; dash snapshot ranks it'
  const { snapshotId, generatedAt } = feed
  return {
    lists: feed,
    caption: `${sort}, ranked ${generatedAt}`,
    now: Date.parse(generatedAt),
    publication: null,
    snapshot: { snapshotId, generatedAt },
  }
}
