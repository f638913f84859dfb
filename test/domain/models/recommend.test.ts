import { describe, expect, test } from 'vitest'
import {
  describeMove,
  hasSameContent,
  joinNames,
  nextRankingVersion,
  seedRun,
} from '../../../src/domain/models/recommend.ts'
import { publishedText } from '../../../src/domain/models/schema.ts'
import { candidate, evaluation, RUN_AT, sampleCandidates, sampleRun } from './free-models.ts'

describe('the notes', () => {
  const before = sampleRun({ rankingVersion: '2026-08-21.v1' })

  test('the notes report when nothing moved', () => {
    const { notes } = sampleRun({ previous: before })
    expect(notes.slice(3)).toEqual(['The primary is the same as in 2026-08-21.v1.'])
  })

  test('the notes report the new primary, the moves with their causes, and the models that entered and left', () => {
    const [good, ...others] = sampleCandidates()
    if (!good) throw new Error('the sample has four models')
    const run = sampleRun({
      rankingVersion: '2026-08-22.v1',
      previous: before,
      candidates: [
        { ...good, evaluation: evaluation(RUN_AT, [0, 0, 0], false), failuresIn72h: 1 },
        ...others.slice(0, 2),
        candidate('brand/new:free', {
          health: { status: 'failed', latencyMs: null, rateLimitKind: 'none', checkedAt: RUN_AT },
        }),
      ],
      rejections: [{ id: 'maker/glitch', reason: 'zero_price_without_suffix' }],
      notes: ['The daily limit of the account was met.'],
    })
    expect(run.notes.slice(3)).toEqual([
      'The daily limit of the account was met.',
      'Not candidates, because they are free without the free suffix (a price error or a preview): maker/glitch.',
      'The primary changed from maker/good (free) to maker/talker (free) since 2026-08-21.v1.',
      expect.stringMatching(
        /^maker\/good \(free\) fell from 1 to \d: test -750, instability penalty \+25\.$/,
      ),
      'maker/talker (free) rose from 2 to 1: its score is the same, others moved.',
      expect.stringMatching(/^New in the ranking: brand\/new \(free\) \(rank \d\)\.$/),
      'No longer ranked: third/new (free) (was 4).',
    ])
  })

  test('the notes describe five moves, those of the old and the new primary first and then the longest, and count the others', () => {
    const field = (order: string) =>
      order
        .split('')
        .map((letter, place) =>
          candidate(`m/${letter}:free`, { evaluation: evaluation(RUN_AT, [350 - 10 * place, 300, 100]) }),
        )
    const previous = sampleRun({ candidates: field('abcdefgh') })
    const { notes } = sampleRun({ candidates: field('bahgcdef'), previous })
    expect(notes.slice(4).map((note) => note.split(':')[0])).toEqual([
      'm/b (free) rose from 2 to 1',
      'm/a (free) fell from 1 to 2',
      'm/h (free) rose from 8 to 3',
      'm/g (free) rose from 7 to 4',
      'm/c (free) fell from 3 to 5',
      '3 more moved.',
    ])
    const names = 'abcdefghijk'.split('')
    expect(joinNames(names.slice(1))).toBe('b, c, d, e, f, g, h, i, j, k')
    expect(joinNames(names)).toBe('a, b, c, d, e, f, g, h, i, j and 1 more')
  })
})

test('the seed is ranked by facts alone', () => {
  expect(seedRun().models.map(({ id, score }) => `${id} ${score}`)).toEqual([
    'z-ai/glm-5.2:free 677',
    'nvidia/nemotron-3-ultra-550b-a55b:free 664',
    'nvidia/nemotron-3-super-120b-a12b:free 644',
    'cohere/north-mini-code:free 543',
    'google/gemma-4-31b-it:free 522',
  ])
})

test.each([
  [1, 2, -10, 'rose from 2 to 1: metadata -10, others moved.'],
  [1, 2, 10, 'rose from 2 to 1: metadata +10.'],
  [2, 1, 10, 'fell from 1 to 2: metadata +10, others moved.'],
  [2, 1, 0, 'fell from 1 to 2: its score is the same, others moved.'],
])('a move to rank %i from %i with %i points more is described by its cause', (rank, before, more, text) => {
  const [model] = sampleRun().models
  if (!model) throw new Error('the sample has four models')
  const moved = { ...model, rank, metadataScore: model.metadataScore + more }
  expect(describeMove(moved, { ...model, rank: before })).toBe(`maker/good:free ${text}`)
})

test.each([
  ['at another time of the day', { updatedAt: '2026-08-22T23:59:59.999Z' }, true],
  ['on another day', { updatedAt: '2026-08-23T00:00:00.000Z' }, false],
  ['by a clock that was set back', { updatedAt: '2026-08-22T02:00:00.000Z' }, false],
  ['with another confidence', { rankingConfidence: 'high' }, false],
] as const)('the same ranking %s has the same content or not', (_when, changes, same) => {
  expect(hasSameContent(sampleRun(), { ...sampleRun(), ...changes })).toBe(same)
})

test.each([
  [[], '2026-08-22.v1'],
  [['2026-08-21.v7'], '2026-08-22.v1'],
  [['2026-08-22.v1', '2026-08-22.v10', '2026-08-22.v2', 'stray'], '2026-08-22.v11'],
])('after the versions %j comes %s', (versions, next) => {
  expect(nextRankingVersion('2026-08-22', versions)).toBe(next)
})

describe('published text', () => {
  test('published text is cut by code point, never inside one', () => {
    expect(publishedText('😀😀😀', 2)).toBe('😀…')
    expect(publishedText('😀😀', 2)).toBe('😀😀')
    expect(publishedText('a\u0007\ud800b', 9)).toBe('a \ufffdb')
  })
})
