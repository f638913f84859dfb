import { describe, expect, test } from 'vitest'
import { compareVersions, modelChanges, runSteps } from '../../../src/domain/models/changes.ts'
import type { StoredRun } from '../../../src/domain/models/schema.ts'
import { deprecationOf } from '../../../src/domain/models/shortlist.ts'
import { RUN_AT, candidate, catalogueModel, evaluation, sampleRun } from './free-models.ts'

const GOOD = candidate('maker/good:free')
const WEAK = candidate('other/weak:free', { evaluation: evaluation(RUN_AT, [350, 0, 0]) })

function runOf(candidates: (typeof GOOD)[], changes: Parameters<typeof sampleRun>[0] = {}): StoredRun {
  return sampleRun({ candidates, rejections: [], ...changes })
}

describe('changes between two runs', () => {
  test('a primary that is overtaken is named with the parts of both scores that moved', () => {
    const fallen = candidate('maker/good:free', { evaluation: evaluation(RUN_AT, [0, 0, 100], false) })
    expect(modelChanges(runOf([GOOD, WEAK]), runOf([fallen, WEAK]))).toMatchObject([
      {
        kind: 'primary_changed',
        model: 'other/weak:free',
        name: 'Name of other/weak:free',
        rank: 1,
        previousRank: 2,
        previousPrimary: 'maker/good:free',
        reason: expect.stringMatching(
          /^other\/weak:free rose from 2 to 1: .+\. maker\/good:free fell from 1 to 2: .*test -650.*\.$/,
        ) as string,
      },
    ])
  })

  test('a primary that is rejected has changed and is gone, both with the reason of the rejection', () => {
    const after = runOf([WEAK], { rejections: [{ id: 'maker/good:free', reason: 'expiring' }] })
    const reason = 'It is no longer ranked: expires within three days, or has expired.'
    const why = `other/weak:free rose from 2 to 1: its score is the same, others moved. maker/good:free: ${reason}`
    expect(modelChanges(runOf([GOOD, WEAK]), after)).toMatchObject([
      { kind: 'primary_changed', model: 'other/weak:free', reason: why },
      { kind: 'model_gone', model: 'maker/good:free', rank: null, previousRank: 1, reason },
    ])
  })

  test.each([
    ['a_later_reason', 'It is no longer ranked: a_later_reason.'],
    [null, 'The catalogue has no readable entry for it any more.'],
  ])('a model that went for %s has the reason', (rejection, reason) => {
    const rejections = rejection === null ? [] : [{ id: 'other/weak:free', reason: rejection }]
    const [change] = modelChanges(runOf([GOOD, WEAK]), runOf([GOOD], { rejections }))
    expect(change).toMatchObject({ kind: 'model_gone', model: 'other/weak:free', reason })
  })

  test.each([
    ['context_unknown', 'It is ranked now; the reason against it was: the context length is unknown.'],
    [null, 'It is new in the catalogue.'],
  ])('a model that came after %s has the reason', (rejection, reason) => {
    const rejections = rejection === null ? [] : [{ id: 'other/weak:free', reason: rejection }]
    const [change] = modelChanges(runOf([GOOD], { rejections }), runOf([GOOD, WEAK]))
    expect(change).toMatchObject({ kind: 'model_new', model: 'other/weak:free', rank: 2, reason })
  })
})

describe('steps between runs', () => {
  const at = (rankingVersion: string, candidates = [GOOD]) => ({
    rankingVersion,
    run: runOf(candidates, { rankingVersion }),
  })

  test('missed days and unreadable runs are named in the step that follows them', () => {
    const damaged = { rankingVersion: '2026-08-25.v1', run: null }
    const steps = runSteps([at('2026-08-22.v1'), damaged, at('2026-08-28.v1', [GOOD, WEAK])])
    expect(steps).toMatchObject([
      {
        previousVersion: '2026-08-22.v1',
        rankingVersion: '2026-08-28.v1',
        missedDays: [
          { firstDay: '2026-08-23', lastDay: '2026-08-24' },
          { firstDay: '2026-08-26', lastDay: '2026-08-27' },
        ],
        unreadable: ['2026-08-25.v1'],
        changes: [{ kind: 'model_new' }],
      },
    ])
    const [ofOneDay, ofTheNext] = runSteps([at('2026-08-22.v9'), at('2026-08-22.v10'), at('2026-08-23.v1')])
    expect([ofOneDay?.missedDays, ofTheNext?.missedDays]).toEqual([[], []])
  })

  test('versions are ordered by day and number', () => {
    const versions = ['2026-09-01.v1', '2026-08-31.v10', '2026-08-31.v9']
    expect(versions.toSorted(compareVersions)).toEqual(versions.toReversed())
  })
})

describe('the end of a model', () => {
  const END = Date.UTC(2026, 8, 20)
  const DAY = 86_400_000

  test.each([
    ['15 days before', '2026-09-20', END - 15 * DAY, false],
    ['14 days before', '2026-09-20', END - 14 * DAY, true],
    ['never for a placeholder', '2098-12-31', Date.UTC(2098, 11, 30), false],
  ])('the end of a model is announced only within 14 days: %s', (_when, day, now, announced) => {
    const run = { ...runOf([GOOD]), expirations: { a: day } }
    expect(deprecationOf(run, 'a', now)).toEqual(
      announced ? { deprecatedAt: END - 14 * DAY, sunsetAt: END } : null,
    )
  })

  test('a stored run knows the ends of its ranked models', () => {
    const ending = { ...GOOD, model: catalogueModel('maker/good:free', { expirationDay: '2026-09-01' }) }
    const run = runOf([ending, WEAK])
    expect(deprecationOf(run, 'maker/good:free', RUN_AT)?.sunsetAt).toBe(Date.UTC(2026, 8, 1))
    expect(deprecationOf(run, 'other/weak:free', RUN_AT)).toBeNull()
    expect(deprecationOf(run, 'toString', RUN_AT)).toBeNull()
    const { expirations: _expirations, ...older } = run
    expect(deprecationOf(older, 'maker/good:free', RUN_AT)).toBeNull()
  })
})
