import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import type { Health, RankedModel, Recommendation, Status, StoredRun, TopModels } from './schema.ts'
import { meets } from './shortlist-query.ts'
import type { ShortlistQuery } from './shortlist-query.ts'

/** A recommendation older than this is stale. */
export const MAX_FRESH_HOURS = 36

/** An update is due this long after the last. */
const UPDATE_EVERY_HOURS = 24
const HOUR_MS = 3_600_000

/** A run with the address of the routing service that is published now, whatever was when it was stored. */
export function withBaseUrl(run: StoredRun, baseUrl: string): StoredRun {
  return { ...run, baseUrl }
}

/** What is served: the stored run, or the built-in seed in its place. */
export interface Served {
  run: StoredRun
  seed: boolean
  /** The store of recommendations is configured and answers. */
  storeAnswers: boolean
}

/**
 * The body of top-models: the shortlist, filtered, then cut; ranks stay what they are in the whole list.
 *
 * @param now decides age and staleness
 */
export function topModelsPayload(served: Served, { limit, filter }: ShortlistQuery, now: Instant): TopModels {
  const wanted = served.run.models.filter((model) => meets(model, filter))
  const models = wanted.slice(0, limit ?? wanted.length)
  return { ...headOf(served.run), count: models.length, models, ...endOf(served, now) }
}

/** The body of recommendation: the first model of the list, and all others after it. */
export function recommendationPayload(served: Served, now: Instant): Recommendation {
  const [primary, alternatives] = [primaryOf(served.run), served.run.models.slice(1)]
  return { ...headOf(served.run), primary, alternatives, ...endOf(served, now) }
}

/** The body of health; always given, whatever the store is like. */
export function healthPayload(served: Served, now: Instant): Health {
  const { run, seed, storeAnswers } = served
  const ageMs = ageOf(run, now)
  return {
    ok: !seed && isFresh(ageMs),
    lastUpdatedAt: seed ? null : run.updatedAt,
    ageHours: seed ? null : Math.floor((ageMs / HOUR_MS) * 100) / 100,
    maxFreshHours: MAX_FRESH_HOURS,
    usingSeedFallback: seed,
    hasKvBinding: storeAnswers,
  }
}

/** The body of `/api/status/free-llm`. */
export function statusPayload(served: Served, now: Instant): Status {
  const { run } = served
  return {
    ...healthPayload(served, now),
    service: 'free-llm',
    primary: primaryOf(run).id,
    rankingVersion: run.rankingVersion,
    rankingConfidence: run.rankingConfidence,
  }
}

/** The first fields of both payloads, in the order in which a run holds them. */
function headOf({
  models: _models,
  notes: _notes,
  rejections: _rejections,
  explanations: _explanations,
  ...head
}: StoredRun): Omit<StoredRun, 'models' | 'notes' | 'rejections' | 'explanations'> {
  return head
}

function primaryOf({ models }: StoredRun): RankedModel {
  const [primary] = models
  if (primary === undefined) throw new Error('the recommendation holds no model')
  return primary
}

/** The last fields of both payloads. Nothing in them changes more than once an hour. */
function endOf(
  { run, seed }: Served,
  now: Instant,
): Pick<TopModels, 'notes' | 'seed' | 'stale' | 'ageHours' | 'nextUpdateAt'> {
  const ageMs = ageOf(run, now)
  const ageHours = Math.floor(ageMs / HOUR_MS)
  const stale = !isFresh(ageMs)
  const ageNote = `This recommendation is ${ageHours} hours old; no update has come for more than ${MAX_FRESH_HOURS} hours.`
  return {
    notes: [...run.notes, ...(stale && !seed ? [ageNote] : [])],
    seed,
    stale,
    ageHours,
    nextUpdateAt: seed ? null : formatInstant(Date.parse(run.updatedAt) + UPDATE_EVERY_HOURS * HOUR_MS),
  }
}

/** In milliseconds; a clock behind the update makes it new. */
function ageOf(run: StoredRun, now: Instant): number {
  return Math.max(0, now - Date.parse(run.updatedAt))
}

function isFresh(ageMs: number): boolean {
  return ageMs <= MAX_FRESH_HOURS * HOUR_MS
}
