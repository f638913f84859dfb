import { z } from 'zod'
import { Refusal } from '../refusal.ts'
import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { MODEL_ID_PATTERN } from './catalogue.ts'
import type { Health, RankedModel, Recommendation, Status, StoredRun, TopModels } from './schema.ts'

/** Refusal codes of `/api/free-llm/*` and `/api/status/free-llm` (docs/free-models.md): the whole, closed list. */
export const FREE_MODELS_REFUSALS = [
  'invalid_limit',
  'invalid_filter',
  'method_not_allowed',
  'internal_error',
] as const
export type FreeModelsRefusal = (typeof FREE_MODELS_REFUSALS)[number]

/** What a model can be asked to support, and the field that says so. */
const NEEDS = {
  tools: 'supportsTools',
  toolChoice: 'supportsToolChoice',
  structured: 'supportsStructuredOutputs',
  responseFormat: 'supportsResponseFormat',
  reasoning: 'supportsReasoning',
  seed: 'supportsSeed',
  stop: 'supportsStop',
} as const satisfies Record<string, keyof RankedModel>
export type Need = keyof typeof NEEDS

/** Every need, as it is written in a query and on a command line. */
export const NEED_NAMES = Object.keys(NEEDS) as Need[]

/** Which models of the shortlist are wanted; nothing is left out by an empty filter. */
export interface ShortlistFilter {
  needs: readonly Need[]
  /** Tokens; null for any. */
  minContext: number | null
  /** Only models that answered as asked. */
  passedOnly: boolean
}

export interface ShortlistQuery {
  /** Null for the whole list. */
  limit: number | null
  filter: ShortlistFilter
}

export const NO_FILTER: ShortlistFilter = { needs: [], minContext: null, passedOnly: false }

/**
 * The question a top-models request asks (docs/free-models.md).
 *
 * @param params the query as parsed; a name given twice is invalid
 * @throws Refusal `invalid_limit`, then `invalid_filter`
 */
export function parseShortlistQuery(params: URLSearchParams): ShortlistQuery {
  const limit = single(params, 'limit', wholeNumber)
  if (limit === undefined) throw new Refusal<FreeModelsRefusal>('invalid_limit')
  const needs = single(params, 'needs', parseNeeds)
  const minContext = single(params, 'minContext', wholeNumber)
  const passedOnly = single(params, 'health', (text) => (text === 'passed' ? true : null))
  if (needs === undefined || minContext === undefined || passedOnly === undefined)
    throw new Refusal<FreeModelsRefusal>('invalid_filter')
  return { limit, filter: { needs: needs ?? [], minContext, passedOnly: passedOnly ?? false } }
}

/** Needs separated by commas, or null when one of them is none. */
export function parseNeeds(text: string): Need[] | null {
  const names = text.split(',')
  return names.every((name) => Object.hasOwn(NEEDS, name)) ? (names as Need[]) : null
}

/** What the filters look at. */
type Filterable = Pick<RankedModel, (typeof NEEDS)[Need] | 'contextLength' | 'healthStatus'> & {
  toolUse?: RankedModel['toolUse'] | undefined
}

/** Whether a model is wanted; `tools` leaves out those whose tool use was disproven. */
function meets(model: Filterable, { needs, minContext, passedOnly }: ShortlistFilter): boolean {
  if (passedOnly && model.healthStatus !== 'passed') return false
  if (minContext !== null && model.contextLength < minContext) return false
  return needs.every((need) => model[NEEDS[need]] && !(need === 'tools' && model.toolUse === 'disproven'))
}

/** The value of a parameter, null when it is absent, undefined when it is invalid or given twice. */
function single<T>(
  params: URLSearchParams,
  name: string,
  parse: (text: string) => T | null,
): T | null | undefined {
  const [text, ...others] = params.getAll(name)
  if (text === undefined) return null
  return others.length > 0 ? undefined : (parse(text) ?? undefined)
}

/** At least 1; more digits than any list or context has are still a number. */
function wholeNumber(text: string): number | null {
  return /^[1-9]\d{0,99}$/.test(text) ? Number(text) : null
}

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

const supported = z.boolean()

/** What a reader needs of a ranked model, whoever serves it; older hosts lack `toolUse`. */
const modelSchema = z.looseObject({
  id: z.string().regex(MODEL_ID_PATTERN),
  name: z.string(),
  score: z.number(),
  contextLength: z.number(),
  healthStatus: z.string(),
  supportsTools: supported,
  supportsToolChoice: supported,
  supportsStructuredOutputs: supported,
  supportsResponseFormat: supported,
  supportsReasoning: supported,
  supportsSeed: supported,
  supportsStop: supported,
  toolUse: z.enum(['proven', 'disproven', 'unknown']).optional(),
})

const shortlistSchema = z.looseObject({
  updatedAt: z.iso.datetime(),
  rankingConfidence: z.string(),
  baseUrl: z.url({ protocol: /^https?$/ }),
  fallback: z.looseObject({ id: z.string().regex(MODEL_ID_PATTERN) }),
  models: z.array(modelSchema),
  seed: z.boolean().optional(),
  stale: z.boolean().optional(),
})

/** A shortlist as its reader sees it; further fields are kept. */
export type Shortlist = z.infer<typeof shortlistSchema>
type ShortlistModel = Shortlist['models'][number]

/** The shortlist in the body of a top-models answer, as it was sent; null for a body that is none. */
export function parseShortlist(body: unknown): Shortlist | null {
  return shortlistSchema.safeParse(body).success ? (body as Shortlist) : null
}

/** Whether a shortlist is too old to rely on; hosts that do not say are judged by its time. */
export function isStale({ stale, updatedAt }: Shortlist, now: Instant): boolean {
  return stale ?? now - Date.parse(updatedAt) > MAX_FRESH_HOURS * 3_600_000
}

/** The first wanted model of a shortlist. */
export interface ShortlistPick {
  primary: ShortlistModel
  /** The shortlist as a recommendation: `primary` and `alternatives` in place of `count` and `models`. */
  recommendation: Record<string, unknown>
}

/** Picks the best model that passes a filter, the others that pass as its alternatives; null when none does. */
export function pickModel(shortlist: Shortlist, filter: ShortlistFilter): ShortlistPick | null {
  const [primary, ...alternatives] = shortlist.models.filter((model) => meets(model, filter))
  if (primary === undefined) return null
  const fields = Object.entries(shortlist).flatMap(([name, value]): [string, unknown][] => {
    if (name === 'count') return []
    if (name !== 'models') return [[name, value]]
    return [
      ['primary', primary],
      ['alternatives', alternatives],
    ]
  })
  return { primary, recommendation: Object.fromEntries(fields) }
}
