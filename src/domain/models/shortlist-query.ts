import { Refusal } from '../refusal.ts'
import type { FreeModelsRefusal } from './refusals.ts'
import type { RankedModel } from './schema.ts'

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
export type Filterable = Pick<RankedModel, (typeof NEEDS)[Need] | 'contextLength' | 'healthStatus'> & {
  toolUse?: RankedModel['toolUse'] | undefined
}

/** Whether a model is wanted; `tools` leaves out those whose tool use was disproven. */
export function meets(model: Filterable, { needs, minContext, passedOnly }: ShortlistFilter): boolean {
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
