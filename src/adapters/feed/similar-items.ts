import type { FeedSearchRefusal, SimilarItem } from '../../domain/feed/search/search.ts'
import type { QueryTerm } from '../../domain/feed/search/search-terms.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import { similarityReasons, titleSimilarity } from '../../domain/feed/search/title-similarity.ts'
import { tokenize } from '../../domain/feed/search/tokenize.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { SqlReader } from '../sqlite/rows.ts'
import { toIndexedItem } from './items.ts'
import { rarestUnits, toMatchExpression, toWordUnits } from './match-expressions.ts'
import { BM25, NO_FILTER, rankedArgs, rankedQuery, readCounts, selectDocuments } from './ranked-documents.ts'
import type { IndexedDocument } from './ranked-documents.ts'
import { readItemCount } from './search-index.ts'

/** Items similar to another (docs/decisions/0020-search-ranking.md). */

/** Maximum number of items compared, for the same page and for shared words each. */
const CANDIDATES = 200

/** Number of words of a title that are compared. */
const TITLE_MAX_WORDS = 64

/** Finds items similar to another (docs/api.md): those of the same page, then those whose titles share rare words. */
export async function similar(reader: SqlReader, key: string, limit: number): Promise<SimilarItem[]> {
  const items = await readItemCount(reader)
  const target = await readDocument(reader, key)
  const words = [...new Set(tokenize(target.title))].slice(0, TITLE_MAX_WORDS)
  const counts = await readCounts(reader, items, words)
  const candidates = [
    ...(await readSamePage(reader, target)),
    ...(await readSimilarTitles(reader, rarestUnits(toWordUnits(words), counts))),
  ]
  const others = new Map(candidates.map((row) => [row.id, row]))
  others.delete(target.id)
  const compared = [...others.values()].flatMap((row) => {
    const similarity = titleSimilarity(words, tokenize(row.title), counts)
    const isSamePage = row.page !== null && row.page === target.page
    const reasons = similarityReasons(similarity, isSamePage, counts)
    const score = Math.round(similarity.score * 1_000) / 1_000
    return reasons.length > 0 ? [{ row, isSamePage, reasons, score, sharedWords: similarity.shared }] : []
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
    .map(({ row, reasons, score, sharedWords }) => ({ ...toIndexedItem(row), reasons, score, sharedWords }))
}

/** @throws Refusal `item_not_found` */
async function readDocument(reader: SqlReader, key: string): Promise<IndexedDocument> {
  for (const { source, sourceId } of itemsOfKey(key)) {
    const where = `search_documents d WHERE d.source = ? AND d.source_id = ?`
    const [found] = await selectDocuments(reader, where, [source, sourceId])
    if (found) return found
  }
  throw itemNotFound(key)
}

export function itemNotFound(key: string): Refusal<FeedSearchRefusal> {
  return new Refusal('item_not_found', `no item ${JSON.stringify(key.slice(0, 132))} is stored`)
}

async function readSamePage(reader: SqlReader, { page }: IndexedDocument): Promise<IndexedDocument[]> {
  if (page === null) return []
  const where = `search_documents d WHERE d.page = ? ORDER BY d.points DESC, d.id DESC LIMIT ${CANDIDATES}`
  return selectDocuments(reader, where, [page])
}

/** Selects the best items by BM25 whose titles contain any of the words. */
async function readSimilarTitles(reader: SqlReader, words: readonly QueryTerm[]): Promise<IndexedDocument[]> {
  if (words.length === 0) return []
  const found = `(${rankedQuery('search_titles', BM25, CANDIDATES)})`
  const args = rankedArgs(toMatchExpression(words, 'OR'), NO_FILTER)
  return selectDocuments(reader, `${found} f JOIN search_documents d ON d.id = f.id`, args)
}
