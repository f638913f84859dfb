import { QUERY_MAX_WORDS } from '../../domain/feed/search/search.ts'
import { formsOf, withLastAsPrefix } from '../../domain/feed/search/search-terms.ts'
import type { QueryTerm } from '../../domain/feed/search/search-terms.ts'
import type { WordCounts } from '../../domain/feed/search/title-similarity.ts'
import { isPaired } from '../../domain/feed/search/tokenize.ts'

/** Expressions of SQLite's FTS5 for search words. */

/** Returns the expression of every word, or of every word with the last one as a prefix; null if there is none. */
export function expressionOfAll(match: 'all' | 'prefix', units: readonly QueryTerm[]): string | null {
  const matched = match === 'all' ? units : (withLastAsPrefix(units) ?? [])
  return matched.length === 0 ? null : toMatchExpression(matched, 'AND')
}

/**
 * Returns the expression of some of the words; null if there is none.
 *
 * @param hasEarlierHits true if items with all words were found; otherwise quoted phrases are split too
 */
export function expressionOfSome(
  units: readonly QueryTerm[],
  counts: WordCounts,
  hasEarlierHits: boolean,
): string | null {
  const parts = distinctUnits(units.flatMap((unit) => (unit.quoted && hasEarlierHits ? [unit] : split(unit))))
  const quoted = parts.filter((unit) => unit.quoted)
  const loose = rarestUnits(
    parts.filter((unit) => !unit.quoted),
    counts,
  )
  if (parts.length < 2 || loose.length === 0) return null
  const some = `(${toMatchExpression(loose, 'OR')})`
  return quoted.length === 0 ? some : `${toMatchExpression(quoted, 'AND')} AND ${some}`
}

/** Splits a unit into its words; a run of pairs that was typed without quotation marks stays one unit. */
function split({ words, prefix, quoted }: QueryTerm): QueryTerm[] {
  if (!quoted && words.some(isPaired)) return [{ words, prefix, quoted }]
  return toWordUnits(words).map((unit, index) => ({ ...unit, prefix: prefix && index === words.length - 1 }))
}

function distinctUnits(units: readonly QueryTerm[]): QueryTerm[] {
  return [...new Map(units.map((unit) => [JSON.stringify([unit.words, unit.prefix]), unit])).values()]
}

export function toWordUnits(words: readonly string[]): QueryTerm[] {
  return words.map((word) => ({ words: [word], prefix: false, quoted: false }))
}

/** Returns an FTS5 expression for units: each unit is quoted, so that it contains no syntax. */
export function toMatchExpression(units: readonly QueryTerm[], operator: 'AND' | 'OR'): string {
  const phrases = units.map((unit) =>
    formsOf(unit).map(
      ({ words, prefix }) => `"${words.join(' ').replaceAll('"', '""')}"${prefix ? ' *' : ''}`,
    ),
  )
  return phrases.map((forms) => (forms.length > 1 ? `(${forms.join(' OR ')})` : forms)).join(` ${operator} `)
}

/** Maximum total number of titles with alternative words: common words would exceed the time of a query. */
const ALTERNATIVES_MAX = 8_000

/** Returns the units with the rarest words up to {@link ALTERNATIVES_MAX} titles in total, and at least one. */
export function rarestUnits(units: readonly QueryTerm[], { of }: WordCounts): QueryTerm[] {
  const counted = units
    .map((unit) => ({ unit, titles: Math.max(0, ...unit.words.map((word) => of.get(word) ?? 0)) }))
    .filter(({ unit, titles }) => titles > 0 || unit.prefix)
    .sort((a, b) => a.titles - b.titles)
    .slice(0, QUERY_MAX_WORDS)
  let total = 0
  return counted.flatMap(({ unit, titles }, index) => {
    total += titles
    return index === 0 || total <= ALTERNATIVES_MAX ? [unit] : []
  })
}
