import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { formatInstant } from '../../../src/domain/time.ts'
import { examineWhole, proveBytes, yearSealer } from '../../../src/domain/year/envelope.ts'
import type { SealedYear } from '../../../src/domain/year/envelope.ts'
import { examineBytes, examineSummary, summarizeBytes } from '../../../src/domain/year/examine.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import type { Manifest } from '../../../src/domain/year/ledger.ts'
import { coverageOf } from '../../../src/domain/year/rank.ts'
import type { YearEvent } from '../../../src/domain/year/rank.ts'
import type { YearEnvelope, YearFeed } from '../../../src/domain/year/schema.ts'
import { anyText } from '../../support/any-text.ts'
import { identityOf, isDamaged, manifest } from './ledger-rows.ts'
import { AS_OF_DAY, rankedYear, yearEvent, yearEvents } from './year-events.ts'

/** Something in every list: all news sources, a hype cohort of five, a small one, unverified rows, an image. */
const EVENTS = [
  ...yearEvents('hn', 3),
  yearEvent({ sourceId: '4', title: 'stored before sources were asked', titleProvenance: null }),
  ...yearEvents('lobsters', 2, (index) => ({ comments: index === 0 ? null : 7 })),
  ...yearEvents('lesswrong', 2, () => ({ url: null, title: 'Größe “quoted” \\ 漢字 😀' })),
  ...yearEvents('hype:github', 5, (index) => ({ sourceId: `owner/repo-${index}`, comments: null })),
  ...yearEvents('hype:reddit', 4),
  yearEvent({ source: 'hype:replicate', titleProvenance: null }),
  ...yearEvents('midjourney', 2, () => ({ url: null })),
]

function sealed(events: readonly YearEvent[]): SealedYear {
  const window = windowEnding(AS_OF_DAY)
  const titles = new Map([['hn-4', { title: 'as its source gives it', provenance: 'hn:firebase-item' }]])
  const ranked = rankedYear(events, titles)
  const observed = [{ source: 'hn', days: ['2025-11-05', AS_OF_DAY], events: 6 }]
  const generatedAt = Date.UTC(2026, 2, 15, 0, 5, 0, 7)
  return yearSealer(window, ranked, coverageOf(window, observed, ranked), generatedAt)(generatedAt + 1993)
}

const SEALED = sealed(EVENTS)
const TEXT = new TextDecoder('utf-8', { fatal: true }).decode(SEALED.bytes)
const LISTS = ['hackerNews', 'lobsters', 'lessWrong', 'hypeReplicate', 'popular', 'midjourney'] as const

/** The stored text, parsed again. */
const stored: YearEnvelope = JSON.parse(TEXT)

/** True when the bytes of a manifest are refused as damaged. */
const areDamaged = (...given: Parameters<typeof proveBytes>): boolean => isDamaged(() => proveBytes(...given))

/** A manifest with digest and size of other bytes, so that only what they say can be wrong. */
function resealed(content: Uint8Array | string, base = SEALED.manifest): [Manifest, Uint8Array] {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return [{ ...base, sha256: sha256Hex(bytes), byteSize: bytes.byteLength }, bytes]
}

describe('sealed bytes', () => {
  test('sealed bytes are at most 8 MiB', () => {
    /** A hundred verified events whose titles are as long as given, in one column and in `popular`. */
    const sealedWithTitles = (length: number) =>
      sealed(yearEvents('hn', 100, (index) => ({ title: `${index} ${'x'.repeat(length)}` })))
    expect(sealedWithTitles(40_000).bytes.byteLength).toBeGreaterThan(7 * 1024 * 1024)
    expect(() => sealedWithTitles(42_000)).toThrow(
      /^the publication has 8\d{6} bytes; the maximum is 8388608$/,
    )
  })

  test('sealed bytes are UTF-8 JSON without white space, in the order of the contract', () => {
    expect(JSON.stringify(stored)).toBe(TEXT)
    expect(TEXT).toContain('Größe “quoted” \\\\ 漢字 😀')
    const orderOf = (value: object): string => Object.keys(value).join(' ')
    expect(orderOf(stored)).toBe(
      'schemaVersion kind publicationId algorithmVersion asOfDay generatedAt windowStart windowEnd coverage feed archivedAt',
    )
    expect(orderOf(stored.coverage)).toBe(
      'targetDays materializedDays complete firstDay lastDay missingDays sources excludedCohorts unverified',
    )
    expect(orderOf(stored.feed)).toBe(`${LISTS.join(' ')} github virality`)
    const rest =
      'sourceId rank title url discussionUrl points comments publishedAt percentile event_title_verified title_provenance'
    for (const list of LISTS) {
      const fields = `key source ${list === 'hypeReplicate' ? 'provider ' : ''}${rest}`
      expect(new Set(stored.feed[list].map(orderOf))).toEqual(new Set([fields]))
    }
  })

  test('sealed bytes contain their id, the window, their times and the provenance of titles', () => {
    expect(stored).toMatchObject({
      publicationId: 'top-year-v3-2026-03-14',
      asOfDay: AS_OF_DAY,
      generatedAt: '2026-03-15T00:05:00.007Z',
      windowStart: '2025-03-15T00:00:00.000Z',
      windowEnd: '2026-03-15T00:00:00.000Z',
      archivedAt: '2026-03-15T00:05:02.000Z',
      feed: { github: { status: 'collecting', items: [] } },
    })
    const [{ title, title_provenance: provenance } = {}] = stored.feed.lobsters
    expect([title, provenance]).toEqual(['lobsters 1', 'lobsters:test-api'])
  })

  test('the virality of every item but images is its percentile with two decimals', () => {
    const shown = LISTS.slice(0, 5).flatMap((list) => stored.feed[list].map(({ key }) => key))
    expect(Object.keys(stored.feed.virality).toSorted()).toEqual([...new Set(shown)].toSorted())
    // The last items of Popular are not in their column.
    const sameLink = (index: number) => (index < 60 ? { url: 'https://example.com/same' } : {})
    const { feed } = sealed(yearEvents('hn', 180, sameLink)).envelope
    expect(feed.popular.at(-1)?.key).toBe('hn-159')
    expect(Object.keys(feed.virality)).toHaveLength(159)
    expect(feed.virality['hn-159']).toBe(11.94)
  })
})

describe('stored bytes', () => {
  const { manifest: named, bytes } = SEALED

  test('proved bytes are returned unchanged, with any spelling of their JSON', () => {
    expect(proveBytes(named, bytes)).toBe(bytes)
    expect(areDamaged(...resealed(JSON.stringify(stored, null, 2)))).toBe(false)
  })

  test('stored bytes are damaged when they are missing, shorter, longer or changed', () => {
    const longer = new Uint8Array([...bytes, 0x0a])
    for (const other of [null, new Uint8Array(), bytes.subarray(0, -1), longer, bytes.with(9, 0)])
      expect(areDamaged(named, other)).toBe(true)
  })

  test.each(Object.keys(named))('stored bytes are damaged when the manifest differs in %s', (field) => {
    const value = named[field as keyof Manifest]
    const other = typeof value === 'number' ? value + 1 : `${value}x`
    expect(areDamaged({ ...named, [field]: other }, bytes)).toBe(true)
  })

  const [item] = stored.feed.hackerNews

  test.each<[string, Partial<Record<keyof YearFeed, unknown>>]>([
    ['a list is longer than 100', { popular: Array.from({ length: 101 }, () => item) }],
    ['the code-hosting section is filled', { github: { status: 'collecting', items: [item] } }],
    ['the code-hosting section is not collecting', { github: { status: 'ready', items: [] } }],
    ['a virality is over 100', { virality: { 'hn-1': 100.01 } }],
    ['an item has no title', { hackerNews: [{ ...item, title: '' }] }],
    ...LISTS.flatMap((list): [string, object][] => [
      [`a title of ${list} is not verified`, { [list]: [{ ...item, event_title_verified: false }] }],
      [`a title of ${list} has no provenance`, { [list]: [{ ...item, title_provenance: '' }] }],
    ]),
  ])('stored bytes of version 3 are damaged when %s', (_, change) => {
    const changed = { ...stored, feed: { ...stored.feed, ...change } }
    expect(areDamaged(...resealed(JSON.stringify(changed)))).toBe(true)
  })
})

/** An imported publication, whose payload nobody looks into. */
const V2 = manifest('2026-01-03', { algorithmVersion: 'top-year-v2', schemaVersion: 2 })
const SCALARS = identityOf(V2)
const ARCHIVED_AT = formatInstant(V2.publishedAt)
const imported = (changes: object = {}, archivedAt = ARCHIVED_AT): string =>
  JSON.stringify({ ...SCALARS, ...changes, coverage: { days: 1 }, feed: { hackerNews: [] }, archivedAt })
const codes = (text: string): string[] => examineBytes(...resealed(text, V2)).map(({ code }) => code)

describe('the identity of stored bytes', () => {
  test('the identity of a sealed version 3 holds, by its ends as by the whole', () => {
    const { manifest: named, bytes } = SEALED
    expect([examineSummary(named, summarizeBytes(bytes)), examineWhole(named, bytes)]).toEqual([[], []])
  })

  const again = `,"publicationId":${JSON.stringify(V2.publicationId)},"archivedAt"`

  test.each([
    ['indented, with a trailing newline', `${JSON.stringify(JSON.parse(imported()), null, 2)}\n`],
    ['with a number written as 2.0', imported().replace('"schemaVersion":2', '"schemaVersion":2.0')],
    ['with an escaped letter', imported().replace('"kind":"t', '"kind":"\\u0074')],
    ['with a member twice, the last one right', `{"kind":"other",${imported().slice(1)}`],
    ['with a member again at the end', imported({ publicationId: 'old' }).replace(',"archivedAt"', again)],
    ['with archivedAt among the first', JSON.stringify({ archivedAt: ARCHIVED_AT, ...SCALARS, feed: {} })],
  ])('the identity holds %s', (_how, text) => {
    expect(codes(text)).toEqual([])
    expect(areDamaged(...resealed(text, V2))).toBe(false)
  })

  test.each(Object.entries(SCALARS))('the identity names the member %s when it differs', (name, value) => {
    const other = typeof value === 'number' ? value + 1 : `${value}x`
    const text = imported({ [name]: other })
    const problem = { code: 'identity_mismatch', actual: `${name} ${JSON.stringify(other)}` }
    expect(examineBytes(...resealed(text, V2))).toMatchObject([problem])
  })

  test.each([
    ['another archivedAt', imported({}, '2026-01-01T00:00:00.000Z'), 1],
    ['the last of two members of one name', imported().replace('"asOfDay"', '"kind":"other","asOfDay"'), 1],
    ['no member at all', '{}', 9],
  ])('the identity names the difference by %s', (_what, text, count) => {
    expect(codes(text)).toEqual(Array(count).fill('identity_mismatch'))
  })

  // A form feed and a no-break space are no white space of JSON.
  const spaced = ['\f', '\xa0'].flatMap((character) =>
    [',"kind"', ',"archivedAt"'].map((name) => imported().replace(name, `,${character}${name.slice(1)}`)),
  )

  test.each([...spaced, '', 'null', '[]', '{', '\uFEFF{}', '{"a":1}}'])('%j is not an envelope', (text) => {
    expect(codes(text)).toEqual(['envelope_invalid'])
  })

  test('bytes that are not UTF-8 are not an envelope', () => {
    const [named, bytes] = resealed(Buffer.from(imported().replace('top-year', '\xc3'), 'latin1'), V2)
    expect(examineBytes(named, bytes)).toMatchObject([{ code: 'envelope_invalid' }])
  })

  test('the identity from the ends equals the one from the whole, whatever the members contain', () => {
    const text = fc.oneof(anyText(), fc.constantFrom('"', '\\', '{', '}', '\u2028', ' '))
    const value = fc.oneof(text, fc.integer(), fc.double({ noNaN: true }), fc.constant(null))
    const member = fc.constantFrom(...Object.keys(SCALARS), 'coverage', 'feed', 'archivedAt')
    fc.assert(
      fc.property(fc.dictionary(member, value), fc.integer({ min: 0, max: 2 }), (changes, indent) => {
        const json = JSON.stringify({ ...(JSON.parse(imported()) as object), ...changes }, null, indent)
        const [named, bytes] = resealed(json, V2)
        expect(examineBytes(named, bytes)).toEqual(examineWhole(named, bytes))
      }),
    )
  })
})
