import { addDays, formatInstant } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import type { TimelineItem } from '../../../domain/year/chain.ts'
import { selectableItems } from '../../../domain/year/history/calendar.ts'
import { changesBetween } from '../../../domain/year/history/changes.ts'
import type { YearChanges } from '../../../domain/year/history/changes.ts'
import { lastCompleteDay } from '../../../domain/year/ledger.ts'
import { ranksContract } from '../../year/rank-routes.ts'
import { changesOf } from '../../year/change-entries.ts'
import type { ListedItem } from '../../year/year-lists.ts'
import { NOTHING, formatDay, html } from '../html.ts'
import type { Html } from '../html.ts'
import type { View } from '../rendered-pages.ts'
import { refusalsOf, section } from '../sections.ts'
import type { Section, SectionPage } from '../sections.ts'
import { missedLink } from './missed.ts'

const TITLE = 'Changes of the Year'

const SINCE_PARAM = 'since'

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
    const { timeline } = await sources.publications.entries()
    const published = selectableItems(timeline).filter(({ manifest }) => manifest.publishedAt <= now)
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
    // Its script keeps the names (browser/since.ts).
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

const NO_PUBLICATION = html`<p class="empty">Nothing has been published yet.</p>`

const NO_CHANGE = html`<p>No publication of the Year since then.</p>`

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

/** Ranks of items that left which the line names. */
const LEFT_NAMED = 3

/** The changes in short, `2 entered, #9 left`. */
function countsOf({ entered, left, moved, newFirst }: YearChanges<ListedItem>): string {
  const ranks = left.slice(0, LEFT_NAMED).map(({ rank }) => `#${rank}`)
  const more = left.length > LEFT_NAMED ? [`${left.length - LEFT_NAMED} more`] : []
  const parts = [
    ...(newFirst ? ['new #1'] : []),
    ...(entered.length > 0 ? [`${entered.length} entered`] : []),
    ...(left.length > 0 ? [`${LIST.format([...ranks, ...more])} left`] : []),
    ...(moved.length > 0 ? [`${moved.length} moved by 10 or more`] : []),
  ]
  return parts.length > 0 ? parts.join(', ') : 'nothing entered or left'
}

const LIST = new Intl.ListFormat('en')

function contentOf(
  base: TimelineItem,
  newest: TimelineItem,
  changes: YearChanges<ListedItem> | null,
  place: 'home' | 'page',
  now: Instant,
): Html {
  const compared = `/?sort=year&at=${timeOf(base)}&with=${timeOf(newest)}#feed`
  return html`<p class="as-of">
      Popular of ${newest.manifest.asOfDay} against ${base.manifest.asOfDay}.
      <a href="${compared}">Compare all lists</a>
      ${place === 'home' ? html`<a class="narrow" href="${missedLink(now)}">What did I miss?</a>` : NOTHING}
    </p>
    <div class="changes">
      ${changes ? changesOf(changes, place === 'home' ? 3 : 2) : html`<p class="empty">One of them has an older layout.</p>`}
    </div>`
}
