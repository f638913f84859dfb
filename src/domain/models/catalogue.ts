import { addDays, dayOf } from '../time.ts'
import type { Day, Instant } from '../time.ts'

/** A model in the routing service's catalogue. Missing or unreadable values are null. */
export interface CatalogueModel {
  id: string
  name: string
  createdAt: Instant | null
  contextLength: number | null
  maxCompletionTokens: number | null
  /** Every price, including tiers and overrides, by its path (`overrides.0.prompt`); null when it is not a number. */
  prices: Readonly<Record<string, number | null>>
  inputModalities: readonly string[]
  outputModalities: readonly string[]
  supportedParameters: readonly string[]
  expirationDay: Day | null
  expirationUnreadable: boolean
  description: string
  /** True when the service calls it a router or an alias, or when it is a second name of a listed free model. */
  isRouterOrAlias: boolean
}

export interface Catalogue {
  models: CatalogueModel[]
  /** Number of unreadable rows and of repeated ids. */
  badRows: number
}

export const BASE_URL = 'https://openrouter.ai/api/v1'

/** Model ids appear in shell commands and paths, so that they must not need quoting. */
export const MODEL_ID_PATTERN = /^~?[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.:-]*$/

export const FREE_SUFFIX = ':free'

/** Every reason to reject a model, with its meaning (docs/free-models.md). A model has one: the first that applies. */
export const REJECTION_REASONS = {
  router: 'a router or an alias for other models',
  zero_price_without_suffix: 'free now, but not a `:free` variant: a price error or a preview',
  not_free: 'no `:free` variant',
  price_unknown: 'the price is missing or not a number',
  price_not_zero: 'the price is not exactly zero',
  no_text_input: 'does not accept text',
  not_only_text_output: 'its output is not text, or is unknown',
  guard_model: 'a guard, safety or moderation model: it classifies text and does not answer',
  embedding_model: 'an embedding or reranking model',
  speech_model: 'a speech model',
  image_model: 'an image model',
  context_unknown: 'the context length is unknown',
  context_too_short: 'a context of less than 8,192 tokens',
  expiry_unreadable: 'the expiry is not a valid day',
  expiring: 'expires within three days, or has expired',
} as const
export type RejectionReason = keyof typeof REJECTION_REASONS

export const UNRANKED_REASONS = {
  ...REJECTION_REASONS,
  gone: 'the service had no endpoint for it in the last run',
} as const

const CONTEXT_MIN = 8_192

/** A model must remain available for this many days. */
const DAYS_AHEAD = 3

/** The service uses expiries from this day on as placeholders. */
export const SENTINEL_DAY = '2090-01-01'

/** The service's routers by name, in case the catalogue does not mark them. */
const OWN_ROUTERS = /^openrouter\/(?:auto|bodybuilder|free|fusion|pareto)(?:[-:]|$)/

/** The stable router that is always the fallback. */
export const FALLBACK_ROUTER = 'openrouter/free'

/** Words in ids and names that identify the kind of a model; descriptions also mention other kinds in passing. */
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

/** Words in descriptions that only guard models have. */
const GUARD_DESCRIPTION =
  /\b(?:guardrails?|(?:content[- ])?(?:safety|moderation)) (?:model|classifier)\b|\b(?:safety|moderation) classification model\b/i

/** Eligible models of a catalogue, and the others with their reasons. */
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

/** The reason to reject a model (docs/free-models.md); null when it is eligible. */
export function rejectionOf(model: CatalogueModel, now: Instant): RejectionReason | null {
  const { id, name, description } = model
  const priceReason = priceRejection(model)
  // The prefix `openrouter/` marks routers, with any suffix, and previews under a code name that cost nothing for a
  // while.
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
