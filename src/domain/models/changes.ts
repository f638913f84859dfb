import { z } from 'zod'
import { addDays } from '../time.ts'
import type { Day } from '../time.ts'
import { dayField } from '../wire-format.ts'
import { UNRANKED_REASONS } from './catalogue.ts'
import { describeMove } from './recommend.ts'
import type { ScoredModel } from './recommend.ts'
import type { StoredRun } from './schema.ts'

/** Changes of the free models between two stored runs (docs/free-models.md#changes). */

export type ComparedRun = Pick<StoredRun, 'rankingVersion' | 'updatedAt' | 'rejections'> & {
  /** Rank 1 first; at least one. */
  models: readonly ScoredModel[]
}

export const modelChangeSchema = z.object({
  kind: z.enum(['primary_changed', 'model_gone', 'model_new']),
  model: z.string().describe('id of the new primary, of the model that went, or of the model that came'),
  name: z.string(),
  rank: z.int().nullable().describe('null for a model that went'),
  previousRank: z.int().nullable().describe('null for a model that came'),
  previousPrimary: z.string().nullable().describe('null unless the primary changed'),
  reason: z.string(),
})
export type ModelChange = z.infer<typeof modelChangeSchema>

/** Consecutive UTC days without a stored evaluation. */
export const missedDaysSchema = z.object({ firstDay: dayField, lastDay: dayField })
export type MissedDays = z.infer<typeof missedDaysSchema>

/** The changes between two consecutive readable runs, and what is unknown about the time between them. */
export interface RunStep {
  /** Ranking version of the earlier run. */
  previousVersion: string
  rankingVersion: string
  /** Time of the later run, ISO-8601. */
  updatedAt: string
  changes: readonly ModelChange[]
  missedDays: readonly MissedDays[]
  /** Ranking versions of the runs between the two that are missing or damaged, ascending. */
  unreadable: readonly string[]
}

/** Result of sending the changes of one step to their receiver. */
export interface ChangeDelivery {
  changes: number
  delivered: number
  /** The reason why a change was not accepted, without the path of the address; null if all were. */
  failure: string | null
}

/**
 * Lists the changes from one run to a later one: the primary first, then models that went, then models that came, each
 * group by rank.
 */
export function modelChanges(before: ComparedRun, after: ComparedRun): ModelChange[] {
  const [earlier, later] = [modelsById(before), modelsById(after)]
  const gone = before.models.filter(({ id }) => !later.has(id))
  const come = after.models.filter(({ id }) => !earlier.has(id))
  return [
    ...primaryChange(before, after),
    ...gone.map(({ id, name, rank }): ModelChange => ({
      kind: 'model_gone',
      model: id,
      name,
      rank: null,
      previousRank: rank,
      previousPrimary: null,
      reason: goneReason(id, after),
    })),
    ...come.map(({ id, name, rank }): ModelChange => ({
      kind: 'model_new',
      model: id,
      name,
      rank,
      previousRank: null,
      previousPrimary: null,
      reason: newReason(id, before),
    })),
  ]
}

function primaryChange(before: ComparedRun, after: ComparedRun): ModelChange[] {
  const [was, is] = [before.models[0], after.models[0]]
  if (!was || !is || was.id === is.id) return []
  const isBefore = modelsById(before).get(is.id)
  const wasAfter = modelsById(after).get(was.id)
  const rise = isBefore ? describeMove(is, isBefore) : `${is.id}: ${newReason(is.id, before)}`
  const fall = wasAfter ? describeMove(wasAfter, was) : `${was.id}: ${goneReason(was.id, after)}`
  return [
    {
      kind: 'primary_changed',
      model: is.id,
      name: is.name,
      rank: is.rank,
      previousRank: isBefore?.rank ?? null,
      previousPrimary: was.id,
      reason: `${rise} ${fall}`,
    },
  ]
}

function goneReason(id: string, after: ComparedRun): string {
  const meaning = meaningOf(id, after)
  return meaning === null
    ? 'The catalogue has no readable entry for it any more.'
    : `It is no longer ranked: ${meaning}.`
}

function newReason(id: string, before: ComparedRun): string {
  const meaning = meaningOf(id, before)
  return meaning === null
    ? 'It is new in the catalogue.'
    : `It is ranked now; the reason against it was: ${meaning}.`
}

/** The reason why a run did not rank a model; null if the catalogue of that run did not list it. */
function meaningOf(id: string, { rejections }: ComparedRun): string | null {
  const reason = rejections.find((each) => each.id === id)?.reason
  if (reason === undefined) return null
  // A reason of another release is shown as it is stored.
  return Object.hasOwn(UNRANKED_REASONS, reason)
    ? UNRANKED_REASONS[reason as keyof typeof UNRANKED_REASONS]
    : reason
}

function modelsById({ models }: ComparedRun): Map<string, ScoredModel> {
  return new Map(models.map((model) => [model.id, model]))
}

/** Orders ranking versions by day, then by number: `.v10` follows `.v9`. */
export function compareVersions(one: string, other: string): number {
  const [first, second] = [partsOf(one), partsOf(other)]
  return first.day === second.day ? first.number - second.number : first.day < second.day ? -1 : 1
}

function partsOf(version: string): { day: Day; number: number } {
  const [day = '', number = ''] = version.split('.v')
  return { day, number: Number(number) }
}

/**
 * Compares each readable run with the readable run before it.
 *
 * @param runs in ascending order of their versions; null for a run that is missing or damaged
 */
export function runSteps(runs: readonly { rankingVersion: string; run: ComparedRun | null }[]): RunStep[] {
  const steps: RunStep[] = []
  let previous: ComparedRun | null = null
  let unreadable: string[] = []
  for (const { rankingVersion, run } of runs) {
    if (run === null) {
      unreadable.push(rankingVersion)
      continue
    }
    if (previous !== null) steps.push(stepBetween(previous, run, unreadable))
    ;[previous, unreadable] = [run, []]
  }
  return steps
}

/** @param unreadable versions of the runs between the two that are missing or damaged, ascending */
export function stepBetween(
  before: ComparedRun,
  after: ComparedRun,
  unreadable: readonly string[] = [],
): RunStep {
  const { rankingVersion, updatedAt } = after
  const versions = [before.rankingVersion, ...unreadable, rankingVersion]
  return {
    previousVersion: before.rankingVersion,
    rankingVersion,
    updatedAt,
    changes: modelChanges(before, after),
    missedDays: missedBetween(versions.map((version) => partsOf(version).day)),
    unreadable,
  }
}

/** The periods between days, in ascending order, that contain none of them. */
function missedBetween(days: readonly Day[]): MissedDays[] {
  return days.slice(1).flatMap((day, index) => {
    const [firstDay, lastDay] = [addDays(days[index] ?? day, 1), addDays(day, -1)]
    return firstDay <= lastDay ? [{ firstDay, lastDay }] : []
  })
}
