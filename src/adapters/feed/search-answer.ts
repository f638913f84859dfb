import { createHash } from 'node:crypto'
import { MATCHES, REACH_MAX } from '../../domain/feed/search.ts'
import type {
  FeedSearchRefusal,
  Match,
  SearchHit,
  SearchPage,
  SearchQuestion,
} from '../../domain/feed/search.ts'
import { parseSearchText, withLastBegun } from '../../domain/feed/search-text.ts'
import type { Unit } from '../../domain/feed/search-text.ts'
import { likeness, weightOf } from '../../domain/feed/similarity.ts'
import type { WordCounts } from '../../domain/feed/similarity.ts'
import { wordsOf } from '../../domain/feed/words.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Reader } from '../libsql/store-client.ts'
import { bestOf, matching } from './search-match.ts'
import type { Found, Scope } from './search-match.ts'
import { readCounts, readItems } from './search-rows.ts'
import { readAnsweringState } from './search-state.ts'
import type { IndexState } from './search-state.ts'

/** The best by BM25, which are ranked again by how much of a title is asked for. */
const RERANKED = 200

/**
 * Items read of each table, on every page alike: with fewer for the first page, what is a match of the text alone, and
 * so the order, would differ from page to page. One more than pages reach tells whether there is another.
 */
const FOUND = REACH_MAX + 1

/** A word in the text alone counts less than one in the title. */
const TEXT_WEIGHT = 0.5

/** Most items that the words of a partial match may occur in, all together: common words are left to the rare ones. */
const PARTIAL_MAX_ITEMS = 8_000

/** Share of the weight of the words asked for that a partial match must hold. */
const PARTIAL_MIN_SHARE = 0.5

interface Ranked {
  id: number
  match: Match
}

/** Answers {@link SearchQuestion} (docs/search.md). */
export async function answerSearch(reader: Reader, question: SearchQuestion): Promise<SearchPage> {
  const offset = offsetOf(question)
  const wanted = Math.min(offset + question.limit, REACH_MAX)
  const units = parseSearchText(question.query)
  const state = await readAnsweringState(reader)
  const ranked = units.length === 0 ? [] : await rank(reader, state, units, question, wanted + 1)
  const page = ranked.slice(offset, wanted)
  const items = await readItems(
    reader,
    state.active,
    page.map(({ id }) => id),
  )
  const hits = page.flatMap(({ id, match }): SearchHit[] => {
    const stored = items.get(id)
    return stored ? [{ ...stored.item, match }] : []
  })
  const isLast = ranked.length <= wanted || wanted === REACH_MAX
  return { items: hits, cursor: isLast ? null : cursorOf(question, wanted) }
}

/** Items with every word, then those with the last word begun, then those with some words. */
async function rank(
  reader: Reader,
  state: IndexState,
  units: readonly Unit[],
  scope: Scope,
  wanted: number,
): Promise<Ranked[]> {
  const counts = await readCounts(
    reader,
    state,
    units.flatMap(({ words }) => words),
  )
  const ranked = new Map<number, Ranked>()
  for (const match of MATCHES) {
    if (ranked.size >= wanted) break
    // Where a phrase as it was asked for is nowhere, its words may still be.
    const asked = match === 'some' && ranked.size === 0 ? unquoted(units) : units
    const expression = expressionOf(match, asked, counts)
    if (expression === null) continue
    const found = await find(reader, state, expression, scope, match === 'some' ? RERANKED : FOUND)
    const best = await rerank(reader, state, found, units, counts, match === 'some' ? PARTIAL_MIN_SHARE : 0)
    for (const id of best) if (!ranked.has(id)) ranked.set(id, { id, match })
  }
  return [...ranked.values()]
}

function expressionOf(match: Match, units: readonly Unit[], counts: WordCounts): string | null {
  if (match === 'all') return matching(units, 'AND')
  if (match === 'prefix') {
    const begun = withLastBegun(units)
    return begun && matching(begun, 'AND')
  }
  const quoted = units.filter((unit) => unit.quoted)
  const loose = rarest(
    units.filter((unit) => !unit.quoted),
    counts,
  )
  if (units.length < 2 || loose.length === 0) return null
  const some = `(${matching(loose, 'OR')})`
  return quoted.length === 0 ? some : `${matching(quoted, 'AND')} AND ${some}`
}

/** The same words, without the order that quotation marks ask for. */
function unquoted(units: readonly Unit[]): Unit[] {
  const loose = units.flatMap((unit) =>
    unit.quoted ? unit.words.map((word) => ({ words: [word], prefix: false, quoted: false })) : [unit],
  )
  return [...new Map(loose.map((unit) => [JSON.stringify([unit.words, unit.prefix]), unit])).values()]
}

/** The units with the rarest words, as many as together occur in few enough items; at least one that occurs. */
function rarest(units: readonly Unit[], { of }: WordCounts): Unit[] {
  const counted = units
    .map((unit) => ({ unit, items: Math.max(0, ...unit.words.map((word) => of.get(word) ?? 0)) }))
    .filter(({ unit, items }) => items > 0 || unit.prefix)
    .sort((a, b) => a.items - b.items)
  let total = 0
  return counted.flatMap(({ unit, items }, index) => {
    total += items
    return index === 0 || total <= PARTIAL_MAX_ITEMS ? [unit] : []
  })
}

/** Items by BM25: of the titles, and of the texts for those whose title does not match. */
async function find(
  reader: Reader,
  { active }: IndexState,
  expression: string,
  scope: Scope,
  limit: number,
): Promise<Found[]> {
  const inTitles = await bestOf(reader, active, 'titles', expression, scope, limit)
  const inTexts = await bestOf(reader, active, 'texts', expression, scope, limit)
  const titles = new Set(inTitles.map(({ id }) => id))
  const textOnly = inTexts
    .filter(({ id }) => !titles.has(id))
    .map(({ id, score }) => ({ id, score: score * TEXT_WEIGHT }))
  return [...inTitles, ...textOnly].sort((a, b) => b.score - a.score || b.id - a.id)
}

/**
 * Ranks the best again: BM25 times one plus how alike the title is to what was asked. Equal ones: more points first,
 * then the newer.
 */
async function rerank(
  reader: Reader,
  state: IndexState,
  found: readonly Found[],
  units: readonly Unit[],
  counts: WordCounts,
  minShare: number,
): Promise<number[]> {
  const best = found.slice(0, RERANKED)
  const items = await readItems(
    reader,
    state.active,
    best.map(({ id }) => id),
  )
  const words = units.flatMap((unit) => unit.words)
  // A word that no title holds is mistyped, or stands in texts alone: it rules nothing out.
  const known = words.filter((word) => (counts.of.get(word) ?? 0) > 0)
  const total = known.reduce((sum, word) => sum + weightOf(word, counts), 0)
  const scored = best.flatMap(({ id, score }) => {
    const stored = items.get(id)
    if (!stored) return []
    const { score: alike, shared } = likeness(words, wordsOf(stored.item.title), counts)
    const share = shared.reduce((sum, word) => sum + weightOf(word, counts), 0) / (total || 1)
    if (share < minShare) return []
    return [{ id, score: score * (1 + alike), points: stored.item.points ?? 0 }]
  })
  const again = scored.sort((a, b) => b.score - a.score || b.points - a.points || b.id - a.id)
  return [...again, ...(minShare > 0 ? [] : found.slice(RERANKED))].map(({ id }) => id)
}

/** How far down the ranking a page begins. */
function offsetOf(question: SearchQuestion): number {
  if (question.cursor === null) return 0
  const [, digest, offset] = /^([\w-]{16})\.(\d{1,4})$/.exec(question.cursor) ?? []
  if (digest !== digestOf(question) || Number(offset) >= REACH_MAX) {
    throw new Refusal<FeedSearchRefusal>('invalid_cursor', 'the cursor belongs to another question')
  }
  return Number(offset)
}

function cursorOf(question: SearchQuestion, offset: number): string {
  return `${digestOf(question)}.${offset}`
}

function digestOf({ query, sources, from, to }: SearchQuestion): string {
  const text = JSON.stringify([query, sources, from, to])
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}
