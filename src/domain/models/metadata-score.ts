import { DAY_MS, dayOf } from '../time.ts'
import type { Instant } from '../time.ts'
import type { CatalogueModel } from './catalogue.ts'

/** One part of a score: its points, how many there are to be had, and what they rest on. */
export interface ScoreComponent {
  name: string
  points: number
  most: number
  /** One phrase for a person. */
  evidence: string
}

/** What the metadata can bring, part by part; docs/model-scores.md defends each by recorded catalogues. */
export const METADATA_MOST = {
  recency: 170,
  parameters: 120,
  context: 60,
  reasoningEffort: 55,
  output: 50,
  reasoning: 45,
  tools: 45,
  structuredOutputs: 30,
  responseFormat: 15,
  toolChoice: 10,
} as const
type MetadataPart = keyof typeof METADATA_MOST

/** Newer than this counts as new, older than that as old. */
const NEW_DAYS = 30
const OLD_DAYS = 540

/**
 * What a model's published facts promise, 0 to 600 points (docs/model-scores.md).
 *
 * @param now from which the age is counted
 * @returns every part, those without points too
 */
export function metadataComponents(model: CatalogueModel, now: Instant): ScoreComponent[] {
  const supports = (name: string): [share: number, evidence: string] => {
    const listed = model.supportedParameters.includes(name)
    return [listed ? 1 : 0, `${name} ${listed ? 'listed' : 'not listed'}`]
  }
  const shares: Record<MetadataPart, [share: number, evidence: string]> = {
    recency: recency(model, now),
    parameters: parameters(model),
    context: logarithmic(model.contextLength, 'tokens of context', 2 ** 13, 2 ** 18, 0),
    reasoningEffort: supports('reasoning_effort'),
    output: logarithmic(model.maxCompletionTokens, 'tokens of output', 2 ** 12, 2 ** 16, 0.2),
    reasoning: supports('reasoning'),
    tools: supports('tools'),
    structuredOutputs: supports('structured_outputs'),
    responseFormat: supports('response_format'),
    toolChoice: supports('tool_choice'),
  }
  return (Object.entries(shares) as [MetadataPart, [number, string]][]).map(([name, [share, evidence]]) => {
    const most = METADATA_MOST[name]
    return { name, points: Math.round(share * most), most, evidence }
  })
}

function recency({ createdAt }: CatalogueModel, now: Instant): [number, string] {
  if (createdAt === null) return [0, 'no date of listing']
  const days = Math.max(0, Math.floor((now - createdAt) / DAY_MS))
  return [between(OLD_DAYS - days, 0, OLD_DAYS - NEW_DAYS), `listed on ${dayOf(createdAt)}, ${days} days ago`]
}

/** Models whose size is not published are rather great ones: they count like one of about 120 billion parameters. */
function parameters(model: CatalogueModel): [number, string] {
  const billions = parameterBillions(model)
  if (billions === null) return [0.7, 'number of parameters not published']
  return [between(Math.log2(billions), 2, 9), `${billions} billion parameters`]
}

/**
 * The number of parameters in billions that id and name speak of, else the description; null when none does. Active
 * and total parameters stand side by side: the total is the greater. Descriptions also name a model's relatives.
 */
export function parameterBillions({ id, name, description }: CatalogueModel): number | null {
  return greatestSize(`${id} ${name}`) ?? greatestSize(description)
}

function greatestSize(text: string): number | null {
  const named = text.matchAll(
    /(?<![\w.$])(\d{1,5}(?:\.\d{1,3})?)(?:B\b(?!\s+tokens)|T\b(?=[\w\s-]{0,12}param))/gi,
  )
  const sizes = Array.from(named, ([match, size = '']) => Number(size) * (/t$/i.test(match) ? 1_000 : 1))
  const greatest = Math.max(0, ...sizes)
  return greatest > 0 ? greatest : null
}

/** Each doubling between the bounds is worth the same; beyond them more or less makes no difference. */
function logarithmic(
  value: number | null,
  unit: string,
  least: number,
  most: number,
  unknown: number,
): [number, string] {
  if (value === null) return [unknown, `${unit}: not published`]
  return [between(Math.log2(value), Math.log2(least), Math.log2(most)), `${value} ${unit}`]
}

/** Where a value lies between two bounds, 0 to 1. */
function between(value: number, low: number, high: number): number {
  return Math.min(1, Math.max(0, (value - low) / (high - low)))
}
