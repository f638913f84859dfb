import { sha256Hex } from '../digest.ts'
import type { Refusal, StorageRefusal } from '../refusal.ts'
import { OBJECT_MAX_BYTES, storageDamaged } from '../refusal.ts'
import { decodeUtf8 } from '../text.ts'
import { parseJson } from '../json.ts'
import { liteScoreOf } from './evaluation.ts'
import { storedRunSchema, wellFormed } from './schema.ts'
import type { StoredRun } from './schema.ts'
import { scoreOf } from './score.ts'

const SEALED = /^\{"sha256":"(.{64})","run":(.*)\}\n$/s

/**
 * Seals a run: `{"sha256":"…","run":{…}}` and a newline, where the digest covers the text of `run`. Every text is
 * well-formed Unicode.
 *
 * @throws Error when the run is inconsistent or too large to be read back
 */
export function sealRun(run: StoredRun): Uint8Array {
  const sealed = storedRunSchema.parse(wellFormed(run))
  const inconsistency = inconsistencyOf(sealed)
  if (inconsistency !== null) throw new Error(`the ranking is inconsistent: ${inconsistency}`)
  const text = JSON.stringify(sealed)
  const bytes = new TextEncoder().encode(`{"sha256":"${sha256Hex(text)}","run":${text}}\n`)
  if (bytes.byteLength > OBJECT_MAX_BYTES)
    throw new Error(`the ranking has ${bytes.byteLength} bytes; the maximum is ${OBJECT_MAX_BYTES}`)
  return bytes
}

/**
 * Proves and parses the bytes of {@link sealRun}.
 *
 * @throws Refusal `storage_damaged` for any other bytes
 */
export function proveRun(bytes: Uint8Array): StoredRun {
  const [, digest, inner = ''] = SEALED.exec(decodeUtf8(bytes) ?? '') ?? []
  if (sha256Hex(inner) !== digest) throw damaged('does not match its digest')
  const { data, error } = storedRunSchema.safeParse(parseJson(inner))
  if (error) throw damaged(`has an unexpected format at ${error.issues[0]?.path.join('.') ?? ''}`, error)
  const inconsistency = inconsistencyOf(data)
  if (inconsistency !== null) throw damaged(`is inconsistent: ${inconsistency}`)
  return data
}

function damaged(fault: string, cause?: unknown): Refusal<StorageRefusal> {
  return storageDamaged(
    `the stored recommendation ${fault}; create a new one with dash evaluate-models`,
    cause,
  )
}

/** The first inconsistency of a ranking, or null. */
function inconsistencyOf({ models }: StoredRun): string | null {
  if (new Set(models.map(({ id }) => id)).size !== models.length) return 'a model is ranked twice'
  for (const [index, model] of models.entries()) {
    const { id, rank, score, liteEvalScore, evalSummary } = model
    const points = evalSummary.tasks.reduce((sum, task) => sum + task.points, 0)
    const multiplier = evalSummary.cacheMultiplier ?? 1
    if (rank !== index + 1) return `${id} has rank ${rank} at position ${index + 1}`
    if (score !== scoreOf(model)) return `the score of ${id} is not the sum of its parts`
    if (liteEvalScore !== liteScoreOf({ points, multiplier }))
      return `the lite score of ${id} is not the sum of its tasks`
    if (score > (models[index - 1]?.score ?? score)) return `${id} has a higher score than the previous rank`
  }
  return null
}
