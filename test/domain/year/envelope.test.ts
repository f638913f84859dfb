import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { formatInstant } from '../../../src/domain/time.ts'
import { examineWhole, proveBytes, yearSealer } from '../../../src/domain/year/envelope.ts'
import { examineBytes, examineSummary, summarizeBytes } from '../../../src/domain/year/examine.ts'
import type { SealedYear } from '../../../src/domain/year/envelope.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import type { Manifest } from '../../../src/domain/year/ledger.ts'
import { coverageOf } from '../../../src/domain/year/rank.ts'
import type { YearEvent } from '../../../src/domain/year/rank.ts'
import type { YearEnvelope, YearFeed } from '../../../src/domain/year/schema.ts'
import {
  AS_OF_DAY,
  rankedYear,
  sampleEvents,
  sampleSealed,
  yearEvent,
  yearEvents,
} from '../../support/signals.ts'
import { manifest } from './ledger-rows.ts'
import { anyText } from '../../support/any-text.ts'

const SEALED = sampleSealed()
const TEXT = new TextDecoder('utf-8', { fatal: true }).decode(SEALED.bytes)
const LISTS = ['hackerNews', 'lobsters', 'lessWrong', 'hypeReplicate', 'popular', 'midjourney'] as const

/** The stored text, parsed again. */
const stored: YearEnvelope = JSON.parse(TEXT)

/** The publication of these events, of which every title is known. */
function sealOf(events: YearEvent[], asOfDay = AS_OF_DAY, generatedAt = 1, publishedAt = 2): SealedYear {
  const [window, ranked] = [windowEnding(asOfDay), rankedYear(events)]
  return yearSealer(window, ranked, coverageOf(window, [], ranked), generatedAt)(publishedAt)
}

/** True when it is refused as damaged. */
function isDamaged(named: Manifest, bytes: Uint8Array | null): boolean {
  try {
    proveBytes(named, bytes)
    return false
  } catch (error) {
    if (error instanceof Refusal && error.code === 'storage_damaged') return true
    throw error
  }
}

/** A manifest with digest and size of other bytes, so that only what they say can be wrong. */
function resealed(content: Uint8Array | string, base = SEALED.manifest): [Manifest, Uint8Array] {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return [{ ...base, sha256: sha256Hex(bytes), byteSize: bytes.byteLength }, bytes]
}

const isDamagedJson = (value: unknown): boolean => isDamaged(...resealed(JSON.stringify(value)))
const withFeed = (change: object): unknown => ({ ...stored, feed: { ...stored.feed, ...change } })

describe('sealed bytes', () => {
  test('sealed bytes are at most 8 MiB', () => {
    /** A hundred verified events whose titles are as long as given, in one column and in `popular`. */
    const sealedWithTitles = (length: number) =>
      sampleSealed(yearEvents('hn', 100, (index) => ({ title: `${index} ${'x'.repeat(length)}` })))
    expect(sealedWithTitles(40_000).bytes.byteLength).toBeGreaterThan(7 * 1024 * 1024)
    expect(() => sealedWithTitles(42_000)).toThrow(
      /^the publication has 8\d{6} bytes; the maximum is 8388608$/,
    )
  })

  test('sealed bytes are the same for the same arguments, in any order of the events', () => {
    const events = sampleEvents()
    fc.assert(
      fc.property(fc.shuffledSubarray(events, { minLength: events.length }), (shuffled) => {
        expect(new TextDecoder().decode(sampleSealed(structuredClone(shuffled)).bytes)).toBe(TEXT)
      }),
      { numRuns: 30 },
    )
  })

  test('sealed bytes are UTF-8 JSON without indentation, byte order mark or trailing newline', () => {
    expect([SEALED.bytes[0], SEALED.bytes.at(-1)]).toEqual([0x7b, 0x7d])
    expect(JSON.stringify(stored)).toBe(TEXT)
    expect(TEXT).not.toContain('\n')
    expect(TEXT).toContain('Größe “quoted” \\\\ 漢字 😀')
    expect(stored).toEqual(SEALED.envelope)
  })

  test('sealed bytes have their keys in the order of the contract, the provider for hype alone', () => {
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

  test('sealed items follow the rules, and the code-hosting section is empty', () => {
    expect(stored.feed.lobsters[0]).toEqual({
      key: 'lobsters-1',
      source: 'lobsters',
      sourceId: '1',
      rank: 1,
      title: 'lobsters 1',
      url: 'https://example.com/lobsters/1',
      discussionUrl: 'https://lobste.rs/s/1',
      points: 1000,
      comments: null,
      publishedAt: '2025-11-05T08:30:00.250Z',
      percentile: 0.75,
      event_title_verified: true,
      title_provenance: 'lobsters:test-api',
    })
    expect(stored.feed.hypeReplicate[1]).toMatchObject({
      key: 'hype-github-owner/repo-1',
      provider: 'github',
      sourceId: 'owner/repo-1',
      discussionUrl: null,
    })
    expect(stored.feed.github).toEqual({ status: 'collecting', items: [] })
  })

  test('sealed bytes contain their id, the window and the times with milliseconds, as their manifest does', () => {
    const own = {
      schemaVersion: 3,
      kind: 'top-year-publication',
      publicationId: 'top-year-v3-2026-03-14',
      algorithmVersion: 'top-year-v3',
      asOfDay: AS_OF_DAY,
    }
    expect(stored).toMatchObject({
      ...own,
      generatedAt: '2026-03-15T00:05:00.007Z',
      windowStart: '2025-03-15T00:00:00.000Z',
      windowEnd: '2026-03-15T00:00:00.000Z',
      archivedAt: '2026-03-15T00:05:02.000Z',
    })
    expect(TEXT.match(/\d{2}:\d{2}:\d{2}(?!\.\d{3}Z")/)).toBeNull()
    expect(SEALED.manifest).toEqual({
      ...own,
      windowStart: Date.UTC(2025, 2, 15),
      windowEnd: Date.UTC(2026, 2, 15),
      generatedAt: Date.UTC(2026, 2, 15, 0, 5, 0, 7),
      publishedAt: Date.UTC(2026, 2, 15, 0, 5, 2),
      sha256: sha256Hex(TEXT),
      byteSize: Buffer.byteLength(TEXT),
    })
  })

  test.each([{ title: '' }, { titleProvenance: '' }, { points: 1.5 }])(
    'an event with %j cannot be sealed',
    (overrides) => {
      expect(() => sealOf([yearEvent(overrides)])).toThrow()
    },
  )
})

describe('the virality map', () => {
  test('the virality map has every item of the news columns, the hype column and popular, and no image', () => {
    const shown = LISTS.slice(0, 5).flatMap((list) => stored.feed[list].map(({ key }) => key))
    expect(Object.keys(stored.feed.virality).toSorted()).toEqual([...new Set(shown)].toSorted())
  })

  test('the virality map has the items of popular that are not in their column', () => {
    const sameLink = (index: number) => (index < 60 ? { url: 'https://example.com/same' } : {})
    const { feed } = sealOf(yearEvents('hn', 180, sameLink)).envelope
    expect(feed.popular.at(-1)?.key).toBe('hn-159')
    expect(Object.keys(feed.virality)).toHaveLength(159)
    expect(feed.virality['hn-159']).toBe(11.94)
  })

  test.each([1, 3, 7, 90, 333])(
    'the virality is 100 times the percentile with two decimals, of %i events',
    (size) => {
      const { feed } = sealOf(yearEvents('hn', size)).envelope
      for (const { key, percentile } of feed.hackerNews)
        expect(feed.virality[key]).toBe(Number((100 * percentile).toFixed(2)))
    },
  )
})

describe('stored bytes', () => {
  test('proved bytes are returned unchanged, with any spelling of their JSON', () => {
    expect(proveBytes(SEALED.manifest, SEALED.bytes)).toBe(SEALED.bytes)
    const [named, bytes] = resealed(JSON.stringify(stored, null, 2))
    expect(proveBytes(named, bytes)).toBe(bytes)
  })

  test('stored bytes are damaged when they are missing, shorter or longer', () => {
    const { manifest: named, bytes } = SEALED
    for (const other of [null, new Uint8Array(), bytes.subarray(0, -1), new Uint8Array([...bytes, 0x0a])])
      expect(isDamaged(named, other)).toBe(true)
  })

  test('one flipped bit anywhere damages stored bytes', () => {
    fc.assert(
      fc.property(fc.nat(SEALED.bytes.length - 1), fc.nat(7), (index, bit) => {
        const bytes = SEALED.bytes.with(index, (SEALED.bytes[index] ?? 0) ^ (1 << bit))
        expect(isDamaged(SEALED.manifest, bytes), `byte ${index} bit ${bit}`).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  test.each(Object.keys(SEALED.manifest))(
    'stored bytes are damaged when the manifest differs in %s',
    (field) => {
      const value = SEALED.manifest[field as keyof Manifest]
      const other = typeof value === 'number' ? value + 1 : `${value}x`
      expect(isDamaged({ ...SEALED.manifest, [field]: other }, SEALED.bytes)).toBe(true)
    },
  )

  test.each(LISTS)('stored bytes of version 3 are damaged without evidence for every title in %s', (list) => {
    const evidence = [
      ...[false, 'true', null, undefined].map((value) => ({ event_title_verified: value })),
      ...['', null, undefined].map((value) => ({ title_provenance: value })),
    ]
    const items = stored.feed[list]
    for (const change of evidence) {
      for (const [index, item] of items.entries()) {
        const changed = withFeed({ [list]: items.with(index, { ...item, ...change } as typeof item) })
        expect(isDamagedJson(changed), `${index} ${JSON.stringify(change)}`).toBe(true)
      }
    }
  })

  const [item] = stored.feed.hackerNews

  test.each<[string, Partial<Record<keyof YearFeed, unknown>>]>([
    ['a list is longer than 100', { popular: Array.from({ length: 101 }, () => item) }],
    ['the code-hosting section is filled', { github: { status: 'collecting', items: [item] } }],
    ['the code-hosting section is not collecting', { github: { status: 'ready', items: [] } }],
    ['a virality is over 100', { virality: { 'hn-1': 100.01 } }],
    ['an item has no title', { hackerNews: [{ ...item, title: '' }] }],
  ])('stored bytes of version 3 are damaged when %s', (_, change) => {
    expect(isDamagedJson(withFeed(change))).toBe(true)
  })

  test.each([[[0xff]], [[0xc3]], [[0xed, 0xa0, 0x80]], [[0xc0, 0xaf]]])(
    'the bytes %j, which are not UTF-8, damage an object',
    (bad) => {
      const at = Buffer.from(TEXT).indexOf('hn 1')
      const bytes = Uint8Array.from([...SEALED.bytes.subarray(0, at), ...bad, ...SEALED.bytes.subarray(at)])
      expect(isDamaged(...resealed(bytes))).toBe(true)
    },
  )
})

/** An imported publication, whose payload nobody looks into. */
const V2 = manifest('2026-01-03', { algorithmVersion: 'top-year-v2', schemaVersion: 2 })
const { kind, publicationId, algorithmVersion, schemaVersion, asOfDay } = V2
const SCALARS = {
  schemaVersion,
  kind,
  publicationId,
  algorithmVersion,
  asOfDay,
  generatedAt: formatInstant(V2.generatedAt),
  windowStart: formatInstant(V2.windowStart),
  windowEnd: formatInstant(V2.windowEnd),
}
const ARCHIVED_AT = formatInstant(V2.publishedAt)
const imported = (changes: object = {}, archivedAt = ARCHIVED_AT): string =>
  JSON.stringify({ ...SCALARS, ...changes, coverage: { days: 1 }, feed: { hackerNews: [] }, archivedAt })
const codes = (text: string): string[] => examineBytes(...resealed(text, V2)).map(({ code }) => code)

describe('the identity of stored bytes', () => {
  test('the identity of a sealed version 3 holds, by its ends as by the whole', () => {
    const { manifest: named, bytes } = SEALED
    expect([examineBytes(named, bytes), examineWhole(named, bytes)]).toEqual([[], []])
  })

  const again = `,"publicationId":${JSON.stringify(V2.publicationId)},"archivedAt"`

  test.each([
    ['as the contract lists its members', imported()],
    ['indented, with a trailing newline', `${JSON.stringify(JSON.parse(imported()), null, 2)}\n`],
    ['with a number written as 2.0', imported().replace('"schemaVersion":2', '"schemaVersion":2.0')],
    ['with an escaped letter', imported().replace('"kind":"t', '"kind":"\\u0074')],
    ['with a member twice, the last one right', `{"kind":"other",${imported().slice(1)}`],
    ['with a member again at the end', imported({ publicationId: 'old' }).replace(',"archivedAt"', again)],
    ['in another order', JSON.stringify({ archivedAt: ARCHIVED_AT, feed: {}, ...SCALARS })],
    ['with archivedAt among the first', JSON.stringify({ archivedAt: ARCHIVED_AT, ...SCALARS, feed: {} })],
    ['with more members than the contract lists', imported({ extra: 1, nested: { kind: 'x' } })],
    ['without any nested member', JSON.stringify({ ...SCALARS, archivedAt: ARCHIVED_AT })],
  ])('the identity holds %s', (_how, text) => {
    expect(codes(text)).toEqual([])
    expect(isDamaged(...resealed(text, V2))).toBe(false)
  })

  test.each(Object.entries(SCALARS))('the identity names the member %s when it differs', (name, value) => {
    const other = typeof value === 'number' ? value + 1 : `${value}x`
    const text = imported({ [name]: other })
    const problem = { code: 'identity_mismatch', actual: `${name} ${JSON.stringify(other)}` }
    expect(examineBytes(...resealed(text, V2))).toMatchObject([problem])
    expect(isDamaged(...resealed(text, V2))).toBe(true)
  })

  test.each([
    ['another archivedAt', imported({}, '2026-01-01T00:00:00.000Z'), 1],
    ['no archivedAt', JSON.stringify({ ...SCALARS, feed: {} }), 1],
    ['the last of two members of one name', imported().replace('"asOfDay"', '"kind":"other","asOfDay"'), 1],
    ['no member at all', '{}', 9],
  ])('the identity names the difference by %s', (_what, text, count) => {
    expect(codes(text)).toEqual(Array(count).fill('identity_mismatch'))
  })

  test.each(['\f', '\v', '\xa0'])('%j is not white space between members', (character) => {
    for (const name of [',"kind"', ',"archivedAt"'])
      expect(codes(imported().replace(name, `,${character}${name.slice(1)}`))).toEqual(['envelope_invalid'])
  })

  test.each(['', 'null', '[]', '"text"', '{', '\uFEFF{}', '{"a":1}}'])('%j is not an envelope', (text) => {
    expect(codes(text)).toEqual(['envelope_invalid'])
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

describe('bytes without a manifest', () => {
  test.each([
    ['in another order', JSON.stringify({ archivedAt: ARCHIVED_AT, ...SCALARS, feed: {} })],
    ['that name another publication by their ends', imported({ publicationId: 'other' })],
    ['that are no envelope', '[]'],
  ])('bytes without a manifest are not judged without the whole text %s', (_how, text) => {
    const [known, bytes] = resealed(text, V2)
    expect(examineSummary(known, summarizeBytes(bytes))).toBeNull()
  })
})
