import { storageDamaged, storageUnavailable } from '../../domain/storage.ts'
import { DAY_MS, dayOf, startOfDay } from '../../domain/time.ts'
import type { Day } from '../../domain/time.ts'
import type { Reader } from '../libsql/store-client.ts'

/** One of the two sets of index tables. */
export type IndexSet = 'a' | 'b'

/** The rules by which words are cut and pages told apart; grows with every change of them. */
export const INDEX_FORMAT = 1

/** Changes with every write to the index. */
export const INDEX_STEP = 'SELECT step FROM search_state'

const STATE = `
  SELECT step, active, format, next_number, build, CAST(json_array(after_source, after_source_id) AS BLOB) AS after
  FROM search_state`

export interface IndexState {
  step: number
  active: IndexSet
  format: number
  nextNumber: number
  /** The rebuild under way, and the event it took in last. */
  build: number | null
  after: [source: string, sourceId: string]
}

export async function readState(reader: Reader): Promise<IndexState> {
  const { rows } = await reader.execute(STATE)
  const row = rows[0]
  const after = row?.['after']
  if (!row || !(after instanceof ArrayBuffer))
    throw storageDamaged('the state of the search index is not there')
  return {
    step: Number(row['step']),
    active: row['active'] === 'b' ? 'b' : 'a',
    format: Number(row['format']),
    nextNumber: Number(row['next_number']),
    build: row['build'] === null ? null : Number(row['build']),
    after: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(after)) as [string, string],
  }
}

/**
 * The set that answers.
 *
 * @throws Refusal `storage_unavailable` when it was made by other rules: its words are not those asked for
 */
export async function readAnsweringState(reader: Reader): Promise<IndexState> {
  const state = await readState(reader)
  if (state.format !== INDEX_FORMAT) {
    throw storageUnavailable('the search index was made by another release: run dash reindex')
  }
  return state
}

/** Numbers of items take the lower bits of an id, its day the upper: together they fit a double. */
const NUMBERS = 2 ** 31

/** Days are counted from here, so that every year the product can write is positive. */
const DAY_ZERO = startOfDay('0000-01-01')

/** The id of an item: ids are in order of days. */
export function documentId(day: Day, number: number): number {
  return firstIdOf(day) + number
}

export function numberOf(id: number): number {
  return id % NUMBERS
}

/** Smaller than the id of every item of the day, and greater than that of any before. */
export function firstIdOf(day: Day): number {
  return ((startOfDay(day) - DAY_ZERO) / DAY_MS) * NUMBERS
}

/** The greatest id an item of the day can have. */
export function lastIdOf(day: Day): number {
  return firstIdOf(day) + NUMBERS - 1
}

export function dayOfId(id: number): Day {
  return dayOfNumber(Math.floor(id / NUMBERS))
}

/** The number of an id's day, as an expression of SQL. */
export const DAY_NUMBER_OF_ROWID = 'rowid >> 31'

export function dayOfNumber(dayNumber: number): Day {
  return dayOf(dayNumber * DAY_MS + DAY_ZERO)
}
