import { addDays, formatInstant } from '../../../domain/time.ts'
import type { Instant, Day } from '../../../domain/time.ts'
import type { TimelineItem } from '../../../domain/year/chain.ts'
import { selectableItems } from '../../../domain/year/history/calendar.ts'
import { changesBetween, TOP_LENGTH, topItems } from '../../../domain/year/history/changes.ts'
import type { YearChanges, TopItem, YearTops } from '../../../domain/year/history/changes.ts'
import { lastCompleteDay } from '../../../domain/year/ledger.ts'
import { COLUMNS } from '../../../domain/feed/columns.ts'
import { Refusal, isRefusal } from '../../../domain/refusal.ts'
import { nameOfSource } from '../../../domain/feed/subscription.ts'
import { ranksContract } from '../../year/rank-routes.ts'
import { changesOf } from '../../year/change-entries.ts'
import { PUBLICATIONS_MAX } from '../../year/year-lists.ts'
import type { ListedItem } from '../../year/year-lists.ts'
import { NOTHING, formatDay, html, formatCount, formatCounted } from '../html.ts'
import type { Html } from '../html.ts'
import type { View } from '../rendered-pages.ts'
import { refusalsOf, section } from '../sections.ts'
import type { Section, SectionPage, SectionContent, SectionRefusal } from '../sections.ts'
import { storiesOf } from '../feed-columns.ts'
import { storyRow } from '../story-row.ts'
import type { Story } from '../story-row.ts'
import { NEW } from './comparison.ts'
import { NO_PUBLICATION, parsePastDay } from './time-travel.ts'

const TITLE = 'Changes of the Year'

/** Query parameter: the first day that a reader missed; on `/since`, the publication that was seen last. */
export const SINCE_PARAM = 'since'

/** `/since`: what changed in the Year since another publication. */
export const SINCE_PAGE: SectionPage = {
  path: '/since',
  query: { known: [SINCE_PARAM] },
  render: async (view) => ({ title: `${TITLE} · dash`, sections: [await sinceSection(view, 'page')] }),
}

/**
 * What changed in the Year since another publication: since the one before, or since the one of `since`, which the
 * browser of a returning visitor keeps. An unknown value counts as none.
 *
 * @param place the home page shows it as one line that opens, without the parameter; the page shows it open
 */
export function sinceSection(view: View, place: 'home' | 'page'): Promise<Section | null> {
  const { sources, now, query } = view
  const headingLevel = place === 'home' ? 2 : 1
  return section(view, { id: 'since', title: TITLE, headingLevel, refusalOf }, async () => {
    const published = await publishedItems(view)
    const newest = published.at(-1)
    if (!newest) return place === 'home' ? NOTHING : NO_PUBLICATION
    const seen = published.find((item) => nameOf(item) === query.params.get(SINCE_PARAM))
    const base = seen ?? published.at(-2)
    if (!base || base === newest)
      return place === 'page' ? NO_CHANGE : html`<div class="since" data-newest="${nameOf(newest)}"></div>`
    const read = await sources.lists([base.manifest, newest.manifest])
    const [before, after] = [base, newest].map(({ manifest }) => read.get(manifest.sha256)?.popular)
    const changes = before && after ? changesBetween(before, after) : null
    const since = seen
      ? `your last visit of ${formatDay(base.manifest.asOfDay)}`
      : sinceText(base, newest, now)
    const heading = html`<strong>Top Year:</strong> ${changes ? countsOf(changes) : 'an older layout'}<span
        class="roomy"
        >, since ${since}</span
      >`
    // Its script keeps the names (browser/year.ts).
    return html`<details
      class="since"
      data-newest="${nameOf(newest)}"
      data-base="${nameOf(base)}"
      data-base-at="${timeOf(base)}"
      data-count="${changes ? countOf(changes) : 0}"
      ${place === 'page' ? html`open` : NOTHING}
    >
      <summary>${heading}</summary>
      ${contentOf(base, newest, changes, place, now)}
    </details>`
  })
}

const refusalOf = refusalsOf(ranksContract)

const NO_CHANGE = html`<p>No publication of the Year since then.</p>`

async function publishedItems({ sources, now }: View): Promise<TimelineItem[]> {
  const { timeline } = await sources.publications.entries()
  return selectableItems(timeline).filter(({ manifest }) => manifest.publishedAt <= now)
}

/** The name by which a browser remembers a publication: position in its ledger and digest. */
function nameOf({ seq, manifest }: TimelineItem): string {
  return `${seq}-${manifest.sha256}`
}

function timeOf({ manifest }: TimelineItem): string {
  return formatInstant(manifest.publishedAt)
}

/** The name of the day of `base`: `yesterday` only where the newest publication is of the last complete day. */
function sinceText(base: TimelineItem, newest: TimelineItem, now: Instant): string {
  const last = lastCompleteDay(now)
  const isYesterday = newest.manifest.asOfDay === last && base.manifest.asOfDay === addDays(last, -1)
  return isYesterday ? 'yesterday' : formatDay(base.manifest.asOfDay)
}

/** Number of changes that the title of the page counts. */
function countOf({ entered, left, moved, newFirst }: YearChanges<ListedItem>): number {
  const keys = [...[...entered, ...left].map(({ key }) => key), ...moved.map(({ after }) => after.key)]
  return new Set(newFirst ? [...keys, newFirst.key] : keys).size
}

/** Most items that left whose ranks the line names; of more it has the number, so that it stays one line. */
const LEFT_NAMED = 2

/** The changes in short, `2 entered, #9 left`. */
function countsOf({ entered, left, moved, newFirst }: YearChanges<ListedItem>): string {
  const ranks =
    left.length > LEFT_NAMED ? String(left.length) : left.map(({ rank }) => `#${rank}`).join(' and ')
  const parts = [
    ...(newFirst ? ['new #1'] : []),
    ...(entered.length > 0 ? [`${entered.length} entered`] : []),
    ...(left.length > 0 ? [`${ranks} left`] : []),
    ...(moved.length > 0 ? [`${moved.length} moved by 10 or more`] : []),
  ]
  return parts.length > 0 ? parts.join(', ') : 'nothing entered or left'
}

function contentOf(
  base: TimelineItem,
  newest: TimelineItem,
  changes: YearChanges<ListedItem> | null,
  place: 'home' | 'page',
  now: Instant,
): Html {
  const compared = `/?sort=year&at=${timeOf(base)}&with=${timeOf(newest)}#feed`
  return html`<p class="as-of">
      Popular of ${formatDay(newest.manifest.asOfDay)} against ${formatDay(base.manifest.asOfDay)}.
      <a href="${compared}">Compare all lists</a>
      ${place === 'home' ? html`<a class="narrow" href="${missedLink(now)}">What did I miss?</a>` : NOTHING}
    </p>
    <div class="changes">
      ${changes ? changesOf(changes, place === 'home' ? 3 : 2) : html`<p class="empty">One of them has an older layout.</p>`}
    </div>`
}

/** Numbers of days, the last complete one included. */
const SPANS = [
  [7, 'a week'],
  [14, 'two weeks'],
  [30, 'a month'],
] as const

/** Link to what was at the top in the last week. */
export function missedLink(now: Instant): string {
  return hrefOf(firstOf(SPANS[0][0], now))
}

/** The first day of a span up to the last complete day. */
function firstOf(days: number, now: Instant): Day {
  return addDays(lastCompleteDay(now), 1 - days)
}

function hrefOf(day: Day): string {
  return `/?${SINCE_PARAM}=${day}#feed`
}

/** `/?since=<day>`: everything that was at the top of any list of the Year on any day since then, each story once. */
export async function missedContent(view: View): Promise<SectionContent> {
  const { sources, now, query } = view
  const since = parseSince(query.params, now)
  const published = await publishedItems(view)
  const days = new Map(published.map(({ manifest }) => [manifest.asOfDay, manifest]))
  const manifests = [...days.values()].filter(({ asOfDay }) => asOfDay >= since)
  const form = sinceForm(since, now)
  const title = `At the top since ${formatDay(since)}`
  const [first] = days.keys()
  if (manifests.length === 0)
    return {
      status: 200,
      title,
      content: html`${form} ${first === undefined ? NO_PUBLICATION : nothingSince(since)}`,
    }
  const lists = await sources.lists(manifests)
  const years = manifests.flatMap(({ asOfDay, sha256 }) => {
    const tops = lists.get(sha256)?.tops
    return tops ? [{ asOfDay, tops }] : []
  })
  const stories = topStories(years)
  const rows = stories.map(({ story, note, isNew }) =>
    storyRow(story, now, true, { mark: isNew ? NEW : NOTHING, note }),
  )
  const newCount = stories.filter(({ isNew }) => isNew).length
  const content = html`${form}
    <ol class="items missed">
      ${rows}
    </ol>
    <p class="as-of">
      ${formatCounted(rows.length, 'stories')}, ${formatCount(newCount)} of them new after the first of these
      days, among the first ${TOP_LENGTH} of any list of the Top Year, new ones first, then by best rank, in
      ${formatCounted(years.length, 'publications')} from ${formatDay(manifests[0]?.asOfDay ?? since)} to
      ${formatDay(manifests.at(-1)?.asOfDay ?? since)}.
      ${first !== undefined && first > since ? html`The archive begins with ${formatDay(first)}.` : NOTHING}
      ${years.length < manifests.length ? html`Publications of an older layout are left out.` : NOTHING}
    </p>`
  return { status: 200, title, content }
}

/**
 * The stories at the top of some publications, and whether they came after the first of them: those first, since they
 * cannot have been seen before, and the best first.
 */
function topStories(years: readonly YearTops<ListedItem>[]): { story: Story; note: Html; isNew: boolean }[] {
  const found = topItems(years)
  const tops = new Map(found.map((top) => [top.item.key, top]))
  const stories = storiesOf(found.map(({ item, best }) => ({ ...item, rank: best }))).map((story) => {
    const each = [story.item, ...story.others].flatMap(({ key }) => tops.get(key) ?? [])
    const days = [...new Set(each.flatMap((top) => top.days))].sort()
    const [first] = each
    return { story, note: first ? daysNote(first, days) : NOTHING, isNew: days[0] !== years[0]?.asOfDay }
  })
  return stories.toSorted((a, b) => Number(b.isNew) - Number(a.isNew))
}

/** @throws Refusal `invalid_since` */
function parseSince(params: URLSearchParams, now: Instant): Day {
  const day = parsePastDay(params, SINCE_PARAM, now)
  if (day === null || day < firstDay(now)) throw new Refusal('invalid_since')
  return day
}

function firstDay(now: Instant): Day {
  return firstOf(PUBLICATIONS_MAX, now)
}

/** The refusal of the page of what was missed, with the form for another day if the day is refused. */
export function refusalOfMissed(error: unknown, now: Instant): SectionRefusal {
  if (!isRefusal(error, 'invalid_since')) return refusalOf(error)
  return {
    status: 400,
    code: 'invalid_since',
    when: `\`since\` must be a past day such as \`${lastCompleteDay(now)}\`, at most ${PUBLICATIONS_MAX} days ago`,
    help: sinceForm(firstOf(SPANS[0][0], now), now),
  }
}

function sinceForm(since: Day, now: Instant): Html {
  const last = lastCompleteDay(now)
  return html`<form class="day-form" action="/#feed" method="get">
    <label
      >What did I miss since
      <input
        type="date"
        name="${SINCE_PARAM}"
        value="${since}"
        min="${firstDay(now)}"
        max="${last}"
        autocomplete="off"
        required
    /></label>
    <button type="submit">Show</button>
    ${SPANS.map(([days, name]) => html`<a href="${hrefOf(firstOf(days, now))}">${name}</a>`)}
  </form>`
}

/** @param days on which the story was at the top, on any source */
function daysNote({ best, column, item }: TopItem<ListedItem>, days: readonly Day[]): Html {
  const [first = '', last = ''] = [days[0], days.at(-1)]
  const isOneMonth = first.slice(0, 7) === last.slice(0, 7)
  const span =
    first === last
      ? shortDay(first)
      : `${isOneMonth ? Number(first.slice(8)) : shortDay(first)} to ${shortDay(last)}`
  const list = html` in ${COLUMNS[column]}`
  // A narrow row names the list only where it is not that of the source, which the row names already.
  const isOwnList = COLUMNS[column] === nameOfSource(item.source)
  return html`<span class="stay" title="${days.join(', ')}"
    >${span}<span class="roomy"
      >, ${formatCounted(days.length, 'days')}, #${best}${isOwnList ? list : NOTHING}</span
    >${isOwnList ? NOTHING : list}</span
  >`
}

/** A day without its year, `25 Nov`. */
function shortDay(day: Day): string {
  return formatDay(day).slice(0, -' 2026'.length)
}

function nothingSince(since: Day): Html {
  return html`<p class="empty">No publication of the Year covers a day since ${formatDay(since)}.</p>`
}
