import type { Unit } from '../../domain/feed/search-text.ts'
import type { Day } from '../../domain/time.ts'
import { asJsonRows, selectJsonRows } from '../libsql/json-rows.ts'
import type { Reader } from '../libsql/store-client.ts'
import { firstIdOf, lastIdOf } from './search-state.ts'
import type { IndexSet } from './search-state.ts'

/** Which items a question is about. */
export interface Scope {
  sources: readonly string[]
  from: Day | null
  to: Day | null
}

export const EVERYTHING: Scope = { sources: [], from: null, to: null }

/** An item found, with its BM25: greater is better. */
export interface Found {
  id: number
  score: number
}

/** Words as FTS5 takes them: each one quoted, so that nothing in them is syntax. */
export function matching(units: readonly Unit[], operator: 'AND' | 'OR'): string {
  return units.map(phraseOf).join(` ${operator} `)
}

function phraseOf({ words, prefix }: Unit): string {
  return `"${words.join(' ').replaceAll('"', '""')}"${prefix ? ' *' : ''}`
}

/** The best items of one table of words of a set by BM25, equal ones by age, the newest first. */
export async function bestOf(
  reader: Reader,
  set: IndexSet,
  words: 'titles' | 'texts',
  expression: string,
  { sources, from, to }: Scope,
  limit: number,
): Promise<Found[]> {
  const table = `search_${words}_${set}`
  const ofSources = `AND (SELECT source FROM search_documents_${set} d WHERE d.id = t.rowid) IN (SELECT value FROM json_each(?4))`
  const sql = asJsonRows(
    'id, score',
    `SELECT t.rowid AS id, -bm25(${table}) AS score FROM ${table} t
    WHERE ${table} MATCH ?1 AND t.rowid BETWEEN ?2 AND ?3 ${sources.length > 0 ? ofSources : ''}
    ORDER BY score DESC, id DESC LIMIT ${limit}`,
  )
  const args = [expression, from === null ? 0 : firstIdOf(from), to === null ? LAST_ID : lastIdOf(to)]
  const all = sources.length > 0 ? [...args, JSON.stringify(sources)] : args
  const rows = await selectJsonRows(reader, sql, all, 'the search index')
  return (rows as [number, number][]).map(([id, score]) => ({ id, score }))
}

const LAST_ID = Number.MAX_SAFE_INTEGER
