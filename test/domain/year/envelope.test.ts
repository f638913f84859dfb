import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { coverageOf } from '../../../src/domain/year/rank.ts'
import { countItems, proveBytes, sealYear } from '../../../src/domain/year/envelope.ts'
import type { Manifest } from '../../../src/domain/year/ledger.ts'
import type { YearEnvelope, YearFeed } from '../../../src/domain/year/schema.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import {
  AS_OF_DAY,
  rankedYear,
  sampleEvents,
  sampleSealed,
  yearEvent,
  yearEvents,
} from '../../support/signals.ts'

const SEALED = sampleSealed()
const TEXT = new TextDecoder('utf-8', { fatal: true }).decode(SEALED.bytes)
const LISTS = ['hackerNews', 'lobsters', 'lessWrong', 'hypeReplicate', 'popular', 'midjourney'] as const
const SHOWN = ['hackerNews', 'lobsters', 'lessWrong', 'hypeReplicate', 'popular'] as const

/** The stored text, parsed again. */
const stored: YearEnvelope = JSON.parse(TEXT)

/** True when it is refused as damaged. */
function isDamaged(manifest: Manifest, bytes: Uint8Array | null): boolean {
  try {
    proveBytes(manifest, bytes)
    return false
  } catch (error) {
    if (error instanceof Refusal && error.code === 'storage_damaged') return true
    throw error
  }
}

/** The sample's manifest with digest and size of other bytes, so that only what they say can be wrong. */
function resealed(content: Uint8Array | string, base: Manifest = SEALED.manifest): [Manifest, Uint8Array] {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return [{ ...base, sha256: sha256Hex(bytes), byteSize: bytes.byteLength }, bytes]
}

/** {@link resealed} for a JSON value. */
const resealedJson = (value: unknown): [Manifest, Uint8Array] => resealed(JSON.stringify(value))

const withFeed = (change: (feed: YearFeed) => object): unknown => ({
  ...stored,
  feed: { ...stored.feed, ...change(stored.feed) },
})

describe('the size of a publication', () => {
  /** A hundred verified events whose titles are as long as given, in one column and in `popular`. */
  const sealedWithTitles = (length: number) =>
    sampleSealed(yearEvents('hn', 100, (index) => ({ title: `${index} ${'x'.repeat(length)}` })))

  test('is at most 8 MiB', () => {
    expect(sealedWithTitles(40_000).bytes.byteLength).toBeGreaterThan(7 * 1024 * 1024)
    expect(() => sealedWithTitles(42_000)).toThrow(
      /^the publication has 8\d{6} bytes, at most 8388608 are allowed$/,
    )
  })
})

describe('sealed bytes', () => {
  test('are the same for the same arguments, in whatever order the events were read', () => {
    expect(sampleSealed()).toEqual(SEALED)
    const events = sampleEvents()
    fc.assert(
      fc.property(fc.shuffledSubarray(events, { minLength: events.length }), (shuffled) => {
        expect(new TextDecoder().decode(sampleSealed(structuredClone(shuffled)).bytes)).toBe(TEXT)
      }),
      { numRuns: 30 },
    )
  })

  test('are UTF-8 JSON without indentation, byte order mark or trailing newline', () => {
    expect(SEALED.bytes[0]).toBe('{'.charCodeAt(0))
    expect(SEALED.bytes.at(-1)).toBe('}'.charCodeAt(0))
    expect(JSON.stringify(stored)).toBe(TEXT)
    expect(TEXT).not.toContain('\n')
    expect(TEXT).toContain('Größe “quoted” \\\\ 漢字 😀')
    expect(stored).toEqual(SEALED.envelope)
  })

  test('have their keys in the order of the contract', () => {
    expect(Object.keys(stored)).toEqual([
      'schemaVersion',
      'kind',
      'publicationId',
      'algorithmVersion',
      'asOfDay',
      'generatedAt',
      'windowStart',
      'windowEnd',
      'coverage',
      'feed',
      'archivedAt',
    ])
    expect(Object.keys(stored.coverage)).toEqual([
      'targetDays',
      'materializedDays',
      'complete',
      'firstDay',
      'lastDay',
      'missingDays',
      'sources',
      'excludedCohorts',
      'unverified',
    ])
    expect(Object.keys(stored.feed)).toEqual([...LISTS, 'github', 'virality'])
  })

  test('have items with their fields in the order of the rules, the provider for hype alone', () => {
    const fields = [
      'key',
      'source',
      'sourceId',
      'rank',
      'title',
      'url',
      'discussionUrl',
      'points',
      'comments',
      'publishedAt',
      'percentile',
      'event_title_verified',
      'title_provenance',
    ]
    for (const list of LISTS) {
      expect(stored.feed[list].length).toBeGreaterThan(0)
      const expected = list === 'hypeReplicate' ? fields.toSpliced(2, 0, 'provider') : fields
      for (const item of stored.feed[list]) expect(Object.keys(item)).toEqual(expected)
    }
  })

  test('have items as the rules spell them out', () => {
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
      source: 'hype:github',
      provider: 'github',
      sourceId: 'owner/repo-1',
      rank: 2,
      discussionUrl: null,
      percentile: 0.7,
    })
  })

  test('name themselves, the window and the times with milliseconds', () => {
    expect(stored).toMatchObject({
      schemaVersion: 3,
      kind: 'top-year-publication',
      publicationId: 'top-year-v3-2026-03-14',
      algorithmVersion: 'top-year-v3',
      asOfDay: AS_OF_DAY,
      generatedAt: '2026-03-15T00:05:00.007Z',
      windowStart: '2025-03-15T00:00:00.000Z',
      windowEnd: '2026-03-15T00:00:00.000Z',
      archivedAt: '2026-03-15T00:05:02.000Z',
    })
    expect(stored.feed.hackerNews[0]?.publishedAt).toBe('2025-11-05T08:30:00.250Z')
    expect(TEXT.match(/\d{2}:\d{2}:\d{2}(?!\.\d{3}Z")/)).toBeNull()
  })

  test('agree with their manifest', () => {
    expect(SEALED.manifest).toEqual({
      publicationId: 'top-year-v3-2026-03-14',
      algorithmVersion: 'top-year-v3',
      schemaVersion: 3,
      kind: 'top-year-publication',
      asOfDay: AS_OF_DAY,
      windowStart: Date.UTC(2025, 2, 15),
      windowEnd: Date.UTC(2026, 2, 15),
      generatedAt: Date.UTC(2026, 2, 15, 0, 5, 0, 7),
      publishedAt: Date.UTC(2026, 2, 15, 0, 5, 2),
      sha256: sha256Hex(TEXT),
      byteSize: Buffer.byteLength(TEXT),
    })
  })

  test('differ for every other argument', () => {
    const window = windowEnding(AS_OF_DAY)
    const seal = (asOfDay: string, generatedAt: number, publishedAt: number, points: number): string => {
      const ranked = rankedYear([yearEvent({ points })])
      const own = asOfDay === AS_OF_DAY ? window : windowEnding(asOfDay)
      return sealYear(own, ranked, coverageOf(own, [], ranked), generatedAt, publishedAt).manifest.sha256
    }
    const digests = [seal(AS_OF_DAY, 1, 2, 3), seal('2026-03-13', 1, 2, 3), seal(AS_OF_DAY, 0, 2, 3)]
    digests.push(seal(AS_OF_DAY, 1, 3, 3), seal(AS_OF_DAY, 1, 2, 4))
    expect(new Set(digests).size).toBe(5)
  })

  test('hold an empty code-hosting section that is collecting', () => {
    expect(stored.feed.github).toEqual({ status: 'collecting', items: [] })
  })

  test('publish hydrated titles with their provenance, and evidence on every item', () => {
    const hydrated = stored.feed.hackerNews.find(({ key }) => key === 'hn-4')
    expect(hydrated).toMatchObject({ title: 'as its source gives it', title_provenance: 'hn:firebase-item' })
    expect(TEXT).not.toContain('stored before sources were asked')
    for (const item of LISTS.flatMap((list) => stored.feed[list])) {
      expect(item.event_title_verified).toBe(true)
      expect(item.title_provenance).not.toBe('')
    }
  })

  test('count the items of each list', () => {
    expect(countItems(stored.feed)).toEqual({
      hackerNews: 4,
      lobsters: 2,
      lessWrong: 2,
      hypeReplicate: 5,
      popular: 7,
      midjourney: 2,
      github: 0,
    })
  })

  test('can be of a year without a single event', () => {
    const window = windowEnding(AS_OF_DAY)
    const ranked = rankedYear([])
    const { manifest, bytes } = sealYear(window, ranked, coverageOf(window, [], ranked), 1, 2)
    expect(proveBytes(manifest, bytes)).toBe(bytes)
  })

  test.each([
    ['an empty title', { title: '' }],
    ['an empty provenance', { titleProvenance: '' }],
    ['points that are no integer', { points: 1.5 }],
  ])('are not made of an event with %s', (_, overrides) => {
    const window = windowEnding(AS_OF_DAY)
    const ranked = rankedYear([yearEvent(overrides)])
    expect(() => sealYear(window, ranked, coverageOf(window, [], ranked), 1, 2)).toThrow()
  })
})

describe('the virality map', () => {
  test('has every item of the news columns, the hype column and popular, and no image', () => {
    const shown = SHOWN.flatMap((list) => stored.feed[list].map(({ key }) => key))
    expect(Object.keys(stored.feed.virality).toSorted()).toEqual([...new Set(shown)].toSorted())
  })

  test('has the items of popular that stand behind their column', () => {
    const window = windowEnding(AS_OF_DAY)
    const sameLink = (index: number) => (index < 60 ? { url: 'https://example.com/same' } : {})
    const ranked = rankedYear(yearEvents('hn', 180, sameLink))
    const { envelope } = sealYear(window, ranked, coverageOf(window, [], ranked), 1, 2)
    expect(envelope.feed.popular.at(-1)?.key).toBe('hn-159')
    expect(Object.keys(envelope.feed.virality)).toHaveLength(159)
    expect(envelope.feed.virality['hn-159']).toBe(11.94)
  })

  test('is 100 times the percentile with two decimals', () => {
    const window = windowEnding(AS_OF_DAY)
    for (const size of [1, 3, 7, 90, 333]) {
      const ranked = rankedYear(yearEvents('hn', size))
      const { envelope } = sealYear(window, ranked, coverageOf(window, [], ranked), 1, 2)
      for (const { key, percentile } of [...envelope.feed.hackerNews, ...envelope.feed.popular]) {
        const value = envelope.feed.virality[key] ?? Number.NaN
        expect(Math.abs(value - 100 * percentile)).toBeLessThanOrEqual(0.005 + 1e-9)
        expect(String(value)).toMatch(/^\d{1,3}(\.\d{1,2})?$/)
      }
    }
  })
})

describe('stored bytes', () => {
  test('that are proved are handed back untouched', () => {
    expect(proveBytes(SEALED.manifest, SEALED.bytes)).toBe(SEALED.bytes)
    expect(sha256Hex(SEALED.bytes)).toBe(SEALED.manifest.sha256)
  })

  test('may be spelled otherwise, as long as the digest is theirs', () => {
    const [manifest, bytes] = resealed(JSON.stringify(stored, null, 2))
    expect(proveBytes(manifest, bytes)).toBe(bytes)
  })

  test('are damaged when they are absent', () => {
    expect(isDamaged(SEALED.manifest, null)).toBe(true)
  })

  test('are damaged when they are shorter or longer', () => {
    const { manifest, bytes } = SEALED
    expect(isDamaged(manifest, new Uint8Array())).toBe(true)
    expect(isDamaged(manifest, bytes.subarray(0, -1))).toBe(true)
    expect(isDamaged(manifest, bytes.subarray(1))).toBe(true)
    expect(isDamaged(manifest, new Uint8Array([...bytes, 0x0a]))).toBe(true)
    expect(isDamaged(manifest, new Uint8Array([...bytes, ...bytes]))).toBe(true)
  })

  test('are damaged by one flipped bit, anywhere', () => {
    fc.assert(
      fc.property(fc.nat(SEALED.bytes.length - 1), fc.nat(7), (index, bit) => {
        const bytes = SEALED.bytes.with(index, (SEALED.bytes[index] ?? 0) ^ (1 << bit))
        expect(isDamaged(SEALED.manifest, bytes), `byte ${index} bit ${bit}`).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('are damaged when the manifest differs in any one field', () => {
    const changes = {
      publicationId: 'top-year-v3-2026-03-13',
      algorithmVersion: 'top-year-v2',
      schemaVersion: 2,
      kind: 'top-month-publication',
      asOfDay: '2026-03-13',
      windowStart: SEALED.manifest.windowStart + 1,
      windowEnd: SEALED.manifest.windowEnd - 1,
      generatedAt: SEALED.manifest.generatedAt + 1,
      publishedAt: SEALED.manifest.publishedAt - 1,
      sha256: sha256Hex('other'),
      byteSize: SEALED.manifest.byteSize + 1,
    } satisfies Manifest
    expect(Object.keys(changes).toSorted()).toEqual(Object.keys(SEALED.manifest).toSorted())
    for (const [field, value] of Object.entries(changes)) {
      expect(
        isDamaged({ ...SEALED.manifest, [field]: value }, SEALED.bytes),
        `${field} of the manifest`,
      ).toBe(true)
    }
  })

  test.each([
    ['schemaVersion', [2, 4, '3', 3.5, null]],
    ['kind', ['top-year', 'TOP-YEAR-PUBLICATION', '', null, ['top-year-publication']]],
    ['publicationId', ['top-year-v3-2026-03-13', 'top-year-v3-2026-03-14 ', '', null, 3]],
    ['algorithmVersion', ['top-year-v1', 'top-year-v2', 'top-year-v4', '', null]],
    ['asOfDay', ['2026-03-13', '2026-03-15', '2026-3-14', '', null, 20260314]],
    [
      'generatedAt',
      ['2026-03-15T00:05:00.008Z', '2026-03-15T00:05:00Z', '', null, SEALED.manifest.generatedAt],
    ],
    ['windowStart', ['2025-03-14T00:00:00.000Z', '2025-03-15', null, SEALED.manifest.windowStart]],
    ['windowEnd', ['2026-03-14T23:59:59.999Z', '2026-03-15', null, SEALED.manifest.windowEnd]],
    [
      'archivedAt',
      ['2026-03-15T00:05:02.001Z', '2026-03-15T00:05:00.007Z', '', null, SEALED.manifest.publishedAt],
    ],
  ])('are damaged when %s in them differs from the manifest or is missing', (field, values) => {
    for (const value of values) {
      expect(
        isDamaged(...resealedJson({ ...stored, [field]: value })),
        `${field} ${JSON.stringify(value)}`,
      ).toBe(true)
    }
    expect(
      isDamaged(
        ...resealedJson(Object.fromEntries(Object.entries(stored).filter(([name]) => name !== field))),
      ),
    ).toBe(true)
  })

  describe('of version 3 are damaged without evidence for a title', () => {
    const evidence = [
      { event_title_verified: false },
      { event_title_verified: 'true' },
      { event_title_verified: null },
      { event_title_verified: undefined },
      { title_provenance: '' },
      { title_provenance: null },
      { title_provenance: undefined },
    ]

    test.each(LISTS)('in %s', (list) => {
      for (const change of evidence) {
        for (const index of stored.feed[list].keys()) {
          const value = withFeed((feed) => ({
            [list]: feed[list].map((item, position) => (position === index ? { ...item, ...change } : item)),
          }))
          expect(isDamaged(...resealedJson(value)), `${list} ${index} ${JSON.stringify(change)}`).toBe(true)
        }
      }
    })
  })

  test.each<[string, (feed: YearFeed) => object]>([
    ['a list is missing', () => ({ popular: undefined })],
    [
      'a list is longer than 100',
      (feed) => ({ popular: Array.from({ length: 101 }, () => feed.popular[0]) }),
    ],
    ['a list is no list', () => ({ hackerNews: {} })],
    [
      'the code-hosting section is filled',
      (feed) => ({ github: { status: 'collecting', items: feed.popular } }),
    ],
    ['the code-hosting section is not collecting', () => ({ github: { status: 'ready', items: [] } })],
    ['virality is missing', () => ({ virality: undefined })],
    ['a virality is over 100', () => ({ virality: { 'hn-1': 100.01 } })],
    ['an item has no title', (feed) => ({ hackerNews: [{ ...feed.hackerNews[0], title: '' }] })],
    ['an item has no rank', (feed) => ({ hackerNews: [{ ...feed.hackerNews[0], rank: undefined }] })],
  ])('of version 3 are damaged when %s', (_, change) => {
    expect(isDamaged(...resealedJson(withFeed(change)))).toBe(true)
  })

  test('of version 3 are damaged without coverage or feed', () => {
    expect(isDamaged(...resealedJson({ ...stored, coverage: undefined }))).toBe(true)
    expect(isDamaged(...resealedJson({ ...stored, feed: undefined }))).toBe(true)
    expect(isDamaged(...resealedJson({ ...stored, coverage: { ...stored.coverage, targetDays: 364 } }))).toBe(
      true,
    )
  })

  test('are damaged when they are not UTF-8', () => {
    for (const bad of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0xaf]]) {
      const at = TEXT.indexOf('hn 1')
      const head = new TextEncoder().encode(TEXT.slice(0, at))
      const tail = new TextEncoder().encode(TEXT.slice(at))
      expect(isDamaged(...resealed(new Uint8Array([...head, ...bad, ...tail]))), bad.join()).toBe(true)
    }
    expect(isDamaged(...resealed(new Uint8Array(Buffer.from(TEXT, 'utf16le')))), 'UTF-16').toBe(true)
  })

  test.each([
    ['nothing', ''],
    ['cut JSON', TEXT.slice(0, -1)],
    ['JSON and more', `${TEXT}x`],
    ['two documents', `${TEXT}\n${TEXT}`],
    ['words', 'Not Found'],
    ['NaN', TEXT.replace('"schemaVersion":3', '"schemaVersion":NaN')],
  ])('are damaged when they are not JSON but %s', (_, text) => {
    expect(isDamaged(...resealed(text))).toBe(true)
  })

  test.each([
    ['an array', `[${TEXT}]`],
    ['an empty array', '[]'],
    ['a string', JSON.stringify(TEXT)],
    ['a number', '3'],
    ['null', 'null'],
    ['true', 'true'],
    ['an empty object', '{}'],
  ])('are damaged when they are JSON but %s', (_, text) => {
    expect(isDamaged(...resealed(text))).toBe(true)
  })
})

describe('stored bytes of an older version', () => {
  const archived = {
    schemaVersion: 1,
    kind: 'year-feed',
    publicationId: 'year/2024-06-30',
    algorithmVersion: 'top-year-v1',
    asOfDay: '2024-06-30',
    generatedAt: '2024-07-01T00:03:00Z',
    windowStart: '2023-07-02T00:00:00Z',
    windowEnd: '2024-07-01T00:00:00Z',
    coverage: { days: 201 },
    feed: { popular: [{ title: 'without evidence' }] },
    archivedAt: '2024-07-01T00:04:00.5Z',
  }
  const identity = {
    schemaVersion: archived.schemaVersion,
    kind: archived.kind,
    publicationId: archived.publicationId,
    algorithmVersion: archived.algorithmVersion,
    asOfDay: archived.asOfDay,
    generatedAt: Date.UTC(2024, 6, 1, 0, 3),
    windowStart: Date.UTC(2023, 6, 2),
    windowEnd: Date.UTC(2024, 6, 1),
    publishedAt: Date.UTC(2024, 6, 1, 0, 4, 0, 500),
  }
  const base: Manifest = { ...identity, sha256: '', byteSize: 0 }

  test('are proved by identity and digest, whatever their payload looks like', () => {
    for (const text of [JSON.stringify(archived), `${JSON.stringify(archived, null, 2)}\n`]) {
      const [manifest, bytes] = resealed(text, base)
      expect(proveBytes(manifest, bytes)).toBe(bytes)
    }
    const [manifest, bytes] = resealed(
      JSON.stringify({ ...archived, algorithmVersion: 'top-year-v2', schemaVersion: 2 }),
      { ...base, algorithmVersion: 'top-year-v2', schemaVersion: 2 },
    )
    expect(proveBytes(manifest, bytes)).toBe(bytes)
  })

  test('are damaged when any field of identity differs', () => {
    for (const [field, value] of Object.entries(identity)) {
      const other = typeof value === 'number' ? value + 1 : `${value}x`
      const [manifest, bytes] = resealed(JSON.stringify(archived), { ...base, [field]: other })
      expect(isDamaged(manifest, bytes), field).toBe(true)
    }
  })

  test('cannot pass for version 3 by a manifest that says so', () => {
    const v3 = { ...archived, schemaVersion: 3, algorithmVersion: 'top-year-v3' }
    const [manifest, bytes] = resealed(JSON.stringify(v3), {
      ...base,
      schemaVersion: 3,
      algorithmVersion: 'top-year-v3',
    })
    expect(isDamaged(manifest, bytes)).toBe(true)
  })
})
