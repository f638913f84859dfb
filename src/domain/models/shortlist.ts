import { z } from 'zod'
import { CLOCK_TOLERANCE_MS } from '../clock-check.ts'
import { parseQuery } from '../wire-format.ts'
import { DAY_MS, formatInstant, startOfDay } from '../time.ts'
import type { Instant } from '../time.ts'
import { MODEL_ID_PATTERN, SENTINEL_DAY } from './catalogue.ts'
import { CAPABILITIES, HEAD_FIELDS, rankedModelSchema } from './schema.ts'
import type {
  Capability,
  Health,
  RankedModel,
  Recommendation,
  Status,
  StoredRun,
  TopModels,
} from './schema.ts'

/** Refusal codes of `/api/free-llm/*` and `/api/status/free-llm` (docs/free-models.md): the whole, closed list. */
export const FREE_MODELS_REFUSALS = [
  'invalid_limit',
  'invalid_filter',
  'method_not_allowed',
  'internal_error',
] as const
export type FreeModelsRefusal = (typeof FREE_MODELS_REFUSALS)[number]

export type Need = NonNullable<(typeof CAPABILITIES)[Capability]['need']>
type NeededField = Exclude<Capability, 'supportsIncludeReasoning'>

export const NEEDS = Object.fromEntries(
  Object.entries(CAPABILITIES).flatMap(([field, { need }]) => (need === null ? [] : [[need, field]])),
) as Record<Need, NeededField>

/** Every need by its name in queries and on the command line. */
export const NEED_NAMES = Object.keys(NEEDS) as Need[]

/** A filter of the shortlist; an empty one selects every model. */
export interface ShortlistFilter {
  needs: readonly Need[]
  /** Least context length in tokens; null for any. */
  minContext: number | null
  /** True for models with health `passed` only. */
  passedOnly: boolean
}

export interface ShortlistQuery {
  /** null for the whole list. */
  limit: number | null
  filter: ShortlistFilter
}

export const NO_FILTER: ShortlistFilter = { needs: [], minContext: null, passedOnly: false }

/** A whole number from 1; very large numbers are accepted. */
function wholeNumber(description: string) {
  return z
    .string()
    .regex(/^[1-9]\d{0,99}$/)
    .meta({ description, type: 'integer', minimum: 1, pattern: undefined })
    .transform(Number)
    .optional()
}

/** The query of top-models (docs/free-models.md). */
export const shortlistQuery = z.object({
  limit: wholeNumber('Maximum number of models; a number above the total returns all.'),
  needs: z
    .string()
    .refine((text) => parseNeeds(text) !== null)
    .meta({
      description: `Required capabilities, comma-separated: ${NEED_NAMES.map((name) => `\`${name}\``).join(', ')}. \`tools\` also excludes models that did not use a tool in the test.`,
      pattern: `^(${NEED_NAMES.join('|')})(,(${NEED_NAMES.join('|')}))*$`,
    })
    .transform(parseNeeds)
    .optional(),
  minContext: wholeNumber('Minimum context length in tokens.'),
  health: z.enum(['passed']).meta({ description: 'Only models that passed the last probe.' }).optional(),
})

const CODES = {
  limit: 'invalid_limit',
  needs: 'invalid_filter',
  minContext: 'invalid_filter',
  health: 'invalid_filter',
} satisfies Record<string, FreeModelsRefusal>

/**
 * Parses a top-models request.
 *
 * @param params the parsed query string; a name given twice is invalid
 * @throws Refusal `invalid_limit`, then `invalid_filter`
 */
export function parseShortlistQuery(params: URLSearchParams): ShortlistQuery {
  const { limit = null, needs, minContext = null, health } = parseQuery(shortlistQuery, params, CODES)
  return { limit, filter: { needs: needs ?? [], minContext, passedOnly: health !== undefined } }
}

/** Parses needs separated by commas; null when one is unknown. */
export function parseNeeds(text: string): Need[] | null {
  const names = text.split(',')
  return names.every((name) => Object.hasOwn(NEEDS, name)) ? (names as Need[]) : null
}

type Filterable = Pick<RankedModel, NeededField | 'contextLength' | 'healthStatus'> & {
  toolUse?: RankedModel['toolUse'] | undefined
}

/** True when a model matches the filter; `tools` excludes models whose tool use was disproven. */
function matchesFilter(model: Filterable, { needs, minContext, passedOnly }: ShortlistFilter): boolean {
  if (passedOnly && model.healthStatus !== 'passed') return false
  if (minContext !== null && model.contextLength < minContext) return false
  return needs.every((need) => model[NEEDS[need]] && !(need === 'tools' && model.toolUse === 'disproven'))
}

/** A recommendation older than this is stale. */
const MAX_FRESH_HOURS = 36

/** An update is due this long after the last. */
const UPDATE_EVERY_HOURS = 24
const HOUR_MS = 3_600_000

/** The served run: the stored one, or the built-in seed. */
export interface ServedRun {
  run: StoredRun
  seed: boolean
  /** True when the store of recommendations is configured and reachable. */
  storeAvailable: boolean
  /** True when the seed stands for a recommendation that may be stored and cannot be read. */
  isUnreadable?: boolean
}

/**
 * The body of top-models: the shortlist, filtered, then limited; ranks are those of the whole list.
 *
 * @param now determines age and staleness
 */
export function topModelsPayload(
  served: ServedRun,
  { limit, filter }: ShortlistQuery,
  now: Instant,
): TopModels {
  const { head, tail } = envelopeOf(served, now)
  const wanted = served.run.models.filter((model) => matchesFilter(model, filter))
  const models = wanted.slice(0, limit ?? wanted.length)
  return { ...head, count: models.length, models, ...tail }
}

/** The body of recommendation: the first model of the list, and all others after it. */
export function recommendationPayload(served: ServedRun, now: Instant): Recommendation {
  const { head, tail } = envelopeOf(served, now)
  return { ...head, primary: primaryOf(served.run), alternatives: served.run.models.slice(1), ...tail }
}

/** The body of health; available in every state of the store. */
export function healthPayload({ run, seed, storeAvailable }: ServedRun, now: Instant): Health {
  const ageMs = ageOf(run, now)
  return {
    ok: !seed && isFresh(run, now),
    lastUpdatedAt: seed ? null : run.updatedAt,
    ageHours: seed ? null : Math.floor((ageMs / HOUR_MS) * 100) / 100,
    maxFreshHours: MAX_FRESH_HOURS,
    usingSeedFallback: seed,
    hasKvBinding: storeAvailable,
  }
}

/** The body of `/api/status/free-llm`. */
export function statusPayload(served: ServedRun, now: Instant): Status {
  const { rankingVersion, rankingConfidence } = served.run
  const primary = primaryOf(served.run).id
  return { ...healthPayload(served, now), service: 'free-llm', primary, rankingVersion, rankingConfidence }
}

type Head = Pick<StoredRun, (typeof HEAD_FIELDS)[number]>
type Tail = Pick<TopModels, 'notes' | 'seed' | 'stale' | 'ageHours' | 'nextUpdateAt'>

/** Period before the end of a model in which its end is announced. */
const NOTICE_DAYS = 14

interface Deprecation {
  deprecatedAt: Instant
  /** Start of the UTC day on which the model ends, the earliest moment of that day. */
  sunsetAt: Instant
}

/**
 * The announced end of a ranked model that ends within 14 days or has ended (docs/free-models.md#models-that-end).
 *
 * @param id of the model, as it is ranked
 * @returns null without an end, for a placeholder, while the end is further away, and for any other id
 */
export function deprecationOf({ expirations = {} }: StoredRun, id: string, now: Instant): Deprecation | null {
  const day = Object.hasOwn(expirations, id) ? expirations[id] : undefined
  if (day === undefined || day >= SENTINEL_DAY) return null
  const sunsetAt = startOfDay(day)
  const deprecatedAt = sunsetAt - NOTICE_DAYS * DAY_MS
  return now >= deprecatedAt ? { deprecatedAt, sunsetAt } : null
}

/** The first and the last fields of both payloads. They change at most once an hour. */
function envelopeOf({ run, seed }: ServedRun, now: Instant): { head: Head; tail: Tail } {
  const head = Object.fromEntries(HEAD_FIELDS.map((name) => [name, run[name]])) as Head
  const ageMs = ageOf(run, now)
  const ageHours = Math.floor(ageMs / HOUR_MS)
  const stale = !isFresh(run, now)
  const ageNote =
    ageHours > 0
      ? `This recommendation is ${ageHours} hours old: it is stale after ${MAX_FRESH_HOURS} hours.`
      : `The time of this recommendation, ${run.updatedAt}, is in the future: a clock was or is wrong.`
  const tail = {
    notes: [...run.notes, ...(stale && !seed ? [ageNote] : [])],
    seed,
    stale,
    ageHours,
    nextUpdateAt: seed ? null : formatInstant(Date.parse(run.updatedAt) + UPDATE_EVERY_HOURS * HOUR_MS),
  }
  return { head, tail }
}

function primaryOf({ models }: StoredRun): RankedModel {
  const [primary] = models
  if (primary === undefined) throw new Error('the recommendation has no model')
  return primary
}

/** Age in milliseconds, at least 0. */
function ageOf({ updatedAt }: Pick<StoredRun, 'updatedAt'>, now: Instant): number {
  return Math.max(0, now - Date.parse(updatedAt))
}

/** False for one of the future, too: a clock was wrong, and it would be fresh until its time. */
export function isFresh({ updatedAt }: Pick<StoredRun, 'updatedAt'>, now: Instant): boolean {
  const ageMs = now - Date.parse(updatedAt)
  return ageMs >= -CLOCK_TOLERANCE_MS && ageMs <= MAX_FRESH_HOURS * HOUR_MS
}

/** The fields of a ranked model that a client needs; older hosts do not send `toolUse`. */
const modelSchema = rankedModelSchema
  .pick(Object.fromEntries(Object.values(NEEDS).map((field) => [field, true])) as Record<NeededField, true>)
  .extend({
    id: z.string().regex(MODEL_ID_PATTERN),
    name: z.string(),
    score: z.number(),
    contextLength: z.number(),
    healthStatus: z.string(),
    toolUse: rankedModelSchema.shape.toolUse.optional(),
  })
  .loose()

const shortlistSchema = z.looseObject({
  updatedAt: z.iso.datetime(),
  rankingConfidence: z.string(),
  baseUrl: z.url({ protocol: /^https?$/ }),
  fallback: z.looseObject({ id: z.string().regex(MODEL_ID_PATTERN) }),
  models: z.array(modelSchema),
  seed: z.boolean().optional(),
  stale: z.boolean().optional(),
})

/** A shortlist as a client reads it; further fields are kept. */
export type Shortlist = z.infer<typeof shortlistSchema>

/** Returns the body of a top-models response unchanged when it is a valid shortlist; null otherwise. */
export function parseShortlist(body: unknown): Shortlist | null {
  return shortlistSchema.safeParse(body).success ? (body as Shortlist) : null
}

/** True when a shortlist is stale; without the member `stale` its time decides. */
export function isStale(shortlist: Shortlist, now: Instant): boolean {
  return shortlist.stale ?? !isFresh(shortlist, now)
}

/**
 * The best model that passes a filter, and the shortlist as a recommendation: `primary` and `alternatives` replace
 * `count` and `models`. null when no model passes.
 */
export function pickModel(
  shortlist: Shortlist,
  filter: ShortlistFilter,
): { primary: Shortlist['models'][number]; recommendation: Record<string, unknown> } | null {
  const [primary, ...alternatives] = shortlist.models.filter((model) => matchesFilter(model, filter))
  if (primary === undefined) return null
  const fields = Object.entries(shortlist)
    .filter(([name]) => name !== 'count')
    .flatMap((field) => (field[0] === 'models' ? Object.entries({ primary, alternatives }) : [field]))
  return { primary, recommendation: Object.fromEntries(fields) }
}
