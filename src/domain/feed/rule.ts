import { z } from 'zod'
import { onceFor } from '../once.ts'
import { parseQuery } from '../query.ts'
import type { LiveRefusal } from './live-sort.ts'
import { COLUMN_LENGTH, COLUMN_NAMES } from './columns.ts'
import type { ColumnName } from './columns.ts'
import { minimumFields, optionalInteger, sourceList } from './search/search.ts'
import { hasTerms, parseSearchText } from './search/search-terms.ts'
import { indexedWords } from './search/tokenize.ts'

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
