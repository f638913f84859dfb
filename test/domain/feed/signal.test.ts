import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyText } from '../../support/any-text.ts'
import { parseSignal } from '../../../src/domain/feed/signal.ts'

const ROW = {
  source: 'hn',
  sourceId: '42',
  day: '2026-03-14',
  title: 'A title',
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

  test('a valid row is kept verbatim', () => {
    const textual = anyText().filter((text) => !text.includes('\0') && text.isWellFormed())
    const integers = fc.option(fc.maxSafeInteger())
    const rows = fc.record({
      source: fc.constantFrom(
        'hn',
        'lobsters',
        'lesswrong',
        'midjourney',
        'github',
        'hype:github',
        'hype:new',
      ),
      sourceId: textual.filter((text) => text !== ''),
      day: fc.constantFrom('2024-02-29', '2026-01-01'),
      title: textual.filter((text) => text.trim() !== ''),
      url: fc.option(anyText().map((text) => `https://example.org/a?q=${encodeURIComponent(text)}#b`)),
      points: integers,
      comments: integers,
      publishedAt: fc.constant(null),
    })
    fc.assert(
      fc.property(rows, (row) => {
        expect(parseSignal(row, null)).toMatchObject({ signal: { ...row, titleProvenance: null } })
      }),
    )
  })

  test('any JSON can be parsed as a row, and is bad when it is not an object', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
        if (isObject) parseSignal(value, null)
        else expect(parseSignal(value, null)).toMatchObject(bad(/object/))
      }),
    )
    expect(parseSignal(undefined, null)).toMatchObject(bad(/object/))
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

describe('a source', () => {
  test('the unknown source producthunt is reported by name, whatever else the row holds', () => {
    expect(parse({ source: 'producthunt' })).toEqual({ kind: 'unknown-source', source: 'producthunt' })
    expect(parseSignal({ source: 'producthunt' }, 'hn:archive')).toEqual({
      kind: 'unknown-source',
      source: 'producthunt',
    })
  })
})

describe('a provenance', () => {
  test.each([['hn', 'hn:firebase-item']])('a provenance of %s may be %s', (source, titleProvenance) => {
    expect(parse({ source, titleProvenance })).toMatchObject({ signal: { titleProvenance } })
  })

  test.each([['hn', 'lobsters:json']])('a provenance of %s is not %s', (source, titleProvenance) => {
    expect(parse({ source, titleProvenance })).toMatchObject(badField('titleProvenance'))
  })

  const whole = 'hn:page-archive'
  test.each([
    [
      "does not override a row's own",
      { titleProvenance: 'hn:firebase-item' },
      { vouched: false, signal: { titleProvenance: 'hn:firebase-item' } },
    ],
  ])('a provenance for a whole file %s', (_what, changes, parsed) => {
    expect(parse(changes, whole)).toMatchObject(parsed)
  })
})
