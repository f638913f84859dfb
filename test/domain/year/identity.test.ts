import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { examineWhole, examineBytes, examineSeen, seeBytes } from '../../../src/domain/year/envelope.ts'
import type { Manifest } from '../../../src/domain/year/ledger.ts'
import { formatInstant } from '../../../src/domain/time.ts'
import { sampleSealed } from '../../support/signals.ts'
import { manifest } from './ledger-rows.ts'

const V2 = manifest('2026-01-03', { algorithmVersion: 'top-year-v2', schemaVersion: 2 })

const SCALARS = {
  schemaVersion: V2.schemaVersion,
  kind: V2.kind,
  publicationId: V2.publicationId,
  algorithmVersion: V2.algorithmVersion,
  asOfDay: V2.asOfDay,
  generatedAt: formatInstant(V2.generatedAt),
  windowStart: formatInstant(V2.windowStart),
  windowEnd: formatInstant(V2.windowEnd),
}
const ARCHIVED_AT = formatInstant(V2.publishedAt)

/** The manifest of these very bytes. */
function stored(text: string, base: Manifest = V2): [Manifest, Uint8Array] {
  const bytes = new TextEncoder().encode(text)
  return [{ ...base, sha256: sha256Hex(bytes), byteSize: bytes.byteLength }, bytes]
}

const seenOf = (text: string): Parameters<typeof examineSeen> => {
  const [named, bytes] = stored(text)
  return [named, seeBytes(bytes)]
}
const codes = (text: string): string[] => examineBytes(...stored(text)).map(({ code }) => code)
const envelope = (changes: object = {}, archivedAt = ARCHIVED_AT): string =>
  JSON.stringify({ ...SCALARS, ...changes, coverage: { days: 1 }, feed: { hackerNews: [] }, archivedAt })

describe('the identity of stored bytes', () => {
  test('holds for a sealed version 3, by its ends as by the whole', () => {
    const { manifest: sealed, bytes } = sampleSealed()
    expect([examineBytes(sealed, bytes), examineWhole(sealed, bytes)]).toEqual([[], []])
  })

  test.each([
    ['as the contract lists its members', envelope()],
    ['indented, with a trailing newline', `${JSON.stringify(JSON.parse(envelope()), null, 2)}\n`],
    ['with a number written as 2.0', envelope().replace('"schemaVersion":2', '"schemaVersion":2.0')],
    ['with an escaped letter', envelope().replace('"kind":"t', '"kind":"\\u0074')],
    ['with a member twice, the last one right', `{"kind":"other",${envelope().slice(1)}`],
    [
      'with a member again behind the nested ones, the last one right',
      envelope({ publicationId: 'old' }).replace(
        ',"archivedAt"',
        `,"publicationId":${JSON.stringify(V2.publicationId)},"archivedAt"`,
      ),
    ],
    ['in another order', JSON.stringify({ archivedAt: ARCHIVED_AT, feed: {}, ...SCALARS })],
    ['with archivedAt among the first', JSON.stringify({ archivedAt: ARCHIVED_AT, ...SCALARS, feed: {} })],
    ['with more members than the contract lists', envelope({ extra: 1, nested: { kind: 'x' } })],
    ['without any nested member', JSON.stringify({ ...SCALARS, archivedAt: ARCHIVED_AT })],
  ])('holds %s', (_how, text) => {
    expect(codes(text)).toEqual([])
  })

  test.each(Object.entries(SCALARS))('names the member %s when it differs', (name, value) => {
    const other = typeof value === 'number' ? value + 1 : `${value}x`
    const [problem, more] = examineBytes(...stored(envelope({ [name]: other })))
    expect(problem).toMatchObject({ code: 'identity_mismatch', actual: `${name} ${JSON.stringify(other)}` })
    expect(more).toBeUndefined()
  })

  test('is that of the last of two members of one name', () => {
    const twice = envelope().replace('"asOfDay"', '"kind":"other","asOfDay"')
    expect(codes(twice)).toEqual(['identity_mismatch'])
    expect(examineSeen(...seenOf(twice))).toBeNull()
  })

  test('names archivedAt when it differs, and what is absent', () => {
    expect(codes(envelope({}, '2026-01-01T00:00:00.000Z'))).toEqual(['identity_mismatch'])
    expect(codes(JSON.stringify({ ...SCALARS, feed: {} }))).toEqual(['identity_mismatch'])
    expect(codes('{}')).toHaveLength(9)
  })

  test.each(['\f', '\v', '\xa0'])('takes %j for no space between members', (character) => {
    expect(codes(envelope().replace(',"kind"', `,${character}"kind"`))).toEqual(['envelope_invalid'])
    expect(codes(envelope().replace(',"archivedAt"', `,${character}"archivedAt"`))).toEqual([
      'envelope_invalid',
    ])
  })

  test.each(['', 'null', '[]', '"text"', '{', '\uFEFF{}', '{"a":1}}'])('%j is no envelope', (text) => {
    expect(codes(text)).toEqual(['envelope_invalid'])
  })

  test('tells a change of size from a change of bytes', () => {
    const [named, bytes] = stored(envelope())
    const flipped = bytes.slice()
    flipped[40] = (flipped[40] ?? 0) ^ 1
    expect(examineBytes(named, flipped).map(({ code }) => code)).toEqual(['digest_mismatch'])
    const cut = examineBytes(named, bytes.subarray(1))
    expect(cut.map(({ code }) => code)).toEqual(['size_mismatch', 'digest_mismatch'])
  })

  test('is judged by the ends as by the whole, whatever the members say', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('"', '\\', '{', '}', '\u2028', ' '))
    const value = fc.oneof(text, fc.integer(), fc.double({ noNaN: true }), fc.constant(null))
    const member = fc.constantFrom(...Object.keys(SCALARS), 'coverage', 'feed', 'archivedAt')
    fc.assert(
      fc.property(fc.dictionary(member, value), fc.integer({ min: 0, max: 2 }), (changes, indent) => {
        const json = JSON.stringify({ ...(JSON.parse(envelope()) as object), ...changes }, null, indent)
        const [named, bytes] = stored(json)
        expect(examineBytes(named, bytes)).toEqual(examineWhole(named, bytes))
      }),
    )
  })
})

describe('bytes that were seen before their manifest was known', () => {
  const [named, sound] = stored(envelope())

  test.each([
    ['sound bytes', named, sound],
    ['bytes that were cut', named, sound.subarray(1)],
    ['other bytes of the same length', named, sound.with(40, 0)],
    ['none at all', named, sound.subarray(0, 0)],
    ['bytes of another length than was recorded', { ...named, byteSize: 1 }, sound],
  ])('are judged as with it: %s', (_what, known, bytes) => {
    expect(examineSeen(known, seeBytes(bytes))).toEqual(examineBytes(known, bytes))
  })

  test.each([
    ['in another order', JSON.stringify({ archivedAt: ARCHIVED_AT, ...SCALARS, feed: {} })],
    ['that name another publication by their ends', envelope({ publicationId: 'other' })],
    ['that are no envelope', '[]'],
  ])('are not judged without the whole text %s', (_how, text) => {
    const [known, bytes] = stored(text)
    expect(examineSeen(known, seeBytes(bytes))).toBeNull()
  })
})
