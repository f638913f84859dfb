import { createHash } from 'node:crypto'
import {
  likeness,
  parseSearchText,
  reasonsOf,
  weightOf,
  withLastBegun,
  wordsOf,
} from '../../domain/feed/search-words.ts'
import type { Unit, WordCounts } from '../../domain/feed/search-words.ts'
import { MATCHES, QUERY_MAX_WORDS, REACH_MAX } from '../../domain/feed/search.ts'
import type {
  FeedSearchRefusal,
  ItemTrend,
  Match,
  SearchHit,
  SearchPage,
  SearchQuestion,
  SimilarItem,
  TermTrend,
  TermTrendQuestion,
} from '../../domain/feed/search.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Reader, StoreClient } from '../sqlite/rows.ts'
import {
  EVERYTHING,
  INDEX_STEP,
  answerItemTrend,
  answerTermTrend,
  bestOf,
  matching,
  readAnsweringState,
  readCounts,
  readItemOfKey,
  readItems,
  readItemsOfPage,
} from './search-rows.ts'
import type { Found, IndexState, Scope, Stored } from './search-rows.ts'

/** A question as it travels to the process that answers it. */
export type Question =
  | { ask: 'search'; question: SearchQuestion }
  | { ask: 'similar'; key: string; limit: number }
  | { ask: 'item-trend'; key: string }
  | { ask: 'term-trend'; question: TermTrendQuestion }

export type Answer = SearchPage | SimilarItem[] | ItemTrend | TermTrend

/** Grows with every import that changed something. */
const SIGNALS_REVISION = 'SELECT number FROM revision'

/** Answers a question from one state of the index or, where it is about signals, of the signals. */
export function answer(client: StoreClient, question: Question): Promise<Answer> {
  switch (question.ask) {
    case 'search':
      return client.snapshot(INDEX_STEP, (reader) => answerSearch(reader, question.question))
    case 'similar':
      return client.snapshot(INDEX_STEP, (reader) => answerSimilar(reader, question.key, question.limit))
    case 'item-trend':
      return client.snapshot(SIGNALS_REVISION, (reader) => answerItemTrend(reader, question.key))
    case 'term-trend':
      return client.snapshot(INDEX_STEP, (reader) => answerTermTrend(reader, question.question))
  }
}

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
async function answerSearch(reader: Reader, question: SearchQuestion): Promise<SearchPage> {
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

/** Items whose titles are compared. */
const CANDIDATES = 200

/** Most items the words that find candidates may occur in, all together. */
const CANDIDATES_MAX_ITEMS = 8_000

/** Words of a title that are looked at. */
const TITLE_MAX_WORDS = 64

/** Items like another (docs/search.md): those of its page, then those whose titles share rare words with its own. */
async function answerSimilar(reader: Reader, key: string, limit: number): Promise<SimilarItem[]> {
  const state = await readAnsweringState(reader)
  const asked = await readItemOfKey(reader, state.active, key)
  const words = [...new Set(wordsOf(asked.item.title))].slice(0, TITLE_MAX_WORDS)
  const counts = await readCounts(reader, state, words)
  const others = new Map<number, Stored>()
  if (asked.page !== null) {
    for (const stored of await readItemsOfPage(reader, state.active, asked.page, CANDIDATES)) {
      others.set(stored.id, stored)
    }
  }
  for (const [id, stored] of await candidates(reader, state, words, counts)) others.set(id, stored)
  others.delete(asked.id)
  return [...others.values()]
    .flatMap(({ id, page, item }) => {
      const alike = likeness(words, wordsOf(item.title), counts)
      const reasons = reasonsOf(alike, page !== null && page === asked.page, counts)
      if (reasons.length === 0) return []
      const score = Math.round(alike.score * 1_000) / 1_000
      return [{ id, similar: { ...item, reasons, score, sharedWords: alike.shared } }]
    })
    .sort(
      (a, b) =>
        Number(isSameDiscussion(b.similar)) - Number(isSameDiscussion(a.similar)) ||
        b.similar.score - a.similar.score ||
        (b.similar.points ?? 0) - (a.similar.points ?? 0) ||
        b.id - a.id,
    )
    .slice(0, limit)
    .map(({ similar }) => similar)
}

function isSameDiscussion({ reasons }: SimilarItem): boolean {
  return reasons.includes('same-discussion')
}

/** The best by BM25 among the items that hold one of the title's rarest words. */
async function candidates(
  reader: Reader,
  state: IndexState,
  words: readonly string[],
  { of }: WordCounts,
): Promise<Map<number, Stored>> {
  const rarestFirst = words.toSorted((a, b) => (of.get(a) ?? 0) - (of.get(b) ?? 0)).slice(0, QUERY_MAX_WORDS)
  let total = 0
  const chosen = rarestFirst.filter((word, index) => {
    total += of.get(word) ?? 0
    return index === 0 || total <= CANDIDATES_MAX_ITEMS
  })
  if (chosen.length === 0) return new Map()
  const units = chosen.map((word) => ({ words: [word], prefix: false, quoted: false }))
  const found = await bestOf(reader, state.active, 'titles', matching(units, 'OR'), EVERYTHING, CANDIDATES)
  return readItems(
    reader,
    state.active,
    found.map(({ id }) => id),
  )
}
