import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { recommendationPayload } from '../../../src/domain/models/shortlist.ts'
import type { ServedRun } from '../../../src/domain/models/shortlist.ts'
import { proveRun, sealRun } from '../../../src/domain/models/stored-run.ts'
import { candidate, catalogueModel, RUN_AT, sampleRun, task } from './free-models.ts'

const served = (run: ServedRun['run']): ServedRun => ({ run, seed: false, storeAvailable: true })

describe('a stored run', () => {
  test('a stored run keeps every rejection and the components of every score', () => {
    const { rejections, explanations, models } = proveRun(sealRun(sampleRun()))
    expect(rejections).toEqual([{ id: 'maker/guard:free', reason: 'guard_model' }])
    expect(Object.keys(explanations)).toEqual(models.map(({ id }) => id))
    for (const { id, score } of models) {
      expect(explanations[id]?.reduce((sum, { points }) => sum + points, 0)).toBe(score)
      // 600 of the metadata, 400 of the health, 75 of the latency, 750 of the evaluation.
      expect(explanations[id]?.reduce((sum, { most }) => sum + most, 0)).toBe(1_825)
    }
  })

  const bytes = sealRun(sampleRun())

  test('a stored run is plain JSON, sealed by the digest of its run', () => {
    const { sha256, run, ...rest } = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>
    expect([sha256, rest]).toEqual([sha256Hex(JSON.stringify(run)), {}])
    expect(run).toEqual(sampleRun())
  })

  test('a stored run is refused when it is changed or shorter', () => {
    // Inside of the run.
    const at = bytes.indexOf('9'.charCodeAt(0), 200)
    for (const wrong of [bytes.with(at, '8'.charCodeAt(0)), bytes.slice(0, -1), bytes.slice(1)])
      expect(() => proveRun(wrong)).toThrow(expect.objectContaining({ code: 'storage_damaged' }))
  })

  test('an inconsistent ranking cannot be sealed', () => {
    const run = sampleRun()
    const [first, second, ...others] = run.models
    if (!first || !second) throw new Error('the sample has four models')
    for (const models of [
      [second, first, ...others],
      [first, first, ...others],
      [{ ...first, score: first.score + 1 }, second, ...others],
      [{ ...first, rank: 2 }, second, ...others],
      [{ ...first, liteEvalScore: first.liteEvalScore - 1, score: first.score - 1 }, second, ...others],
    ])
      expect(() => sealRun({ ...run, models })).toThrow('is inconsistent')
    expect(() => sealRun({ ...run, models: [] })).toThrow()
  })

  test('a stored run holds well-formed Unicode whatever models and services wrote', () => {
    const odd = 'a\ud83d'
    const tasks = [task('babylonian_clock_lite', 0, { received: odd, [odd]: [{ [odd]: odd }] })]
    const model = catalogueModel('a/b:free', { name: odd })
    const candidates = [candidate('a/b:free', { model, evaluation: { updatedAt: RUN_AT, tasks } })]
    const sealed = proveRun(sealRun(sampleRun({ candidates, notes: [odd] })))
    const texts = JSON.stringify([recommendationPayload(served(sealed), RUN_AT), sealed])
    expect([/\\ud[89a-f]/i.test(texts), texts.isWellFormed()]).toEqual([false, true])
  })
})
