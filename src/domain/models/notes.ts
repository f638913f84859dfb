import type { CatalogueModel } from './catalogue.ts'
import type { RankedModel, StoredRun } from './schema.ts'

/** How many moves are told one by one. */
const MOVES_TOLD = 5
const NAMES_TOLD = 10

/** Said in every recommendation. */
export const STANDING_NOTES = [
  'Free model availability and rate limits can vary.',
  'The lite eval is a small practical heuristic (writing files through a tool, one shell command, a decoding puzzle), not an official benchmark result.',
  'Use openrouter/free if the recommended model is temporarily unavailable.',
] as const

const PARTS = [
  ['metadataScore', 'metadata'],
  ['healthScore', 'health'],
  ['latencyScore', 'latency'],
  ['liteEvalScore', 'lite eval'],
  ['instabilityPenalty', 'instability penalty'],
] as const

/**
 * What moved since the recommendation before, and why: the primary's change always, then the five longest moves, then
 * who came and who left.
 */
export function movementNotes(
  models: readonly RankedModel[],
  previous: Pick<StoredRun, 'models' | 'rankingVersion'> | null,
): string[] {
  if (previous === null) return ['There is no recommendation before this one to compare with.']
  const before = new Map(previous.models.map((model) => [model.id, model]))
  const [primary] = models
  const [deposed] = previous.models
  const changed = primary !== undefined && deposed !== undefined && primary.id !== deposed.id
  const moves = models
    .flatMap((model) => {
      const old = before.get(model.id)
      return old && old.rank !== model.rank ? [{ model, old }] : []
    })
    .sort((a, b) => distance(b) - distance(a) || a.model.rank - b.model.rank)
  const current = new Set(models.map(({ id }) => id))
  const came = models.filter(({ id }) => !before.has(id)).map(({ id, rank }) => `${id} (rank ${rank})`)
  const left = previous.models
    .filter(({ id }) => !current.has(id))
    .map(({ id, rank }) => `${id} (was ${rank})`)
  const first = moves.filter(({ model }) => changed && (model.id === primary.id || model.id === deposed.id))
  const told = [...first, ...moves.filter((move) => !first.includes(move))].slice(0, MOVES_TOLD)
  const untold = moves.length - told.length
  return [
    changed
      ? `The primary changed from ${deposed.id} to ${primary.id} since ${previous.rankingVersion}.`
      : `The primary is the same as in ${previous.rankingVersion}.`,
    ...told.map(describeMove),
    ...(untold > 0 ? [`${untold} more moved.`] : []),
    ...(came.length > 0 ? [`New in the ranking: ${listed(came)}.`] : []),
    ...(left.length > 0 ? [`No longer ranked: ${listed(left)}.`] : []),
  ]
}

/** Names models that cost nothing without being a free variant: nobody should take them for free. */
export function glitchNotes(unsuffixed: readonly CatalogueModel[]): string[] {
  if (unsuffixed.length === 0) return []
  const ids = listed(unsuffixed.map(({ id }) => id))
  return [
    `Priced at zero without the free suffix (a price glitch or a preview), so never a candidate: ${ids}.`,
  ]
}

interface Move {
  model: RankedModel
  old: RankedModel
}

function distance({ model, old }: Move): number {
  return Math.abs(model.rank - old.rank)
}

function describeMove({ model, old }: Move): string {
  const verb = model.rank < old.rank ? 'rose' : 'fell'
  const deltas = PARTS.flatMap(([name, label]) => {
    const delta = model[name] - old[name]
    return delta === 0 ? [] : [`${label} ${delta > 0 ? '+' : ''}${delta}`]
  })
  const why = deltas.length > 0 ? deltas.join(', ') : 'its score is the same, others moved'
  return `${model.id} ${verb} from ${old.rank} to ${model.rank}: ${why}.`
}

/** Names in a row, the first ten. */
export function listed(names: readonly string[]): string {
  const more = names.length - NAMES_TOLD
  return more > 0 ? `${names.slice(0, NAMES_TOLD).join(', ')} and ${more} more` : names.join(', ')
}
