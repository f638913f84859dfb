import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { paramsOfRule, describeRule, nameOfSource } from '../../domain/feed/subscription.ts'
import type { FeedRule } from '../../domain/feed/subscription.ts'
import { formatInstant } from '../../domain/time.ts'
import { dayField } from '../../domain/wire-format.ts'
import { firstDayOf, lastDayOf } from '../../domain/year/history/calendar.ts'
import type { GapStop } from '../../domain/year/history/calendar.ts'
import { applyRuleToChanges, changesBetween } from '../../domain/year/history/changes.ts'
import type { PublicationStep, YearChanges } from '../../domain/year/history/changes.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { STATIC_HOME } from '../../domain/year/log/static-layout.ts'
import type { FeedHost } from '../feed/feeds.ts'
import { permanentId, xml } from '../feed/formats.ts'
import type { FeedDocument } from '../feed/formats.ts'
import { titleLink } from '../page/story-row.ts'
import { NOTHING, formatCounted, html, instantOf } from '../page/html.ts'
import type { Html } from '../page/html.ts'
import { HISTORY_DOCS } from './routes.ts'
import { PUBLICATIONS_MAX } from './year-lists.ts'
import type { ListedItem, ListsByDigest, ReadYearLists } from './year-lists.ts'

/** The entries of the feed of changes of the Year, and their text. */

const ranked = z.object({ key: z.string(), rank: z.int() })

export const ENTRY_FACTS = z.object({
  publicationId: z.string(),
  sha256: z.string().describe('SHA-256 of the publication'),
  asOfDay: dayField,
  previous: z.string().nullable().describe('id of the publication before; null for the first one'),
  gaps: z
    .array(z.object({ firstDay: dayField, lastDay: dayField }))
    .describe('days between the two without a publication'),
  changes: z
    .object({
      newFirst: ranked.nullable().describe('the new number 1; null if it is unchanged'),
      entered: z.array(ranked),
      left: z.array(ranked).describe('with the rank in the publication before'),
      moved: z.array(z.object({ key: z.string(), from: z.int(), to: z.int() })).describe('by 10 or more'),
    })
    .nullable()
    .describe('changes of `popular`; null for the first publication and for older layouts'),
})

type ChangesFeed = FeedDocument<object, z.infer<typeof ENTRY_FACTS>>

/** A step with its changes; null for the first publication and for older layouts. */
export interface StepChanges {
  step: PublicationStep
  changes: YearChanges<ListedItem> | null
}

export function stepChanges(step: PublicationStep, lists: ListsByDigest): StepChanges {
  const before = step.previous && lists.get(step.previous.manifest.sha256)?.popular
  const after = lists.get(step.item.manifest.sha256)?.popular
  return { step, changes: before && after ? changesBetween(before, after) : null }
}

/** True if a feed with a rule has an entry for the step: matching changes, or a gap before it. */
function isNamed({ step, changes }: StepChanges): boolean {
  if (step.gaps.length > 0) return true
  if (changes === null) return false
  const { newFirst, entered, left, moved } = changes
  return newFirst !== null || entered.length + left.length + moved.length > 0
}

/** Most characters of the contents of a document: the entries that do not fit are left out, oldest first. */
const CONTENTS_MAX = 1_000_000

interface PageLinks {
  pageOf: (manifest: Manifest) => string
  /** Null if there is no page of a comparison. */
  comparisonOf: (before: Manifest, after: Manifest) => string | null
}

/** The newest entries that fit, with a turn of the event loop after each. */
async function newestEntries(
  steps: readonly StepChanges[],
  rule: FeedRule | null,
  links: PageLinks,
): Promise<ChangesFeed['items']> {
  const query = String(paramsOfRule(rule))
  const entries: ChangesFeed['items'][number][] = []
  let length = 0
  for (const { step, changes } of steps.toReversed()) {
    const selected = { step, changes: changes && rule ? applyRuleToChanges(changes, rule) : changes }
    if (rule !== null && !isNamed(selected)) continue
    const entry = entryOf(selected, links, query)
    length += 'html' in entry.content ? entry.content.html.html.length : 0
    if (length > CONTENTS_MAX && entries.length > 0) break
    entries.push(entry)
    await nextTurn()
  }
  return entries
}

export async function changesFeed(
  steps: readonly StepChanges[],
  rule: FeedRule | null,
  { baseUrl, demo }: FeedHost,
  path: string,
): Promise<ChangesFeed> {
  const query = String(paramsOfRule(rule))
  return {
    title: `${demo ? 'DEMO: ' : ''}${FEED_TITLE}${rule === null ? '' : `: ${describeRule(rule)}`}`,
    description: `${FEED_DESCRIPTION}${rule === null ? '' : ' with matching items'}.`,
    homeUrl: `${baseUrl}/?${addToQuery('sort=year', query)}`,
    selfUrl: `${baseUrl}${path}${query === '' ? '' : `?${query}`}`,
    docsUrl: `${baseUrl}${HISTORY_DOCS}`,
    generatedAt: formatInstant(steps.at(-1)?.step.item.manifest.publishedAt ?? 0),
    elements: [],
    facts: {},
    items: await newestEntries(steps, rule, serverLinks(baseUrl, query)),
  }
}

/** The pages of a server. @param query of the rule; empty without one */
function serverLinks(baseUrl: string, query: string): PageLinks {
  const at = ({ publishedAt }: Manifest): string => `${baseUrl}/?sort=year&at=${formatInstant(publishedAt)}`
  return {
    pageOf: (manifest) => addToQuery(at(manifest), query),
    comparisonOf: (before, after) => `${at(before)}&with=${formatInstant(after.publishedAt)}`,
  }
}

/**
 * The feed of an export: the changes of its newest publications, with links relative to its root.
 *
 * @param origin name of the log, for the id of the feed
 * @param path path of the document
 */
export async function exportedChangesFeed(
  steps: readonly PublicationStep[],
  readLists: ReadYearLists,
  pageOf: (manifest: Manifest) => string,
  origin: string,
  path: string,
): Promise<FeedDocument> {
  const newest = steps.slice(-PUBLICATIONS_MAX)
  const manifests = newest.flatMap(({ item, previous }) => (previous ? [previous, item] : [item]))
  const lists = await readLists(manifests.map(({ manifest }) => manifest))
  const changes = newest.map((step) => stepChanges(step, lists))
  return {
    title: FEED_TITLE,
    description: `${FEED_DESCRIPTION}.`,
    homeUrl: STATIC_HOME,
    selfUrl: path,
    id: permanentId(`${origin} changes`),
    docsUrl: null,
    generatedAt: formatInstant(newest.at(-1)?.item.manifest.publishedAt ?? 0),
    elements: [],
    facts: {},
    items: await newestEntries(changes, null, { pageOf, comparisonOf: () => null }),
  }
}

const FEED_TITLE = 'dash: changes of the Top Year'

const FEED_DESCRIPTION = 'What entered, left and moved in the Top Year (Popular), one entry a publication'

function addToQuery(query: string, added: string): string {
  return added === '' ? query : `${query}&${added}`
}

/** @param query of the rule; empty without one */
function entryOf(
  { step, changes }: StepChanges,
  links: PageLinks,
  query: string,
): ChangesFeed['items'][number] {
  const { publicationId, sha256, asOfDay, publishedAt } = step.item.manifest
  return {
    id: permanentId(`${publicationId} ${sha256}${query === '' ? '' : ` ${query}`}`),
    title: `Top Year ${asOfDay}: ${summaryOf(step, changes)}`,
    link: links.pageOf(step.item.manifest),
    publishedAt: formatInstant(publishedAt),
    author: null,
    discussionUrl: null,
    categories: [],
    content: { html: contentOf(step, changes, links) },
    elements: [
      xml`<dash:publication>${publicationId}</dash:publication>\n`,
      xml`<dash:sha256>${sha256}</dash:sha256>\n`,
      xml`<dash:asOfDay>${asOfDay}</dash:asOfDay>\n`,
    ],
    facts: {
      publicationId,
      sha256,
      asOfDay,
      previous: step.previous?.manifest.publicationId ?? null,
      gaps: step.gaps.map((gap) => ({ firstDay: firstDayOf(gap), lastDay: lastDayOf(gap) })),
      changes: changes && {
        newFirst: changes.newFirst && rankOf(changes.newFirst),
        entered: changes.entered.map(rankOf),
        left: changes.left.map(rankOf),
        moved: changes.moved.map(({ before: { rank: from }, after: { key, rank: to } }) => ({
          key,
          from,
          to,
        })),
      },
    },
  }
}

function rankOf({ key, rank }: ListedItem): z.infer<typeof ranked> {
  return { key, rank }
}

function summaryOf({ previous, gaps }: PublicationStep, changes: YearChanges<ListedItem> | null): string {
  const gapText = gaps.length > 0 ? ', after a gap' : ''
  if (!previous) return 'the first publication'
  if (!changes) return `published in an older layout${gapText}`
  const { newFirst, entered, left, moved } = changes
  const counts = `${entered.length} entered, ${left.length} left, ${moved.length} moved by 10 or more`
  return `${newFirst ? 'new number 1, ' : ''}${counts}${gapText}`
}

function contentOf(
  { item, previous, gaps }: PublicationStep,
  changes: YearChanges<ListedItem> | null,
  { pageOf, comparisonOf }: PageLinks,
): Html {
  const compared = previous && comparisonOf(previous.manifest, item.manifest)
  const comparison =
    previous && compared !== null
      ? html` · <a href="${compared}">compared with ${previous.manifest.asOfDay}</a>`
      : NOTHING
  return html`<p>
      The last 365 days up to ${item.manifest.asOfDay}, published ${instantOf(item.manifest.publishedAt)}:
      <a href="${pageOf(item.manifest)}">the lists</a>${comparison}
    </p>
    ${gaps.map(gapNote)} ${changes ? changesOf(changes) : NOTHING}`
}

const REASONS = { missed: 'the day was missed', attempts_spent: 'every attempt failed' }

/** Says that nothing was published on the days of a gap, and why. */
export function gapNote(gap: GapStop): Html {
  const [first, last] = [firstDayOf(gap), lastDayOf(gap)]
  const reason = gap.recorded ? REASONS[gap.recorded.reason] : 'without an entry in the ledger'
  const days = first === last ? first : `${first} to ${last}`
  return html`<p>Gap: nothing was published for ${days} (${reason}).</p>`
}

/**
 * Renders what entered, left, moved and became number 1, each with its rank.
 *
 * @param headingLevel level of the headings of the parts
 */
export function changesOf(
  { newFirst, entered, left, moved }: YearChanges<ListedItem>,
  headingLevel: 2 | 3 = 3,
): Html {
  const itemList = (title: string, lines: readonly Html[]): Html =>
    lines.length === 0
      ? NOTHING
      : html`<h${headingLevel}>${title}</h${headingLevel}>
          <ul>
            ${lines.map((line) => html`<li>${line}</li>`)}
          </ul>`
  return html`${newFirst ? html`<p>New number 1: ${itemLine(newFirst)}</p>` : NOTHING}
  ${itemList(
    `${formatCounted(entered.length, 'items')} entered`,
    entered.map((item) => html`#${item.rank} ${itemLine(item)}`),
  )}
  ${itemList(
    `${formatCounted(left.length, 'items')} left`,
    left.map((item) => html`was #${item.rank}: ${itemLine(item)}`),
  )}
  ${itemList(
    `${formatCounted(moved.length, 'items')} moved by 10 or more`,
    moved.map(({ before, after }) => html`#${before.rank} → #${after.rank} ${itemLine(after)}`),
  )}`
}

function itemLine(item: ListedItem): Html {
  return html`${titleLink(item)} (${nameOfSource(item.source)})`
}
