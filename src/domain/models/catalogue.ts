import { z } from 'zod'
import { Refusal } from '../refusal.ts'
import { addDays, dayOf, parseDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import { publishedText } from './router.ts'

/** One model as the routing service lists it. What the service does not say, or says in no known way, is null. */
export interface CatalogueModel {
  id: string
  name: string
  createdAt: Instant | null
  contextLength: number | null
  maxCompletionTokens: number | null
  /** Every price, those of steps and overrides too, by its path (`overrides.0.prompt`); null: not a number. */
  prices: Readonly<Record<string, number | null>>
  inputModalities: readonly string[]
  outputModalities: readonly string[]
  supportedParameters: readonly string[]
  expirationDay: Day | null
  /** True when the service gives an expiry that is no day. */
  expirationUnreadable: boolean
  description: string
  /** True of what the service itself calls a router or an alias, and of a second name of a listed free model. */
  standsForOthers: boolean
}

/** A row that could not be read: by its id where it has one, else by its place in the list. */
interface BadRow {
  row: string
  reason: string
}

/** What a catalogue holds. */
export interface Catalogue {
  models: CatalogueModel[]
  badRows: number
  problems: BadRow[]
}

/** What a catalogue is declined with as a whole. */
type CatalogueRefusal = 'catalogue_unreadable'

const NAME_MOST = 200
const DESCRIPTION_MOST = 2_000

/** Ids are printed for shells and put into paths: nothing in them needs quoting. */
export const MODEL_ID_PATTERN = /^~?[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.:-]*$/

/** How the free variant of a model is named. */
const FREE_SUFFIX = ':free'

/** Parts of a price step that say when it holds, not what it costs. */
const CONDITIONS = /(?:^|\.)(?:min|max)_\w*tokens$/

const textList = z.array(z.string())
const row = z.looseObject({
  id: z.string().max(200).regex(MODEL_ID_PATTERN, 'is no model id'),
  pricing: z.record(z.string(), z.unknown()),
  canonical_slug: z.unknown().optional(),
})
type Row = z.infer<typeof row>

/**
 * The catalogue of the routing service, row by row: fields that are missing, new or of another type cost that fact, a
 * row without a usable id or prices costs that row, and nothing else is lost.
 *
 * @param body the parsed answer, `{"data": […]}`
 * @throws Refusal `catalogue_unreadable` when it is no list of models at all
 */
export function parseCatalogue(body: unknown): Catalogue {
  const list = z.looseObject({ data: z.array(z.unknown()) }).safeParse(body)
  if (!list.success)
    throw new Refusal<CatalogueRefusal>('catalogue_unreadable', 'the catalogue has no list of models in data')
  const rows = new Map<string, Row>()
  const problems: BadRow[] = []
  for (const [index, item] of list.data.data.entries()) {
    const parsed = row.safeParse(item)
    if (!parsed.success) problems.push({ row: nameOf(item, index), reason: reasonOf(parsed.error) })
    else if (rows.has(parsed.data.id))
      problems.push({ row: parsed.data.id, reason: 'is listed twice; the first stands' })
    else rows.set(parsed.data.id, parsed.data)
  }
  const secondNames = secondNamesIn([...rows.values()])
  const models = [...rows.values()].map((item) => modelOf(item, secondNames.has(item.id)))
  return { models, badRows: problems.length, problems }
}

/**
 * The ids of free rows that are another name of a free row: several with one canonical slug, which a paid row may share
 * too. The one that is named like the slug is the model, else the first by its id.
 */
function secondNamesIn(rows: readonly Row[]): Set<string> {
  const free = rows.filter(({ id }) => id.endsWith(FREE_SUFFIX))
  const models = new Map<string, string>()
  for (const { id, canonical_slug: slug } of free) {
    if (typeof slug !== 'string') continue
    const other = models.get(slug)
    const isNamedLikeIt = id === `${slug}${FREE_SUFFIX}`
    if (other === undefined || isNamedLikeIt || (other !== `${slug}${FREE_SUFFIX}` && id < other))
      models.set(slug, id)
  }
  const isSecond = ({ id, canonical_slug: slug }: Row): boolean =>
    typeof slug === 'string' && models.get(slug) !== id
  return new Set(free.filter(isSecond).map(({ id }) => id))
}

function modelOf(item: Row, isSecondName: boolean): CatalogueModel {
  const architecture = record(item['architecture'])
  const [inputs, outputs] = modalitiesOf(architecture['modality'])
  const expiry = item['expiration_date'] ?? null
  const expirationDay = typeof expiry === 'string' ? parseDay(expiry.slice(0, 10)) : null
  const created = positive(item['created'])
  const top = record(item['top_provider'])
  return {
    id: item.id,
    name: nonEmpty(text(item['name'], NAME_MOST), item.id),
    createdAt: created !== null && created < 1e11 ? Math.trunc(created * 1000) : null,
    contextLength: wholeNumber(item['context_length']) ?? wholeNumber(top['context_length']),
    maxCompletionTokens: wholeNumber(top['max_completion_tokens']),
    prices: Object.fromEntries(pricesOf('', item.pricing)),
    inputModalities: textList.safeParse(architecture['input_modalities']).data ?? inputs,
    outputModalities: textList.safeParse(architecture['output_modalities']).data ?? outputs,
    supportedParameters: textList.safeParse(item['supported_parameters']).data ?? [],
    expirationDay,
    expirationUnreadable: expiry !== null && expirationDay === null,
    description: text(item['description'], DESCRIPTION_MOST),
    standsForOthers:
      isSecondName || architecture['tokenizer'] === 'Router' || (item['alias_target'] ?? null) !== null,
  }
}

/** The older form of the modalities, `text+image->text`. */
function modalitiesOf(modality: unknown): [inputs: string[], outputs: string[]] {
  if (typeof modality !== 'string') return [[], []]
  const [inputs = '', outputs = ''] = modality.split('->')
  const named = (list: string): string[] => list.split('+').filter((name) => name !== '')
  return [named(inputs), named(outputs)]
}

function pricesOf(path: string, value: unknown): [string, number | null][] {
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([name, item]) =>
      pricesOf(path === '' ? name : `${path}.${name}`, item),
    )
  if (CONDITIONS.test(path) || value === null) return []
  return [[path, priceOf(value)]]
}

function priceOf(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  return typeof value === 'string' && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(value) ? Number(value) : null
}

function record(value: unknown): Record<string, unknown> {
  return z.record(z.string(), z.unknown()).safeParse(value).data ?? {}
}

function positive(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : null
}

function wholeNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null
}

function text(value: unknown, most: number): string {
  return typeof value === 'string' ? publishedText(value, most) : ''
}

function nonEmpty(value: string, otherwise: string): string {
  return value === '' ? otherwise : value
}

function nameOf(item: unknown, index: number): string {
  const { id } = record(item)
  return typeof id === 'string' && id.trim() !== '' ? publishedText(id, 100) : `row ${index + 1}`
}

function reasonOf(error: z.ZodError): string {
  const issue = error.issues[0]
  const where = issue?.path.join('.') ?? ''
  return where === '' ? 'is no object' : `${where}: ${issue?.message ?? 'is not readable'}`
}

/** Every reason a model is not ranked for, with what it means (docs/free-models.md). One model has one: the first. */
export const REJECTION_REASONS = {
  router: 'a router or an alias, which stands for other models',
  zero_price_without_suffix: 'costs nothing now, but is no `:free` variant: a price glitch or a preview',
  not_free: 'no `:free` variant',
  price_unknown: 'a price that is missing or no number',
  price_not_zero: 'a price that is not exactly zero',
  no_text_input: 'takes no text',
  not_only_text_output: 'gives something else than text, or nothing is known',
  guard_model: 'a guard, safety or moderation model: it judges text and does not answer',
  embedding_model: 'an embedding or reranking model',
  speech_model: 'a speech model',
  image_model: 'an image model',
  context_unknown: 'a context length that is not known',
  context_too_short: 'a context of less than 8,192 tokens',
  expiry_unreadable: 'an expiry that is no day',
  expiring: 'expires within three days, or has expired',
} as const
export type RejectionReason = keyof typeof REJECTION_REASONS

export type Judgement = { eligible: true } | { eligible: false; reason: RejectionReason }

const CONTEXT_LEAST = 8_192

/** A model must outlast this many days. */
const DAYS_AHEAD = 3

/** An expiry from here on is a sentinel of the service, not a plan. */
const SENTINEL_DAY = '2090-01-01'

/** The service's routers by name, for a catalogue that does not tell. */
const OWN_ROUTERS = /^openrouter\/(?:auto|bodybuilder|free|fusion|pareto)(?:[-:]|$)/

/** The stable router that is always the fallback. */
export const FALLBACK_ROUTER = 'openrouter/free'

/** In ids and names, where a word is what the model is; descriptions praise safety and images in passing. */
const KINDS: readonly (readonly [RejectionReason, RegExp])[] = [
  [
    'guard_model',
    /(?:^|[^a-z])(?:\w*guard(?:ian|rails?)?|\w*shield\w*|\w*safety|moderation|moderator)(?:[^a-z]|$)/i,
  ],
  ['embedding_model', /(?:^|[^a-z])(?:\w*embed(?:der|dings?)?|\w*rerank(?:er|ing)?|retriever)(?:[^a-z]|$)/i],
  [
    'speech_model',
    /(?:^|[^a-z])(?:tts|stt|asr|whisper|speech|voice|audio|transcri(?:be|ption))(?:[^a-z]|$)/i,
  ],
  ['image_model', /(?:^|[^a-z])(?:image|diffusion|text-to-image|ocr|imagen)(?:[^a-z]|$)/i],
  ['router', /(?:^|[^a-z])router(?:[^a-z]|$)/i],
]

/** In descriptions only what can be said of nothing else. */
const GUARD_DESCRIPTION =
  /\b(?:guardrails?|(?:content[- ])?(?:safety|moderation)) (?:model|classifier)\b|\b(?:safety|moderation) classification model\b/i

/**
 * Whether a model may be ranked and recommended (docs/free-models.md).
 *
 * @param now decides what expires soon
 */
export function judge(model: CatalogueModel, now: Instant): Judgement {
  const reason = rejectionOf(model, now)
  return reason === null ? { eligible: true } : { eligible: false, reason }
}

function rejectionOf(model: CatalogueModel, now: Instant): RejectionReason | null {
  const { id, name, description } = model
  const priced = priceRejection(model)
  // The service's own name stands for its routers, whatever their suffix, and for previews under a code name that cost
  // nothing for a while.
  const isPreview = !id.endsWith(FREE_SUFFIX) && !OWN_ROUTERS.test(id) && priced === null
  if (model.standsForOthers || id.startsWith('~') || (id.startsWith('openrouter/') && !isPreview))
    return 'router'
  if (!id.endsWith(FREE_SUFFIX)) return priced === null ? 'zero_price_without_suffix' : 'not_free'
  if (priced !== null) return priced
  if (!model.inputModalities.includes('text')) return 'no_text_input'
  if (model.outputModalities.length === 0 || model.outputModalities.some((kind) => kind !== 'text'))
    return 'not_only_text_output'
  const [kind] = KINDS.find(([, pattern]) => pattern.test(id) || pattern.test(name)) ?? [null]
  if (kind !== null) return kind
  if (GUARD_DESCRIPTION.test(description)) return 'guard_model'
  if (model.contextLength === null) return 'context_unknown'
  if (model.contextLength < CONTEXT_LEAST) return 'context_too_short'
  return expiryRejection(model, now)
}

function priceRejection({ prices }: CatalogueModel): RejectionReason | null {
  const all = Object.values(prices)
  if (prices['prompt'] === undefined || prices['completion'] === undefined || all.includes(null))
    return 'price_unknown'
  return all.every((price) => price === 0) ? null : 'price_not_zero'
}

function expiryRejection(model: CatalogueModel, now: Instant): RejectionReason | null {
  const { expirationDay, expirationUnreadable } = model
  if (expirationUnreadable) return 'expiry_unreadable'
  if (expirationDay === null || expirationDay >= SENTINEL_DAY) return null
  return expirationDay > addDays(dayOf(now), DAYS_AHEAD) ? null : 'expiring'
}

/** What the service says of a model's endpoints without asking the model. */
export interface EndpointHealth {
  /** True when at least one endpoint takes requests. */
  usable: boolean
  /** Median of the last half hour at the fastest usable endpoint, in milliseconds; null where it is not told. */
  latencyMs: number | null
}

const endpoint = z.looseObject({
  status: z.number().nullish().catch(null),
  latency_last_30m: z.looseObject({ p50: z.number().nullish() }).nullish().catch(null),
})

const answer = z.looseObject({
  data: z.looseObject({ endpoints: z.array(z.unknown()) }),
})

/**
 * Reads the answer for a model's endpoints.
 *
 * An endpoint is usable while its status is 0; all others are degrees of being taken out.
 *
 * @returns null when the answer has another shape
 */
export function parseEndpoints(body: string): EndpointHealth | null {
  let json: unknown
  try {
    json = JSON.parse(body)
  } catch {
    return null
  }
  const parsed = answer.safeParse(json)
  if (!parsed.success) return null
  const known = parsed.data.data.endpoints.map((each) => endpoint.safeParse(each).data)
  const usable = known.filter((each) => each !== undefined && (each.status ?? 0) === 0)
  const medians = usable.flatMap((each) => each?.latency_last_30m?.p50 ?? []).filter((median) => median >= 0)
  return {
    usable: usable.length > 0,
    latencyMs: medians.length > 0 ? Math.round(Math.min(...medians)) : null,
  }
}
