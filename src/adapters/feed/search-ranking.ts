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
  Match,
  SearchHit,
  SearchPage,
  SearchQuery,
  SimilarItem,
} from '../../domain/feed/search.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import { Refusal } from '../../domain/refusal.ts'
import { asJsonRows, selectJsonRows, selectObjects } from '../sqlite/rows.ts'
import type { Reader } from '../sqlite/rows.ts'
import { ITEM_MEMBERS, itemOf } from './items.ts'
import type { ItemRow } from './items.ts'
import { firstIdOf, lastIdOf } from './search-documents.ts'
import type { IndexSet } from './search-documents.ts'
import { readAnsweringState } from './search-index.ts'
import type { IndexState } from './search-index.ts'

/** Searches and similar items, ranked by SQLite's FTS5 (docs/decisions/0020-search-ranking.md). */

/** Most items of the third group, those that hold some of the words. */
const PARTIAL_MAX = 200

/** Share of the weight of all words that such an item's title must hold. */
const PARTIAL_MIN_SHARE = 0.5

/** Items with every word, then those with the last word begun, then those with some words (docs/api.md). */
export async function search(reader: Reader, query: SearchQuery): Promise<SearchPage> {
  const offset = offsetOf(query)
  const wanted = Math.min(offset + query.limit, REACH_MAX)
  const units = parseSearchText(query.query)
  const words = units.flatMap((unit) => unit.words)
  const state = await readAnsweringState(reader)
  const counts = await readCounts(reader, state, words)
  const hits = new Map<number, SearchHit>()
  for (const match of MATCHES) {
    // One more than the page holds tells whether there is another.
    if (hits.size > wanted || units.length === 0) break
    const expression = expressionOf(match, units, counts, hits.size > 0)
    if (expression === null) continue
    const [limit, depth] =
      match === 'some' ? [PARTIAL_MAX, PARTIAL_MAX + hits.size] : [wanted + 1, RANKED_MAX]
    const except = [...hits.keys()]
    const found = await find(reader, state.active, query, { expression, depth, except, limit })
    const kept = match === 'some' ? withMostWeight(found, words, counts) : found
    for (const row of kept) hits.set(row.id, { ...itemOf(row), match })
  }
  const isLast = hits.size <= wanted || wanted === REACH_MAX
  const cursor = isLast ? null : `${digestOf(query)}.${wanted}`
  return { items: [...hits.values()].slice(offset, wanted), cursor }
}

/** Where in the ranking a page begins. */
function offsetOf(query: SearchQuery): number {
  if (query.cursor === null) return 0
  const [, digest, offset] = /^([\w-]{16})\.(\d{1,4})$/.exec(query.cursor) ?? []
  if (digest !== digestOf(query) || Number(offset) >= REACH_MAX) {
    throw new Refusal<FeedSearchRefusal>('invalid_cursor', 'the cursor belongs to another question')
  }
  return Number(offset)
}

function digestOf({ query, sources, from, to }: SearchQuery): string {
  const text = JSON.stringify([query, sources, from, to])
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}

/** @param isFound true when a group before has items: where no item holds a phrase, its words are looked for alone */
function expressionOf(
  match: Match,
  units: readonly Unit[],
  counts: WordCounts,
  isFound: boolean,
): string | null {
  if (match === 'all') return matching(units, 'AND')
  if (match === 'prefix') {
    const begun = withLastBegun(units)
    return begun && matching(begun, 'AND')
  }
  const parts = isFound ? units : unquoted(units)
  const quoted = parts.filter((unit) => unit.quoted)
  const loose = rarest(
    parts.filter((unit) => !unit.quoted),
    counts,
  )
  if (parts.length < 2 || loose.length === 0) return null
  const some = `(${matching(loose, 'OR')})`
  return quoted.length === 0 ? some : `${matching(quoted, 'AND')} AND ${some}`
}

/** The words of phrases one by one, each once. */
function unquoted(units: readonly Unit[]): Unit[] {
  const loose = units.flatMap((unit) => (unit.quoted ? singles(unit.words) : [unit]))
  return [...new Map(loose.map((unit) => [JSON.stringify([unit.words, unit.prefix]), unit])).values()]
}

function singles(words: readonly string[]): Unit[] {
  return words.map((word) => ({ words: [word], prefix: false, quoted: false }))
}

/** Units as FTS5 takes them: each one quoted, so that nothing in them is syntax. */
export function matching(units: readonly Unit[], operator: 'AND' | 'OR'): string {
  const phrases = units.map(
    ({ words, prefix }) => `"${words.join(' ').replaceAll('"', '""')}"${prefix ? ' *' : ''}`,
  )
  return phrases.join(` ${operator} `)
}

/** Most titles that alternative words may occur in, all together: common words would cost the time of a query. */
const ALTERNATIVES_MAX = 8_000

/** The units with the rarest words, as many as together occur in few enough titles; at least one that occurs. */
function rarest(units: readonly Unit[], { of }: WordCounts): Unit[] {
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

/**
 * Items whose titles hold at least half of the weight of some words, those with the most first. A word of no title is
 * mistyped, and rules nothing out.
 */
function withMostWeight(rows: readonly Document[], words: readonly string[], counts: WordCounts): Document[] {
  const known = words.filter((word) => counts.of.has(word))
  const least = weightOf(known, counts) * PARTIAL_MIN_SHARE
  const weighed = rows.map((row) => {
    const held = new Set(wordsOf(row.title))
    const shared = known.filter((word) => held.has(word))
    return { row, weight: weightOf(shared, counts) }
  })
  return weighed
    .filter(({ weight }) => weight > 0 && weight >= least)
    .sort((a, b) => b.weight - a.weight)
    .map(({ row }) => row)
}

/** In how many titles each of some words stands. */
async function readCounts(
  reader: Reader,
  { active, nextNumber }: IndexState,
  words: readonly string[],
): Promise<WordCounts> {
  const sql = asJsonRows(
    'term, doc',
    `SELECT term, doc FROM search_counts_${active} WHERE term IN (SELECT value FROM json_each(?))`,
  )
  const rows = await selectJsonRows(reader, sql, [JSON.stringify(words)], 'the search index')
  // Numbers are never given twice, and items never leave: the last number is how many there are.
  return { items: Math.max(1, nextNumber - 1), of: new Map(rows as [string, number][]) }
}

/** A row of `search_documents_*`. */
interface Document extends ItemRow {
  id: number
  /** Canonical URL. */
  page: string | null
}

const DOCUMENT_COLUMNS = `
  d.id AS id, d.page AS page, d.source AS source, d.source_id AS sourceId, d.title AS title, d.url AS url,
  d.first_day AS firstDay, d.last_day AS lastDay, d.published_at AS publishedAt, d.points AS points,
  d.comments AS comments`

/** @param from gives the documents the name `d` */
function selectDocuments(reader: Reader, from: string, args: (string | number)[]): Promise<Document[]> {
  const query = `SELECT ${DOCUMENT_COLUMNS} FROM ${from}`
  return selectObjects<Document>(reader, ['id', 'page', ...ITEM_MEMBERS], query, args, 'the search index')
}

/**
 * Items that are ranked of each table, on every page alike: with fewer for the first page, which of equal scores come
 * first would differ from page to page. One more than pages reach tells whether there is another.
 */
const RANKED_MAX = REACH_MAX + 1

/** A table of words by BM25, greater is better; equal ones by age, the newest first. */
function ranked(set: IndexSet, words: 'titles' | 'texts', limit: number): string {
  const table = `search_${words}_${set}`
  return `
    SELECT rowid AS id, -bm25(${table}) AS score FROM ${table}
    WHERE ${table} MATCH ?1 AND rowid BETWEEN ?2 AND ?3 AND (?4 = '[]' OR EXISTS (
      SELECT 1 FROM search_documents_${set} o WHERE o.id = ${table}.rowid AND o.source IN (SELECT value FROM json_each(?4))
    ))
    ORDER BY score DESC, id DESC LIMIT ${limit}`
}

type Scope = Pick<SearchQuery, 'sources' | 'from' | 'to'>

const EVERYTHING: Scope = { sources: [], from: null, to: null }

/**
 * Items whose title matches by BM25, then those whose text does: the scores of two tables do not compare. Equal ones: more
 * points first, then the newer.
 */
function find(
  reader: Reader,
  set: IndexSet,
  scope: Scope,
  asked: { expression: string; depth: number; except: readonly number[]; limit: number },
): Promise<Document[]> {
  const { expression, depth, except, limit } = asked
  const found = `(
    WITH titles AS (${ranked(set, 'titles', depth)}), texts AS (${ranked(set, 'texts', depth)})
    SELECT id, score, 0 AS place FROM titles
    UNION ALL SELECT id, score, 1 AS place FROM texts WHERE id NOT IN (SELECT id FROM titles)
  )`
  return selectDocuments(
    reader,
    `${found} f JOIN search_documents_${set} d ON d.id = f.id
    WHERE f.id NOT IN (SELECT value FROM json_each(?5))
    ORDER BY f.place, f.score DESC, coalesce(d.points, 0) DESC, d.id DESC LIMIT ${limit}`,
    [...argsOf(expression, scope), JSON.stringify(except)],
  )
}

/** The parameters 1 to 4 of {@link ranked}. */
function argsOf(expression: string, { sources, from, to }: Scope): (string | number)[] {
  return [expression, ...idRange({ from, to }), JSON.stringify(sources)]
}

export function idRange({ from, to }: Pick<Scope, 'from' | 'to'>): [first: number, last: number] {
  return [from === null ? 0 : firstIdOf(from), to === null ? Number.MAX_SAFE_INTEGER : lastIdOf(to)]
}

/** Items whose titles are compared, of the same page and of the same words. */
const CANDIDATES = 200

/** Words of a title that are looked at. */
const TITLE_MAX_WORDS = 64

/** Items like another (docs/api.md): those of its page, then those whose titles share rare words with its own. */
export async function similar(reader: Reader, key: string, limit: number): Promise<SimilarItem[]> {
  const state = await readAnsweringState(reader)
  const asked = await readDocument(reader, state.active, key)
  const words = [...new Set(wordsOf(asked.title))].slice(0, TITLE_MAX_WORDS)
  const counts = await readCounts(reader, state, words)
  const candidates = [
    ...(await ofSamePage(reader, state.active, asked)),
    ...(await ofSameWords(reader, state.active, rarest(singles(words), counts))),
  ]
  const others = new Map(candidates.map((row) => [row.id, row]))
  others.delete(asked.id)
  const compared = [...others.values()].flatMap((row) => {
    const alike = likeness(words, wordsOf(row.title), counts)
    const isSamePage = row.page !== null && row.page === asked.page
    const reasons = reasonsOf(alike, isSamePage, counts)
    const score = Math.round(alike.score * 1_000) / 1_000
    return reasons.length > 0 ? [{ row, isSamePage, reasons, score, sharedWords: alike.shared }] : []
  })
  return compared
    .sort(
      (a, b) =>
        Number(b.isSamePage) - Number(a.isSamePage) ||
        b.score - a.score ||
        (b.row.points ?? 0) - (a.row.points ?? 0) ||
        b.row.id - a.row.id,
    )
    .slice(0, limit)
    .map(({ row, reasons, score, sharedWords }) => ({ ...itemOf(row), reasons, score, sharedWords }))
}

/** @throws Refusal `item_not_found` */
async function readDocument(reader: Reader, set: IndexSet, key: string): Promise<Document> {
  for (const { source, sourceId } of itemsOfKey(key)) {
    const where = `search_documents_${set} d WHERE d.source = ? AND d.source_id = ?`
    const [found] = await selectDocuments(reader, where, [source, sourceId])
    if (found) return found
  }
  throw itemNotFound(key)
}

export function itemNotFound(key: string): Refusal<FeedSearchRefusal> {
  return new Refusal('item_not_found', `no item ${JSON.stringify(key.slice(0, 132))} is stored`)
}

async function ofSamePage(reader: Reader, set: IndexSet, { page }: Document): Promise<Document[]> {
  if (page === null) return []
  const where = `search_documents_${set} d WHERE d.page = ? ORDER BY d.points DESC, d.id DESC LIMIT ${CANDIDATES}`
  return selectDocuments(reader, where, [page])
}

/** The best by BM25 among the items whose titles hold one of some words. */
async function ofSameWords(reader: Reader, set: IndexSet, words: readonly Unit[]): Promise<Document[]> {
  if (words.length === 0) return []
  const found = `(${ranked(set, 'titles', CANDIDATES)})`
  const args = argsOf(matching(words, 'OR'), EVERYTHING)
  return selectDocuments(reader, `${found} f JOIN search_documents_${set} d ON d.id = f.id`, args)
}
