import { listed } from '../domain/models/notes.ts'
import type { CallPlan } from '../domain/models/quota.ts'
import type { StoredRun } from '../domain/models/schema.ts'
import type { Asked } from './asking.ts'
import { stopSentence } from './evaluation-report.ts'

/** What a run did not ask although its mode is to. */
export interface Shortfall {
  /** True when that makes the run `partial`. */
  partial: boolean
  /** For the report; null when everything was asked. */
  reason: string | null
  /** For whoever reads the recommendation. */
  notes: string[]
}

interface Cause {
  partial: boolean
  reason: string
  note: string
}

/** Tells what a run did not ask, and why, the weightiest cause first. */
export function shortfallOf(
  mode: StoredRun['refreshMode'],
  asked: Pick<Asked, 'stop' | 'requests' | 'unasked'>,
  { postponed, spent }: Pick<CallPlan, 'postponed' | 'spent'>,
): Shortfall {
  const causes = [
    stopped(asked),
    mode === 'healthOnly' ? untold([...asked.unasked]) : keptBack([...asked.unasked]),
    waiting(postponed),
    hadTheirs(spent),
  ].filter((cause) => cause !== null)
  return {
    partial: causes.some(({ partial }) => partial),
    reason: causes[0]?.reason ?? null,
    notes: causes.map(({ note }) => note),
  }
}

function stopped({ stop, requests }: Pick<Asked, 'stop' | 'requests'>): Cause | null {
  if (stop === null) return null
  const reason = stopSentence(stop)
  return { partial: true, reason, note: `Stopped after ${requests} requests: ${reason}.` }
}

function keptBack(models: readonly string[]): Cause | null {
  if (models.length === 0) return null
  const reason = `the account's limits kept questions from ${counted(models)}`
  return { partial: true, reason, note: `Not asked everything, for the account's limits: ${listed(models)}.` }
}

function waiting(models: readonly string[]): Cause | null {
  if (models.length === 0) return null
  const note = `Not asked, since the account has no requests left for them today: ${listed(models)}.`
  return { partial: true, reason: "the account's requests of the day do not reach every model", note }
}

function untold(models: readonly string[]): Cause | null {
  if (models.length === 0) return null
  const reason = `the service told nothing of the endpoints of ${counted(models)}`
  return { partial: true, reason, note: `The service told nothing of the endpoints of: ${listed(models)}.` }
}

function hadTheirs(models: readonly string[]): Cause | null {
  if (models.length === 0) return null
  return {
    partial: true,
    reason: `${counted(models)} had too few requests left this UTC day to be asked what is open`,
    note: `Not asked everything, having had their requests of the day: ${listed(models)}.`,
  }
}

function counted({ length }: readonly string[]): string {
  return length === 1 ? '1 model' : `${length} models`
}
