import { z } from 'zod'
import { onceFor } from '../once.ts'
import { compareCodeUnits } from '../text.ts'
import { parseQuery } from '../wire-format.ts'
import { COLUMN_LENGTH, COLUMN_NAMES, takeDistinct } from './columns.ts'
import type { ColumnName } from './columns.ts'
import type { LiveFeed, LiveItem } from './live-items.ts'
import type { LiveRefusal } from './live-sort.ts'
import { hasTerms, parseSearchText } from './search/search-terms.ts'
import { minimumFields, optionalInteger, sourceList } from './search/search.ts'
import { indexedWords } from './search/tokenize.ts'
import { factsOf } from './source.ts'

/** Rules that select items of a live period (docs/api.md): a saved search, the same on the page and in every feed. */

/** Longest `q` of a rule, in UTF-16 units. */
export const RULE_QUERY_MAX_LENGTH = 200

/** The query parameters of a rule. */
export const ruleFields = {
  q: z
    .string()
    .max(RULE_QUERY_MAX_LENGTH)
    .refine((text) => text.trim() !== '')
    .meta({
      description: 'Words of the title, as in the search: words, `"phrases"` and `prefix*`, all of them.',
      example: 'postgres',
    })
    .optional()
    .transform((text) => text ?? null),
  source: sourceList.meta({ description: 'Sources, comma-separated: `hn,lobsters`. Default: all.' }),
  ...minimumFields,
  top: optionalInteger('Maximum number of matching items in each list.', 1, COLUMN_LENGTH),
}

const ruleSchema = z.object(ruleFields)

/** A rule: null, or an empty list of sources, for no condition. */
export type FeedRule = z.infer<typeof ruleSchema>

type RuleParam = keyof FeedRule
export const RULE_PARAMS = Object.keys(ruleFields) as RuleParam[]

/**
 * Parses the rule of a request. Empty values count as absent, as a form sends them.
 *
 * @returns null when the request has none
 * @throws Refusal `invalid_rule` with the first invalid `parameter` and its `value`
 */
export function parseRule(params: URLSearchParams): FeedRule | null {
  const code: LiveRefusal = 'invalid_rule'
  const codes = { q: code, source: code, minPoints: code, minComments: code, top: code }
  const given = new URLSearchParams([...params].filter(([, value]) => value !== ''))
  return RULE_PARAMS.some((name) => given.has(name)) ? parseQuery(ruleSchema, given, codes) : null
}

/** The query parameters of a rule, in a fixed order. */
export function paramsOfRule(rule: FeedRule | null): URLSearchParams {
  if (rule === null) return new URLSearchParams()
  const { q, source, minPoints, minComments, top } = rule
  const values = { q, source: source.length > 0 ? source.join(',') : null, minPoints, minComments, top }
  return new URLSearchParams(
    Object.entries(values).flatMap(([name, value]): [string, string][] =>
      value === null ? [] : [[name, String(value)]],
    ),
  )
}

export interface RuledItem {
  source: string
  title: string
  points: number
  comments: number | null
}

/** Words of a title, split once while its item lives: a list is tested with many rules. */
const wordsOf = onceFor(({ title }: RuledItem) => indexedWords(title))

/** Returns the test of a rule's conditions on an item; `top` is not one of them. */
export function ruleTest({ q, source, minPoints, minComments }: FeedRule): (item: RuledItem) => boolean {
  const terms = q === null ? null : parseSearchText(q)
  return (item) =>
    (source.length === 0 || source.includes(item.source)) &&
    (minPoints === null || item.points >= minPoints) &&
    (minComments === null || (item.comments ?? 0) >= minComments) &&
    (terms === null || hasTerms(wordsOf(item), terms))
}

/** The feed with the matching items of every list, at most `top` of each; items keep their ranks. */
export function applyRule<Feed extends Record<ColumnName, readonly RuledItem[]>>(
  feed: Feed,
  rule: FeedRule,
): Feed {
  const matches = ruleTest(rule)
  const lists = COLUMN_NAMES.map((name) => [
    name,
    feed[name].filter(matches).slice(0, rule.top ?? COLUMN_LENGTH),
  ])
  return { ...feed, ...Object.fromEntries(lists) }
}

/** One item of the subscription feeds (docs/api.md); its rank is the one in this feed. */
export interface SubscriptionItem extends LiveItem {
  /** URL of the item, else of its discussion; null when both are missing. */
  link: string | null
  unit: string
  author: string | null
  tags: readonly string[]
  /** One line of plain text: the numbers and the description. */
  summary: string
}

/** An item of any list, with the source's own member names. */
type AnyItem = LiveItem &
  Partial<Record<'by' | 'submitter_user' | 'author' | 'username' | 'description', string | null>> & {
    tags?: readonly string[]
  }

/**
 * The items of a subscription in one list by `agg_score`, then by save key, at most a hundred. Without a rule: `popular`,
 * the hype column and the images. With a rule: the matching items of every list, each exact URL and title once, at most
 * `top`.
 */
export function subscriptionItems(feed: LiveFeed, rule: FeedRule | null = null): SubscriptionItem[] {
  const { popular, hypeReplicate, midjourney } = feed
  const items = rule === null ? inOrder([popular, hypeReplicate, midjourney]) : matchingItems(feed, rule)
  return items.slice(0, rule?.top ?? COLUMN_LENGTH).map((item, index) => ({
    ...item,
    rank: index + 1,
    link: item.url ?? item.discussionUrl,
    unit: unitOf(item.source),
    author: authorOf(item),
    tags: (item.tags ?? []).filter((tag) => tag.trim() !== ''),
    summary: summaryOf(item),
  }))
}

function inOrder(lists: readonly (readonly AnyItem[])[]): AnyItem[] {
  return lists.flat().sort((a, b) => b.agg_score - a.agg_score || compareCodeUnits(a.key, b.key))
}

function matchingItems(feed: LiveFeed, rule: FeedRule): AnyItem[] {
  const { popular, hackerNews, lobsters, lessWrong, hypeReplicate, midjourney } = applyRule(feed, {
    ...rule,
    top: null,
  })
  const items = inOrder([popular, hackerNews, lobsters, lessWrong, hypeReplicate, midjourney])
  return takeDistinct(
    items,
    ({ url }) => url,
    ({ title }) => title,
  )
}

function authorOf({ by, submitter_user, author, username }: AnyItem): string | null {
  const name = by ?? submitter_user ?? author ?? username ?? ''
  return name.trim() === '' ? null : name
}

function summaryOf({ source, points, comments, description }: AnyItem): string {
  const commentText = comments === null ? '' : `, ${withUnit(comments, 'comments')}`
  const numbers = `${withUnit(points, unitOf(source))}${commentText} on ${nameOfSource(source)}`
  const descriptionText = description?.trim() ?? ''
  return descriptionText === '' ? numbers : `${numbers}: ${descriptionText}`
}

function withUnit(count: number, plural: string): string {
  return `${count} ${count === 1 ? plural.replace(/s$/, '') : plural}`
}

/** Describes a rule in words: `postgres, Hacker News, at least 50 points`. */
export function describeRule({ q, source, minPoints, minComments, top }: FeedRule): string {
  return [
    q === null ? [] : [q],
    source.map(nameOfSource),
    minPoints === null ? [] : [`at least ${withUnit(minPoints, 'points')}`],
    minComments === null ? [] : [`at least ${withUnit(minComments, 'comments')}`],
    top === null ? [] : [`top ${top}`],
  ]
    .flat()
    .join(', ')
}

/** The unit of a source's points, in the plural: `points`, `karma`, `stars`, `likes`, `runs` or `upvotes`. */
export function unitOf(source: string): string {
  return factsOf(source)?.unit ?? 'points'
}

/** The display name of a source; its id when it has none. */
export function nameOfSource(source: string): string {
  return factsOf(source)?.name ?? source
}
