import { addDays, dayOf } from '../time.ts'
import type { Day, Instant } from '../time.ts'

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
  isRouterOrAlias: boolean
}

/** What a catalogue holds. */
export interface Catalogue {
  models: CatalogueModel[]
  /** Rows that could not be read, or whose id was listed before. */
  badRows: number
}

/** API base of the public routing service. */
export const BASE_URL = 'https://openrouter.ai/api/v1'

/** Ids are printed for shells and put into paths: nothing in them needs quoting. */
export const MODEL_ID_PATTERN = /^~?[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.:-]*$/

/** How the free variant of a model is named. */
export const FREE_SUFFIX = ':free'

/** Every reason not to rank a model, with its meaning (docs/free-models.md). A model has one: the first that holds. */
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

const CONTEXT_MIN = 8_192

/** A model must outlast this many days. */
const DAYS_AHEAD = 3

/** An expiry from here on is a sentinel of the service, not a plan. */
const SENTINEL_DAY = '2090-01-01'

/** The service's routers by name, for a catalogue that does not tell. */
const OWN_ROUTERS = /^openrouter\/(?:auto|bodybuilder|free|fusion|pareto)(?:[-:]|$)/

/** The stable router that is always the fallback. */
export const FALLBACK_ROUTER = 'openrouter/free'

/** Words of ids and names, which name the kind of a model; descriptions mention safety and images in passing. */
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

/** Words of descriptions that fit nothing but a guard. */
const GUARD_DESCRIPTION =
  /\b(?:guardrails?|(?:content[- ])?(?:safety|moderation)) (?:model|classifier)\b|\b(?:safety|moderation) classification model\b/i

/** A catalogue, divided into the models that are ranked and the others with their reasons. */
export interface Candidates {
  eligible: CatalogueModel[]
  rejections: { id: string; reason: RejectionReason }[]
}

/** @param now decides which models expire soon */
export function filterCatalogue(models: readonly CatalogueModel[], now: Instant): Candidates {
  const candidates: Candidates = { eligible: [], rejections: [] }
  for (const model of models) {
    const reason = rejectionOf(model, now)
    if (reason === null) candidates.eligible.push(model)
    else candidates.rejections.push({ id: model.id, reason })
  }
  return candidates
}

/** Why a model must not be ranked and recommended (docs/free-models.md); null when it may. */
export function rejectionOf(model: CatalogueModel, now: Instant): RejectionReason | null {
  const { id, name, description } = model
  const priceReason = priceRejection(model)
  // The service's own name stands for its routers, whatever their suffix, and for previews under a code name that cost
  // nothing for a while.
  const isPreview = !id.endsWith(FREE_SUFFIX) && !OWN_ROUTERS.test(id) && priceReason === null
  if (model.isRouterOrAlias || id.startsWith('~') || (id.startsWith('openrouter/') && !isPreview))
    return 'router'
  if (!id.endsWith(FREE_SUFFIX)) return priceReason === null ? 'zero_price_without_suffix' : 'not_free'
  if (priceReason !== null) return priceReason
  if (!model.inputModalities.includes('text')) return 'no_text_input'
  if (model.outputModalities.length === 0 || model.outputModalities.some((kind) => kind !== 'text'))
    return 'not_only_text_output'
  const [kind] = KINDS.find(([, pattern]) => pattern.test(id) || pattern.test(name)) ?? [null]
  if (kind !== null) return kind
  if (GUARD_DESCRIPTION.test(description)) return 'guard_model'
  if (model.contextLength === null) return 'context_unknown'
  if (model.contextLength < CONTEXT_MIN) return 'context_too_short'
  return expiryRejection(model, now)
}

function priceRejection({ prices }: CatalogueModel): RejectionReason | null {
  const all = Object.values(prices)
  if (prices['prompt'] === undefined || prices['completion'] === undefined || all.includes(null))
    return 'price_unknown'
  return all.every((price) => price === 0) ? null : 'price_not_zero'
}

function expiryRejection(
  { expirationDay, expirationUnreadable }: CatalogueModel,
  now: Instant,
): RejectionReason | null {
  if (expirationUnreadable) return 'expiry_unreadable'
  if (expirationDay === null || expirationDay >= SENTINEL_DAY) return null
  return expirationDay > addDays(dayOf(now), DAYS_AHEAD) ? null : 'expiring'
}
