import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  ARTICLE_MAX_LENGTH,
  ARTICLE_TRIES,
  laneOf,
  parseArticle,
  textLocations,
  plainText,
  planNextAttempt,
} from '../../../src/domain/feed/article.ts'
import type { ArticleReading } from '../../../src/domain/feed/article.ts'
import { DAY_MS } from '../../../src/domain/time.ts'

describe('a row of article texts', () => {
  const ROW = {
    key: 'hype-github-owner/name',
    text: '\nSome text: <p> \u200B',
    fetchedAt: '2026-03-01T10:00:00+01:00',
    provenance: 'page:readability https://example.org/',
  }

  test('a row becomes an article with plain text', () => {
    const items = [{ source: 'hype:github', sourceId: 'owner/name' }]
    const [fetchedAt, { provenance }] = [Date.parse('2026-03-01T09:00:00Z'), ROW]
    const article = { items, text: 'Some text: <p>', fetchedAt, provenance }
    expect(parseArticle({ ...ROW, extra: 1 })).toEqual({ kind: 'article', article })
  })

  test.each([
    [[], 'not a JSON object'],
    [{ ...ROW, key: 'digg-1' }, 'key: must be a save key'],
    [{ ...ROW, text: ' \u200B ' }, 'text: is empty'],
    [{ ...ROW, fetchedAt: '2026-03-01T10:00:00' }, 'fetchedAt: must be'],
    [{ ...ROW, provenance: ' ' }, 'provenance: is empty'],
    [{ ...ROW, provenance: 'x'.repeat(4_097) }, 'provenance: is longer than 4096'],
  ])('the row %.200j is bad, %s', (row, reason) => {
    expect(parseArticle(row)).toEqual({ kind: 'bad', reason: expect.stringContaining(reason) as string })
  })
})

describe('the next try', () => {
  const ITEM = { source: 'hn', sourceId: '1', url: 'https://example.org/', tries: 0 }
  const AT = 1_000_000
  const HOUR = 3_600_000

  type Reading = Exclude<ArticleReading, { kind: 'text' }>
  const failed = (notBefore: number | null = null): Reading => ({ kind: 'failed', reason: 'r', notBefore })
  const skipped = (why: 'robots' | 'busy', notBefore: number | null = null): Reading => ({
    kind: 'skipped',
    why,
    detail: 'd',
    notBefore,
  })

  test('the record of a failed attempt has the item, the reason and the times', () => {
    const { url: _url, ...item } = ITEM
    const next = { ...item, tries: 1, reason: 'r', triedAt: AT, nextTryAt: AT + 6 * HOUR }
    expect(planNextAttempt(ITEM, failed(), AT)).toEqual(next)
    expect(planNextAttempt(ITEM, skipped('robots'), AT).reason).toBe('robots: d')
  })

  test.each<[string, number, Reading, number, number | null]>([
    ['after two failed ones comes later still', 2, failed(), 3, AT + 4 * DAY_MS],
    ['never comes after the last', ARTICLE_TRIES - 1, failed(AT + DAY_MS), ARTICLE_TRIES, null],
    ['of what a site declines is a week away', 0, skipped('robots'), 1, AT + 7 * DAY_MS],
    ['waits no longer than a month', 0, failed(AT + 400 * DAY_MS), 1, AT + 30 * DAY_MS],
    ['is not counted before an item was asked for', 2, skipped('busy', AT + 5), 2, AT + 5],
  ])('the next attempt %s', (_what, made, reading, tries, nextTryAt) => {
    expect(planNextAttempt({ ...ITEM, tries: made }, reading, AT)).toMatchObject({ tries, nextTryAt })
  })
})

test.each([
  ['hn', null, ['source']],
  ['lesswrong', null, ['source']],
  ['lesswrong', 'https://example.org/', ['source', 'page']],
  ['hype:github', null, []],
])('the text of an item of %s with the link %s is read from %j', (source, url, places) => {
  expect(textLocations({ source, url })).toEqual(places)
})

test('items of one host or of one API share a lane', () => {
  const lane = (source: string, url: string | null): string => laneOf({ source, url })
  expect(lane('hn', 'https://example.org/a')).toBe(lane('lobsters', 'http://EXAMPLE.org:80/b'))
  expect(lane('hn', 'https://example.org/a')).not.toBe(lane('hn', 'https://www.example.org/a'))
  expect(lane('lesswrong', 'https://example.org/a')).toBe(lane('lesswrong', null))
  expect(lane('hn', null)).not.toBe(lane('lobsters', null))
  expect(lane('hn', 'not a url')).toBe('url not a url')
})

describe('plain text', () => {
  /** Pieces that hostile texts are made of. */
  const PIECES = Array.from('<b> ä \n\r\t\u2028\u200B\u202E\uFEFF\u0000\u001B\uD800\u00A0').concat(
    '\u{E0041}',
    '\u{1F600}',
  )
  const hostile = fc.array(fc.constantFrom(...PIECES), { maxLength: 40 }).map((pieces) => pieces.join(''))

  test.each([
    ['paragraphs and lines', 'a\r\n\r\n\r\nb\u00A0c \t\rd\u2028e', 'a\n\nb c\nd\ne'],
    ['code', '\n \n  if x:\n\ty = "a  b"\n\n\n  z ', '  if x:\n\ty = "a  b"\n\n  z'],
    [
      'mentions of markup',
      'Task<object> <script>x</script> <!-- --> &lt; <b',
      'Task<object> <script>x</script> <!-- --> &lt; <b',
    ],
    ['escapes of a terminal', '\u001B[31mred\u0007', '[31mred'],
    ['halves of surrogate pairs', 'a\uD800b', 'a\uFFFDb'],
  ])('plain text of %s', (_what, text, plain) => {
    expect(plainText(text)).toBe(plain)
  })

  test('plain text is cut at its limit and never inside a character', () => {
    const long = plainText('😀'.repeat(ARTICLE_MAX_LENGTH + 5))
    expect([Array.from(long).length, long.isWellFormed()]).toEqual([ARTICLE_MAX_LENGTH, true])
    expect(plainText('x'.repeat(ARTICLE_MAX_LENGTH))).toHaveLength(ARTICLE_MAX_LENGTH)
    expect(plainText(`${'x'.repeat(ARTICLE_MAX_LENGTH - 1)} y`)).toBe('x'.repeat(ARTICLE_MAX_LENGTH - 1))
  })

  test('plain text contains nothing invisible, and converting it again changes nothing', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const plain = plainText(text)
        expect(plain).not.toMatch(/[\p{Default_Ignorable_Code_Point}\p{Cs}]|(?![\t\n])\p{Cc}/u)
        expect(plain).not.toMatch(/^\n|\s$|\n{3}|[ \t]\n|[^\S \t\n]/)
        expect(plainText(plain)).toBe(plain)
      }),
      { numRuns: 2_000 },
    )
  })
})
