import { z } from 'zod'
import { FREE_SUFFIX, MODEL_ID_PATTERN } from '../../domain/models/catalogue.ts'
import type { Catalogue, CatalogueModel } from '../../domain/models/catalogue.ts'
import type { EndpointRecord } from '../../domain/models/evaluation.ts'
import type { KeyRequests } from '../../domain/models/quota.ts'
import { publishedText } from '../../domain/models/schema.ts'
import { compareCodeUnits, asJsonObject, parseJsonObject } from '../../domain/text.ts'
import { parseDay } from '../../domain/time.ts'

/** Parsers for the routing service's data about models, endpoints and keys. */

const NAME_MAX_LENGTH = 200
const DESCRIPTION_MAX_LENGTH = 2_000

/** Fields of a price step that hold its conditions, not its price. */
const PRICE_CONDITIONS = /(?:^|\.)(?:min|max)_\w*tokens$/

/** A field that is missing or of another type only loses its own value. */
const text = (maxLength: number) =>
  z
    .string()
    .transform((value) => publishedText(value, maxLength))
    .catch('')
const textList = z.array(z.string()).nullable().catch(null)
const tokens = z.int().positive().nullable().catch(null)

const catalogueRow = z.looseObject({
  id: z.string().max(200).regex(MODEL_ID_PATTERN),
  pricing: z.record(z.string(), z.unknown()),
  canonical_slug: z.string().nullable().catch(null),
  name: text(NAME_MAX_LENGTH),
  description: text(DESCRIPTION_MAX_LENGTH),
  created: z.number().positive().lt(1e11).nullable().catch(null),
  context_length: tokens,
  supported_parameters: textList,
})
type Row = z.infer<typeof catalogueRow>

const catalogueSchema = z.looseObject({ data: z.array(z.unknown()) })

/**
 * Parses a catalogue row by row. A row without a usable id or prices is skipped. Of several rows with the same id
 * the first counts.
 *
 * @returns null if the body is not a list of models
 */
export function parseCatalogue(body: string): Catalogue | null {
  const list = catalogueSchema.safeParse(parseJsonObject(body)).data?.data
  if (!list) return null
  const rows = new Map<string, Row>()
  for (const item of list) {
    const { data } = catalogueRow.safeParse(item)
    if (data && !rows.has(data.id)) rows.set(data.id, data)
  }
  const aliases = findAliases([...rows.values()])
  const models = [...rows.values()].map((item) => toModel(item, aliases.has(item.id)))
  return { models, badRows: list.length - models.length }
}

/**
 * Returns the ids of free rows that are aliases of another free row with the same canonical slug, which a paid row
 * may share too. The row named like the slug is the model, otherwise the first by id.
 */
function findAliases(rows: readonly Row[]): Set<string> {
  const bySlug = new Map<string, string[]>()
  for (const { id, canonical_slug: slug } of rows) {
    if (slug === null || !id.endsWith(FREE_SUFFIX)) continue
    const ids = bySlug.get(slug)
    if (ids) ids.push(id)
    else bySlug.set(slug, [id])
  }
  const aliases = [...bySlug].flatMap(([slug, ids]) => {
    const expectedId = `${slug}${FREE_SUFFIX}`
    const model = ids.includes(expectedId) ? expectedId : ids.toSorted(compareCodeUnits)[0]
    return ids.filter((id) => id !== model)
  })
  return new Set(aliases)
}

function toModel(item: Row, isAlias: boolean): CatalogueModel {
  const architecture = asJsonObject(item['architecture']) ?? {}
  const [inputs, outputs] = parseModality(architecture['modality'])
  const expiry = item['expiration_date'] ?? null
  const expirationDay = typeof expiry === 'string' ? parseDay(expiry.slice(0, 10)) : null
  const topProvider = asJsonObject(item['top_provider']) ?? {}
  return {
    id: item.id,
    name: item.name || item.id,
    createdAt: item.created === null ? null : Math.trunc(item.created * 1000),
    contextLength: item.context_length ?? tokens.parse(topProvider['context_length']),
    maxCompletionTokens: tokens.parse(topProvider['max_completion_tokens']),
    prices: Object.fromEntries(flattenPrices('', item.pricing)),
    inputModalities: textList.parse(architecture['input_modalities']) ?? inputs,
    outputModalities: textList.parse(architecture['output_modalities']) ?? outputs,
    supportedParameters: item.supported_parameters ?? [],
    expirationDay,
    expirationUnreadable: expiry !== null && expirationDay === null,
    description: item.description,
    isRouterOrAlias:
      isAlias || architecture['tokenizer'] === 'Router' || (item['alias_target'] ?? null) !== null,
  }
}

/** Parses the older form of the modalities, `text+image->text`. */
function parseModality(modality: unknown): [inputs: string[], outputs: string[]] {
  if (typeof modality !== 'string') return [[], []]
  const [inputs = '', outputs = ''] = modality.split('->')
  const split = (list: string): string[] => list.split('+').filter((name) => name !== '')
  return [split(inputs), split(outputs)]
}

function flattenPrices(path: string, value: unknown): [string, number | null][] {
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([name, item]) =>
      flattenPrices(path === '' ? name : `${path}.${name}`, item),
    )
  if (PRICE_CONDITIONS.test(path) || value === null) return []
  return [[path, parsePrice(value)]]
}

function parsePrice(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  return typeof value === 'string' && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(value) ? Number(value) : null
}

const keySchema = z.looseObject({
  data: z.looseObject({
    free_model_daily_requests: z
      .looseObject({ limit: z.number().min(0), used: z.number().min(0) })
      .nullish()
      .catch(null),
  }),
})

/** Parses the daily requests of a key; null if the body has none. */
export function parseKeyRequests(body: string): KeyRequests | null {
  const requests = keySchema.safeParse(parseJsonObject(body)).data?.data.free_model_daily_requests
  return requests ? { limit: Math.floor(requests.limit), used: Math.ceil(requests.used) } : null
}

const endpointsSchema = z.looseObject({
  data: z.looseObject({ endpoints: z.array(z.unknown()) }),
})

const endpoint = z.looseObject({
  status: z.number().nullish().catch(null),
  latency_last_30m: z.looseObject({ p50: z.number().nullish() }).nullish().catch(null),
})

/**
 * Parses a model's endpoints. An endpoint is usable while its status is 0; other values mean degrees of
 * unavailability.
 *
 * @returns null if the body has an unexpected form
 */
export function parseEndpoints(body: string): Pick<EndpointRecord, 'usable' | 'latencyMs'> | null {
  const list = endpointsSchema.safeParse(parseJsonObject(body)).data?.data.endpoints
  if (!list) return null
  const known = list.map((each) => endpoint.safeParse(each).data).filter((each) => each !== undefined)
  const usable = known.filter(({ status }) => (status ?? 0) === 0)
  const medians = usable.flatMap((each) => each.latency_last_30m?.p50 ?? []).filter((median) => median >= 0)
  const latencyMs = medians.length > 0 ? Math.round(Math.min(...medians)) : null
  return { usable: usable.length > 0, latencyMs }
}
