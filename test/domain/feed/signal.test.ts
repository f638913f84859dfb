import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseSignal } from '../../../src/domain/feed/signal.ts'
import type { ParsedSignal } from '../../../src/domain/feed/signal.ts'

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

type Field = keyof typeof ROW | 'titleProvenance'

/** The row with one field set to any JSON value. */
function rowWith(field: Field, value: unknown): unknown {
  return { ...ROW, [field]: value }
}

function rowWithout(field: keyof typeof ROW): unknown {
  return Object.fromEntries(Object.entries(ROW).filter(([name]) => name !== field))
}

function signalOf(parsed: ParsedSignal) {
  if (parsed.kind !== 'signal') throw new Error(JSON.stringify(parsed))
  return parsed.signal
}

function reasonOf(parsed: ParsedSignal): string {
  if (parsed.kind !== 'bad') throw new Error(`not refused: ${JSON.stringify(parsed)}`)
  return parsed.reason
}

const json = (value: unknown): string => JSON.stringify(value) ?? 'undefined'

test('reads a row of every field, the times as epoch milliseconds', () => {
  expect(parseSignal({ ...ROW, titleProvenance: 'hn:firebase-item' }, null)).toEqual({
    kind: 'signal',
    vouched: false,
    signal: { ...ROW, publishedAt: Date.UTC(2026, 2, 13, 10), titleProvenance: 'hn:firebase-item' },
  })
})

test('reads nulls where they are allowed and a missing provenance as a legacy row', () => {
  const row = { ...ROW, url: null, points: null, comments: null, publishedAt: null }
  expect(parseSignal(row, null)).toEqual({
    kind: 'signal',
    vouched: false,
    signal: { ...row, titleProvenance: null },
  })
})

test('ignores fields it does not know', () => {
  const signal = signalOf(parseSignal({ ...ROW, rank: 1, observedAt: 'x', kind: {}, vouched: true }, null))
  expect(signal).toEqual(signalOf(parseSignal(ROW, null)))
})

test('keeps every valid row verbatim', () => {
  const textual = fc
    .string({ unit: 'grapheme' })
    .filter((text) => !text.includes('\0') && text.isWellFormed())
  const integers = fc.option(fc.integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }))
  const rows = fc.record({
    source: fc.constantFrom('hn', 'lobsters', 'lesswrong', 'midjourney', 'github', 'hype:github', 'hype:new'),
    sourceId: textual.filter((text) => text !== ''),
    day: fc.constantFrom('2024-02-29', '2026-01-01'),
    title: textual.filter((text) => text.trim() !== ''),
    url: fc.option(fc.webUrl({ withQueryParameters: true, withFragments: true })),
    points: integers,
    comments: integers,
  })
  fc.assert(
    fc.property(rows, (row) => {
      const parsed = parseSignal({ ...row, publishedAt: null }, null)
      expect(signalOf(parsed)).toEqual({ ...row, publishedAt: null, titleProvenance: null })
    }),
  )
})

test('never throws and never accepts what is not an object', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const parsed = parseSignal(value, null)
      if (typeof value !== 'object' || value === null || Array.isArray(value)) expect(parsed.kind).toBe('bad')
    }),
  )
  for (const value of [null, [], [ROW], 'x', 5, true, undefined]) {
    expect(reasonOf(parseSignal(value, null))).toMatch(/object/)
  }
})

describe('the sizes of a row', () => {
  /** 4,096 bytes of UTF-8 in fewer characters. */
  const longestUrl = `https://example.com/${'é'.repeat(2_038)}`
  const longestProvenance = `hn:${'x'.repeat(253)}`

  test('a title of 1,000 code points, a URL of 4,096 bytes and a provenance of 256 characters are kept', () => {
    const title = '😀'.repeat(1_000)
    const row = { ...ROW, title, url: longestUrl, titleProvenance: longestProvenance }
    expect(signalOf(parseSignal(row, null))).toMatchObject({
      title,
      url: longestUrl,
      titleProvenance: longestProvenance,
    })
  })

  test.each([
    ['title', `${'😀'.repeat(1_000)}x`, 'title: is longer than 1000 characters'],
    ['title', 'x'.repeat(950_000), 'title: is longer than 1000 characters'],
    ['url', `${longestUrl}x`, 'url: is longer than 4096 bytes'],
    ['titleProvenance', `${longestProvenance}x`, 'titleProvenance: is longer than 256 characters'],
  ] as const)('a longer %s makes a bad row', (field, value, reason) => {
    expect(reasonOf(parseSignal(rowWith(field, value), null))).toBe(reason)
  })

  test('a longer provenance that vouches for the whole file makes bad rows', () => {
    expect(reasonOf(parseSignal(ROW, `${longestProvenance}x`))).toBe(
      'titleProvenance: is longer than 256 characters',
    )
  })
})

describe('a bad row is refused with the name of the field', () => {
  const bad: [Field, unknown[]][] = [
    ['source', [null, 5, {}, ['hn']]],
    ['sourceId', ['', 42, null, {}]],
    ['day', ['', '2026-02-30', '2026-3-1', '2026-03-14T00:00:00Z', ' 2026-03-14', 20260314, null]],
    ['title', ['', ' ', ' \t\n\u00a0\u3000', 5, null]],
    [
      'url',
      [
        '',
        'example.com',
        '/a',
        '//example.com/a',
        'ftp://example.com/',
        'javascript:alert(1)',
        'mailto:a@b.c',
      ],
    ],
    ['url', ['https://', 'http://exa mple.com/', 'https://[::1', 5, {}]],
    ['points', [1.5, '5', 2 ** 53, -(2 ** 53), 1e300, true, {}, '']],
    ['comments', [0.1, '0', 2 ** 53, false, []]],
    [
      'publishedAt',
      ['', '2026-03-13', '2026-03-13T10:00:00', '2026-02-30T00:00:00Z', 'yesterday', 1773396000000],
    ],
    ['publishedAt', ['2026-03-13T24:00:00Z', '2026-03-13T23:59:60Z']],
    ['titleProvenance', ['', 'hn', 'hn:', 'hn: ', ':x', 'x:hn', 'HN:x', 'hnx:y', ' hn:x', 5, null, {}]],
  ]
  const cases = bad.flatMap(([field, values]) => values.map((value) => [field, json(value), value] as const))

  test.each(cases)('%s %s', (field, _, value) => {
    expect(reasonOf(parseSignal(rowWith(field, value), null))).toMatch(new RegExp(`^${field}: `))
  })

  const required = ['source', 'sourceId', 'day', 'title', 'url', 'points', 'comments', 'publishedAt'] as const
  test.each(required)('%s missing', (field) => {
    expect(reasonOf(parseSignal(rowWithout(field), null))).toMatch(new RegExp(`^${field}: `))
  })

  const textFields = ['sourceId', 'day', 'title', 'url', 'publishedAt', 'titleProvenance'] as const
  test.each(textFields)('%s with a NUL character', (field) => {
    const value = field === 'titleProvenance' ? 'hn:a\0b' : `${ROW[field]}\0`
    expect(reasonOf(parseSignal(rowWith(field, value), null))).toMatch(new RegExp(`^${field}: `))
  })

  test.each(textFields)('%s with half of a surrogate pair', (field) => {
    for (const half of ['\ud83d', '\ude00', '\ude00\ud83d']) {
      const value = field === 'titleProvenance' ? `hn:${half}` : `${ROW[field]}${half}`
      expect(reasonOf(parseSignal(rowWith(field, value), null))).toMatch(new RegExp(`^${field}: `))
    }
  })

  test('every bad field of a row is named', () => {
    const reason = reasonOf(parseSignal({ ...ROW, title: '', points: '5', comments: 1.5 }, null))
    expect(reason).toMatch(/title: .*points: .*comments: /)
  })
})

describe('numbers', () => {
  test.each([0, -3, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])(
    '%d is a count like any other',
    (value) => {
      const signal = signalOf(parseSignal({ ...ROW, points: value, comments: value }, null))
      expect([signal.points, signal.comments]).toEqual([value, value])
    },
  )
})

describe('the save key', () => {
  test.each([
    ['hn', 'hn-'],
    ['lesswrong', 'lesswrong-'],
    ['hype:huggingface', 'hype-huggingface-'],
  ])('of %s may have 132 characters and not 133', (source, prefix) => {
    const longest = 'x'.repeat(132 - prefix.length)
    expect(signalOf(parseSignal({ ...ROW, source, sourceId: longest }, null)).sourceId).toBe(longest)
    expect(reasonOf(parseSignal({ ...ROW, source, sourceId: `${longest}x` }, null))).toMatch(
      /^sourceId: .*133/,
    )
  })

  test('is counted in code points, not in code units or bytes', () => {
    const longest = '😀'.repeat(129)
    expect(signalOf(parseSignal({ ...ROW, sourceId: longest }, null)).sourceId).toBe(longest)
    expect(reasonOf(parseSignal({ ...ROW, sourceId: `${longest}😀` }, null))).toMatch(/^sourceId: .*133/)
  })
})

describe('sources', () => {
  test.each(['hype:civitai', 'hype:some-new-provider', 'hype:4chan'])('%s is stored', (source) => {
    expect(signalOf(parseSignal({ ...ROW, source }, null)).source).toBe(source)
  })

  test.each(['producthunt', 'HN', 'hype:', 'hype:Big', 'hype:a:b', 'hype', '__proto__'])(
    '%s is reported by name, whatever else the row holds',
    (source) => {
      expect(parseSignal({ ...ROW, source }, null)).toEqual({ kind: 'unknown-source', source })
      expect(parseSignal({ source }, 'hn:archive')).toEqual({ kind: 'unknown-source', source })
    },
  )
})

describe('provenance', () => {
  test.each([
    ['hn', 'hn:firebase-item'],
    ['hype:github', 'hype:github:search'],
    ['hype:reddit', 'hype:reddit:a:b c'],
    ['midjourney', 'midjourney:list'],
  ])('of %s may be %s', (source, titleProvenance) => {
    const parsed = parseSignal({ ...ROW, source, titleProvenance }, null)
    expect(signalOf(parsed).titleProvenance).toBe(titleProvenance)
  })

  test.each([
    ['hn', 'lobsters:json'],
    ['lobsters', 'hn:firebase-item'],
    ['hype:github', 'github:search'],
    ['hype:github', 'hype:reddit:search'],
    ['hype:github', 'hype:github'],
    ['hype:git', 'hype:github:search'],
    ['github', 'hype:github:search'],
  ])('of %s is not %s', (source, titleProvenance) => {
    expect(reasonOf(parseSignal({ ...ROW, source, titleProvenance }, null))).toMatch(/^titleProvenance: /)
  })

  test('given for a whole file vouches for a row that has none', () => {
    const parsed = parseSignal(ROW, 'hn:page-archive')
    expect(parsed).toMatchObject({
      kind: 'signal',
      vouched: true,
      signal: { titleProvenance: 'hn:page-archive' },
    })
  })

  test("given for a whole file does not override a row's own", () => {
    const parsed = parseSignal({ ...ROW, titleProvenance: 'hn:firebase-item' }, 'hn:page-archive')
    expect(parsed).toMatchObject({ vouched: false, signal: { titleProvenance: 'hn:firebase-item' } })
  })

  test("given for a whole file does not mend a row's own bad one", () => {
    const parsed = parseSignal({ ...ROW, titleProvenance: 'lobsters:json' }, 'hn:page-archive')
    expect(reasonOf(parsed)).toMatch(/^titleProvenance: /)
  })

  test('given for a whole file cannot vouch for a row of another source', () => {
    expect(reasonOf(parseSignal({ ...ROW, source: 'lobsters' }, 'hn:page-archive'))).toMatch(
      /^titleProvenance: /,
    )
    const own = parseSignal(
      { ...ROW, source: 'lobsters', titleProvenance: 'lobsters:json' },
      'hn:page-archive',
    )
    expect(own).toMatchObject({ kind: 'signal', vouched: false })
  })
})
