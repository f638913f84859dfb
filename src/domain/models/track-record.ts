import { addDays, dayOf } from '../time.ts'
import type { Day } from '../time.ts'
import type { RankedModel } from './schema.ts'

/** Days of a track record. */
const RECORD_DAYS = 14

/** The last test of a model on a day. */
interface TestedDay {
  day: Day
  answered: boolean
  /** Null if the model did not answer. */
  latencyMs: number | null
}

/** The tests of a model on consecutive days, ascending; null for a day without a test. */
export type TrackRecord = readonly (TestedDay | null)[]

/** The part of a stored run that a track record needs. */
interface MeasuredRun {
  models: readonly Pick<RankedModel, 'id' | 'healthStatus' | 'latencyMs' | 'checkedAt'>[]
}

/**
 * The track record of each model in stored runs. A test counts on the day on which it was made, which may be before the
 * day of its run.
 *
 * @param runs ascending
 * @param lastDay last of the {@link RECORD_DAYS} days
 */
export function trackRecords(runs: readonly MeasuredRun[], lastDay: Day): (id: string) => TrackRecord {
  const tests = new Map<string, Map<Day, TestedDay>>()
  for (const { id, healthStatus, latencyMs, checkedAt } of runs.flatMap(({ models }) => models)) {
    if (checkedAt === null || healthStatus === 'not_probed') continue
    const answered = healthStatus === 'passed' || healthStatus === 'imperfect'
    const day = dayOf(Date.parse(checkedAt))
    const ofModel = tests.get(id) ?? new Map<Day, TestedDay>()
    tests.set(id, ofModel.set(day, { day, answered, latencyMs: answered ? latencyMs : null }))
  }
  const days = Array.from({ length: RECORD_DAYS }, (_, index) => addDays(lastDay, index + 1 - RECORD_DAYS))
  return (id) => days.map((day) => tests.get(id)?.get(day) ?? null)
}

/** The numbers of a track record; response times are null if no answer has one. */
export interface RecordSummary {
  tested: number
  answered: number
  fastestMs: number | null
  slowestMs: number | null
  failedDays: readonly Day[]
}

export function summaryOfRecord(record: TrackRecord): RecordSummary {
  const tested = record.filter((each) => each !== null)
  const times = tested.flatMap(({ latencyMs }) => latencyMs ?? [])
  const failed = tested.filter(({ answered }) => !answered)
  return {
    tested: tested.length,
    answered: tested.length - failed.length,
    fastestMs: times.length > 0 ? Math.min(...times) : null,
    slowestMs: times.length > 0 ? Math.max(...times) : null,
    failedDays: failed.map(({ day }) => day),
  }
}
