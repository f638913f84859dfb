import { COLUMNS } from '../../../domain/feed/columns.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { nameOfSource } from '../../../domain/feed/subscription.ts'
import { addDays, parseDay } from '../../../domain/time.ts'
import type { Day, Instant } from '../../../domain/time.ts'
import { selectableItems } from '../../../domain/year/history/calendar.ts'
import { TOP_LENGTH, topItems } from '../../../domain/year/history/changes.ts'
import type { TopItem, YearTops } from '../../../domain/year/history/changes.ts'
import { lastCompleteDay } from '../../../domain/year/ledger.ts'
import { PUBLICATIONS_MAX } from '../../year/year-lists.ts'
import type { ListedItem } from '../../year/year-lists.ts'
import { storiesOf } from '../feed-columns.ts'
import { storyRow } from '../story-row.ts'
import type { Story } from '../story-row.ts'
import { NEW } from './comparison.ts'
import { NOTHING, formatCount, formatCounted, formatDay, html } from '../html.ts'
import type { Html } from '../html.ts'
import type { View } from '../rendered-pages.ts'
import type { SectionContent, SectionRefusal } from '../sections.ts'

/** Query parameter of the first day that a reader missed. */
export const SINCE_PARAM = 'since'

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
  const { timeline } = await sources.publications.entries()
  const published = selectableItems(timeline).filter(({ manifest }) => manifest.publishedAt <= now)
  const days = new Map(published.map(({ manifest }) => [manifest.asOfDay, manifest]))
  const manifests = [...days.values()].filter(({ asOfDay }) => asOfDay >= since)
  const form = sinceForm(since, now)
  const title = `At the top since ${formatDay(since)}`
  const [first] = days.keys()
  if (manifests.length === 0)
    return {
      status: 200,
      title,
      content: html`${form} ${first === undefined ? NO_ARCHIVE : nothingSince(since)}`,
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
      days, among the first ${TOP_LENGTH} of any list of the Top Year, by best rank, in
      ${formatCounted(years.length, 'publications')} from ${formatDay(manifests[0]?.asOfDay ?? since)} to
      ${formatDay(manifests.at(-1)?.asOfDay ?? since)}.
      ${first !== undefined && first > since ? html`The archive begins with ${formatDay(first)}.` : NOTHING}
      ${years.length < manifests.length ? html`Publications of an older layout are left out.` : NOTHING}
    </p>`
  return { status: 200, title, content }
}

/** The stories at the top of some publications, best first, and whether they came after the first of them. */
function topStories(years: readonly YearTops<ListedItem>[]): { story: Story; note: Html; isNew: boolean }[] {
  const found = topItems(years)
  const tops = new Map(found.map((top) => [top.item.key, top]))
  return storiesOf(found.map(({ item, best }) => ({ ...item, rank: best }))).map((story) => {
    const each = [story.item, ...story.others].flatMap(({ key }) => tops.get(key) ?? [])
    const days = [...new Set(each.flatMap((top) => top.days))].sort()
    const [first] = each
    return { story, note: first ? daysNote(first, days) : NOTHING, isNew: days[0] !== years[0]?.asOfDay }
  })
}

/** @throws Refusal `invalid_since` */
function parseSince(params: URLSearchParams, now: Instant): Day {
  const [text = '', ...more] = params.getAll(SINCE_PARAM)
  const day = more.length === 0 ? parseDay(text) : null
  if (day === null || day > lastCompleteDay(now) || day < firstDay(now)) throw new Refusal('invalid_since')
  return day
}

function firstDay(now: Instant): Day {
  return firstOf(PUBLICATIONS_MAX, now)
}

/** The refusal of a bad day, with the form for another. */
export function refusalOfSince(now: Instant): SectionRefusal {
  return {
    status: 400,
    code: 'invalid_since',
    when: `\`since\` is not a day like \`${lastCompleteDay(now)}\`, is not over yet, or is more than ${PUBLICATIONS_MAX} days ago`,
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

const NO_ARCHIVE = html`<p class="empty">
  Nothing has been published yet, so no day can be looked up. Import signals, then run
  <code>dash publish-year</code>.
</p>`

function nothingSince(since: Day): Html {
  return html`<p class="empty">No publication of the Year covers a day since ${formatDay(since)}.</p>`
}
