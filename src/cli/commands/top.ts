import fastStringWidth from 'fast-string-width'
import { wrapAnsi } from 'fast-wrap-ansi'
import type { ColumnName } from '../../domain/feed/columns.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addDays, parseDay, startOfDay, dayOf, formatInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { parsePastInstant, parseHistoryIndex } from '../../domain/year/history/history.ts'
import type { ListedPublication } from '../../domain/year/history/history.ts'
import { liveFeedSchema } from '../../domain/feed/live-items.ts'
import type { LiveFeed } from '../../domain/feed/live-items.ts'
import { parseJsonBytes } from '../../domain/json.ts'
import { yearEnvelopeSchema } from '../../domain/year/schema.ts'
import type { YearEnvelope } from '../../domain/year/schema.ts'
import { once } from '../../domain/once.ts'
import { parseFeed, provedSnapshots } from '../../server/feed/proved-snapshots.ts'
import { provedPublications } from '../../server/year/proved-publications.ts'
import type { CommandContext } from '../context.ts'
import { EXIT } from '../exit-codes.ts'
import { flagValue, wholeFlag, hostFlag } from '../settings/environment.ts'
import { DEFAULT_COLUMNS, escaped, fail, hyperlink, knowsHyperlinks, webAddress } from '../terminal.ts'
import { existingStores, requireFeed } from '../data-folder.ts'

interface TopFlags {
  at?: string
  source?: string
  limit?: string
  url?: string
}

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
  const count = wholeFlag('--limit', limit, LIMIT_MAX)
  const news = url === undefined ? await ownNews(context) : await hostNews(context, url)
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
  if (feed === null) return 'the live feed has not been ranked yet; dash collect or dash snapshot ranks it'
  const { snapshotId, generatedAt } = feed
  return {
    lists: feed,
    caption: `${sort}, ranked ${generatedAt}`,
    now: Date.parse(generatedAt),
    publication: null,
    snapshot: { snapshotId, generatedAt },
  }
}

type NewsItem = (LiveFeed | YearEnvelope['feed'])[ColumnName][number]

/** Where lines of items are printed. */
interface Layout {
  /** Width of the terminal; null for a file or pipe, which gets whole titles and their addresses. */
  columns: number | null
  /** True if titles become links. */
  linked: boolean
}

function layoutOf({ stdout, env }: CommandContext): Layout {
  return {
    columns: stdout.isTTY ? stdout.columns || DEFAULT_COLUMNS : null,
    linked: knowsHyperlinks(stdout, env),
  }
}

/** Narrowest title; on a narrower terminal its lines wrap. */
const TITLE_MIN_COLUMNS = 10

/**
 * Returns the line of an item: its title behind `before`, cut to the width of a terminal, else with its address.
 *
 * @param before text of the program
 */
function itemLine(before: string, item: NewsItem, { columns, linked }: Layout): string {
  const title = escaped(item.title.replaceAll(/\s+/g, ' ').trim())
  const address = addressOf(item)
  if (columns === null) return address === null ? before + title : `${before}${title}  ${address}`
  const shown = cutToColumns(title, Math.max(TITLE_MIN_COLUMNS, columns - 1 - fastStringWidth(before)))
  return before + (linked && address !== null ? hyperlink(address, shown) : shown)
}

/** Returns the address of an item, else that of its discussion; null without a web page. */
function addressOf({ url, discussionUrl }: NewsItem): string | null {
  return webAddress(url) ?? webAddress(discussionUrl)
}

function cutToColumns(text: string, columns: number): string {
  if (fastStringWidth(text) <= columns) return text
  const [row = ''] = wrapAnsi(text, columns - 1, { hard: true, wordWrap: false }).split('\n')
  return `${row}…`
}

/** Columns of a ranking before the title; a terminal shows those that its width has room for. */
const COLUMNS: readonly {
  head: string
  /** Width of the terminal from which the column is shown. */
  from: number
  alignsLeft?: true
  cellOf: (item: NewsItem, now: Instant) => string
}[] = [
  { head: '#', from: 0, cellOf: ({ rank }) => String(rank) },
  { head: 'points', from: 50, cellOf: ({ points }) => String(points) },
  { head: 'comments', from: 100, cellOf: ({ comments }) => (comments === null ? '-' : String(comments)) },
  { head: 'age', from: 100, cellOf: ({ publishedAt }, now) => ageText(now - Date.parse(publishedAt)) },
  { head: 'source', from: 50, alignsLeft: true, cellOf: ({ source }) => escaped(source) },
]

/**
 * Returns the lines of a ranking: columns with a head on a terminal, else without.
 *
 * @param now time from which ages count
 */
function rankingLines(items: readonly NewsItem[], now: Instant, layout: Layout): string[] {
  const { columns } = layout
  const cells = COLUMNS.filter(({ from }) => columns === null || columns >= from).map(
    ({ head, alignsLeft, cellOf }) => {
      const column = [head, ...items.map((item) => cellOf(item, now))]
      const width = Math.max(...column.map((cell) => cell.length))
      return column.map((cell) => `${alignsLeft ? cell.padEnd(width) : cell.padStart(width)}  `)
    },
  )
  const [head = '', ...rest] = ['', ...items].map((_item, row) => cells.map((column) => column[row]).join(''))
  const lines = items.map((item, index) => itemLine(rest[index] ?? '', item, layout))
  return columns === null ? lines : [`${head}title`, ...lines]
}

const HOUR_MS = 3_600_000
const HOURS_MAX = 48

/** Formats an age: hours below two days, else days, `19h`, `12d`. */
function ageText(ageMs: number): string {
  const hours = Math.max(0, Math.floor(ageMs / HOUR_MS))
  return hours < HOURS_MAX ? `${hours}h` : `${Math.floor(hours / 24)}d`
}

/** The Year publications and the live feed of the data folder or of another host, verified by their digests. */
type NewsReader = Awaited<ReturnType<typeof ownNews>>

const READ_ADVICE =
  'read a running server with --url, create one with dash import signals, or correct --data-dir'

/** Reads the data folder as the server does. A missing store is empty, unless nothing is stored at all. */
async function ownNews({ config, container }: CommandContext) {
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
    /** Publications in the order of selection. */
    async history(): Promise<ListedPublication[]> {
      if (!existing.ledger) return []
      const { timeline } = await (await publications()).entries()
      return timeline.map(({ manifest: { publicationId, asOfDay, publishedAt, sha256 } }) => ({
        publicationId,
        asOfDay,
        publishedAt: formatInstant(publishedAt),
        sha256,
      }))
    },
    /** The content of a publication of the history; null for an older layout. */
    async year({ publishedAt }: ListedPublication): Promise<YearEnvelope | null> {
      const proved = await (await publications()).latestAt(Date.parse(publishedAt))
      return proved && parseYear(proved.published.body)
    },
    /** The newest live feed of a period; null before the first snapshot. */
    async live(sort: LiveSort): Promise<LiveFeed | null> {
      if (!existing.feed) return null
      const proved = await provedSnapshots(await container.feed()).newest(sort)
      return proved && parseFeed(proved)
    },
  }
}

/** Reads the public API of another host. Every publication must have the digest that the host's index names. */
async function hostNews({ container, signal }: CommandContext, url: string): Promise<NewsReader> {
  const base = hostFlag(url)
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
      if (json === null) throw unusable(`no live feed at /api/feed?sort=${sort}, or has ranked none yet`)
      const feed = liveFeedSchema.safeParse(json).data
      if (feed === undefined) throw unusable(`no live feed of a known layout at /api/feed?sort=${sort}`)
      return feed
    },
  }
}

function parseYear(bytes: Uint8Array): YearEnvelope | null {
  return yearEnvelopeSchema.safeParse(parseJsonBytes(bytes)).data ?? null
}
