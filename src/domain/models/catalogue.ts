import { z } from 'zod'
import { Refusal } from '../refusal.ts'
import { parseDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import { publishedText } from './text.ts'

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
export const FREE_SUFFIX = ':free'

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
