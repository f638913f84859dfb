import { sha256Hex } from '../digest.ts'
import type { Refusal, StorageRefusal } from '../refusal.ts'
import { OBJECT_MAX_BYTES, storageDamaged } from '../refusal.ts'
import { liteScoreOf } from './evaluation.ts'
import { storedRunSchema, wellFormed } from './schema.ts'
import type { RankedModel, StoredRun } from './schema.ts'
import { scoreOf } from './score.ts'

const PREFIX = '{"sha256":"'
const SEPARATOR = '","run":'
const SUFFIX = '}\n'
const RUN_AT = PREFIX.length + 64 + SEPARATOR.length

/**
 * A run as it is stored: `{"sha256":"…","run":{…}}` and a newline, where the digest covers the text of `run`. Every text
 * in it is well-formed Unicode.
 *
 * @throws Error when the run does not hold together, or is larger than what is read back
 */
export function sealRun(run: StoredRun): Uint8Array {
  const sealed = storedRunSchema.parse(wellFormed(run))
  const fault = faultOf(sealed)
  if (fault !== null) throw new Error(`the ranking does not hold together: ${fault}`)
  const text = JSON.stringify(sealed)
  const bytes = new TextEncoder().encode(`${PREFIX}${sha256Hex(text)}${SEPARATOR}${text}${SUFFIX}`)
  if (bytes.byteLength > OBJECT_MAX_BYTES)
    throw new Error(`the ranking has ${bytes.byteLength} bytes, at most ${OBJECT_MAX_BYTES} are read back`)
  return bytes
}

/**
 * The run that {@link sealRun} made bytes of.
 *
 * @throws Refusal `storage_damaged` for any other bytes
 */
export function proveRun(bytes: Uint8Array): StoredRun {
  const text = decoded(bytes)
  const digest = text.slice(PREFIX.length, PREFIX.length + 64)
  const inner = text.slice(RUN_AT, -SUFFIX.length)
  if (text !== `${PREFIX}${digest}${SEPARATOR}${inner}${SUFFIX}`) throw damaged('has no seal')
  if (sha256Hex(inner) !== digest) throw damaged('does not match its digest')
  const parsed = storedRunSchema.safeParse(parsedJson(inner))
  if (!parsed.success)
    throw damaged(`has another shape at ${parsed.error.issues[0]?.path.join('.') ?? ''}`, parsed.error)
  const fault = faultOf(parsed.data)
  if (fault !== null) throw damaged(`does not hold together: ${fault}`)
  return parsed.data
}

function damaged(what: string, cause?: unknown): Refusal<StorageRefusal> {
  return storageDamaged(`the stored recommendation ${what}; dash evaluate-models makes a new one`, cause)
}

/** What cannot be right in a ranking, or null. */
function faultOf({ models }: StoredRun): string | null {
  const ids = new Set(models.map(({ id }) => id))
  if (ids.size !== models.length) return 'a model is ranked twice'
  for (const [index, model] of models.entries()) {
    if (model.rank !== index + 1) return `${model.id} stands at place ${index + 1} with rank ${model.rank}`
    if (model.score !== scoreOf(model)) return `the score of ${model.id} is not the sum of its parts`
    if (model.liteEvalScore !== summaryScore(model)) {
      return `the lite score of ${model.id} is not what its tasks add up to`
    }
    if (model.score > (models[index - 1]?.score ?? model.score))
      return `${model.id} outscores the rank before`
  }
  return null
}

function summaryScore({ evalSummary: { tasks, cacheMultiplier } }: RankedModel): number {
  const points = tasks.reduce((sum, task) => sum + task.points, 0)
  return liteScoreOf({ points, multiplier: cacheMultiplier ?? 1 })
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    throw damaged('is not UTF-8', error)
  }
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw damaged('is not JSON', error)
  }
}
