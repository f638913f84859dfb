import { describe, expect, test } from 'vitest'
import { parseSignal } from '../../../src/domain/feed/signal.ts'

const ROW = {
  source: 'hn',
  sourceId: '42',
  day: '2026-03-14',
  title: ' A title: \u0301\n😀 ',
  url: 'https://example.com/a',
  points: 5,
  comments: 0,
  publishedAt: '2026-03-13T10:00:00Z',
}

const parse = (changes: object = {}, vouching: string | null = null) =>
  parseSignal({ ...ROW, ...changes }, vouching)
const bad = (reason: string | RegExp): object => ({
  kind: 'bad',
  reason: expect.stringMatching(reason) as string,
})
const badField = (field: string): object => bad(new RegExp(`^${field}: `))

describe('a row', () => {
  const fields = { ...ROW, publishedAt: Date.UTC(2026, 2, 13, 10) }

  test('every field of a row is parsed, times as epoch milliseconds, and others are ignored', () => {
    const titleProvenance = 'hn:firebase-item'
    const parsed = parse({ titleProvenance, rank: 1, observedAt: 'x', kind: {}, vouched: true })
    expect(parsed).toEqual({ kind: 'signal', vouched: false, signal: { ...fields, titleProvenance } })
  })

  test('a row may have nulls, and without a provenance is a legacy row', () => {
    const nulls = { url: null, points: null, comments: null, publishedAt: null }
    const signal = { ...ROW, ...nulls, titleProvenance: null }
    expect(parse(nulls)).toEqual({ kind: 'signal', vouched: false, signal })
  })

  test.each([undefined, null, 5, 'a', [[]]])('%j is not a row', (value) => {
    expect(parseSignal(value, null)).toMatchObject(bad(/object/))
  })

  test.each([
    ['titleProvenance', `hn:${'x'.repeat(253)}`, '256 characters'],
    ['url', `https://example.org/${'x'.repeat(4_076)}`, '4096 bytes'],
  ])('a row may have a %s of the greatest length, and no longer', (field, longest, most) => {
    expect(parse({ [field]: longest })).toMatchObject({ signal: { [field]: longest } })
    const reason = `${field}: is longer than ${most}`
    expect(parse({ [field]: `${longest}x` })).toEqual({ kind: 'bad', reason })
    if (field === 'titleProvenance') expect(parse({}, `${longest}x`)).toEqual({ kind: 'bad', reason })
  })

  test('a row of hn has a save key of at most 132 characters', () => {
    const prefix = 'hn-'
    for (const unit of ['x', '😀']) {
      const longest = unit.repeat(132 - prefix.length)
      expect(parse({ source: 'hn', sourceId: longest })).toMatchObject({ signal: { sourceId: longest } })
      expect(parse({ source: 'hn', sourceId: longest + unit })).toMatchObject(bad(/^sourceId: .*133/))
    }
  })
})

describe('the refusal of a bad row', () => {
  test.each<[string, unknown[]]>([
    ['source', [undefined, null, 5, {}, ['hn']]],
    ['sourceId', [undefined, '', 42, null, {}]],
    ['title', [undefined, '', ' ', ' \t\n\u00a0\u3000', 5, null]],
    ['titleProvenance', ['', 'hn', 'hn:', 'hn: ', ':x', 'x:hn', 'HN:x', 'hnx:y', ' hn:x', 5, null, {}]],
  ])('a bad row names the field: %s: %j', (field, values) => {
    for (const value of values)
      expect(parse({ [field]: value }), String(value)).toMatchObject(badField(field))
  })

  test('a bad row names the missing fields together', () => {
    const reason = 'day, url, points: missing; title: must be a text'
    expect(parse({ title: 5, day: undefined, url: undefined, points: undefined })).toEqual({
      kind: 'bad',
      reason,
    })
  })

  test('a bad row names the field: sourceId with a NUL character or half of a surrogate pair', () => {
    for (const hidden of ['\0', '\ud83d', '\ude00', '\ude00\ud83d'])
      expect(parse({ sourceId: `${ROW.sourceId}${hidden}` })).toMatchObject(badField('sourceId'))
  })
})

test('an unknown source is reported by name, whatever else the row holds', () => {
  const unknown = { kind: 'unknown-source', source: 'producthunt' }
  expect(parse({ source: 'producthunt' })).toEqual(unknown)
  expect(parseSignal({ source: 'producthunt' }, 'hn:archive')).toEqual(unknown)
})

test("a provenance is of the row's own source, and the one of a whole file does not override it", () => {
  for (const provenance of ['lobsters:json', 'hn:'])
    expect(parse({ titleProvenance: provenance })).toMatchObject(bad(`"${provenance}" must be hn:<channel>`))
  const titleProvenance = 'hn:firebase-item'
  const own = { vouched: false, signal: { titleProvenance } }
  expect(parse({ titleProvenance }, 'hn:page-archive')).toMatchObject(own)
})
