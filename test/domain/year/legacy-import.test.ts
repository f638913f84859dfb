import { describe, expect, test } from 'vitest'
import { proveLedger } from '../../../src/domain/year/check.ts'
import {
  startsWithFounding,
  parseManifestRow,
  planFounding,
  sealFounding,
} from '../../../src/domain/year/legacy-import.ts'
import type { ListedPublication } from '../../../src/domain/year/legacy-import.ts'
import { headAt, manifest } from './ledger-rows.ts'

const NOW = Date.UTC(2026, 2, 1)

const ROW = {
  ledger: 'versioned',
  publicationId: 'an id',
  algorithmVersion: 'top-year-v2',
  schemaVersion: 2,
  kind: 'a kind',
  asOfDay: '2025-12-31',
  windowStart: '2025-01-01T00:00:00Z',
  windowEnd: '2026-01-01T00:00:00.000Z',
  generatedAt: '2026-01-01T02:00:00+02:00',
  publishedAt: '2026-01-01T00:05:00.123456Z',
  sha256: 'ab'.repeat(32),
  byteSize: 7,
  file: 'objects/ab/cd',
}

const parse = (changes: object, now = NOW) => parseManifestRow({ ...ROW, ...changes }, 4, now)
const reason = (text: string | RegExp): object => ({ line: 4, reason: expect.stringMatching(text) as string })

describe('a line of the list', () => {
  test('a line gives the manifest with its times as instants, cut to the millisecond', () => {
    const { ledger, file, ...named } = ROW
    const times = {
      windowStart: Date.UTC(2025, 0, 1),
      windowEnd: Date.UTC(2026, 0, 1),
      generatedAt: Date.UTC(2026, 0, 1),
      publishedAt: Date.UTC(2026, 0, 1, 0, 5, 0, 123),
    }
    expect(parse({ unknown: 1 })).toEqual({ line: 4, ledger, file, manifest: { ...named, ...times } })
  })

  test('a line is from the future one millisecond after now', () => {
    const publishedAt = new Date(NOW).toISOString()
    expect(parse({ publishedAt, byteSize: 0 })).toHaveProperty('manifest')
    expect(parse({ publishedAt }, NOW - 1)).toMatchObject(reason('is in the future'))
  })

  test.each(Object.keys(ROW))('a line without %s is refused by that name', (field) => {
    for (const value of [undefined, null, []]) {
      const publicationId = field === 'publicationId' ? null : 'an id'
      expect(parse({ [field]: value })).toEqual({ publicationId, ...reason(new RegExp(`^${field}: `)) })
    }
  })

  test.each<[string, unknown[]]>([
    ['publicationId', ['', 'a\0b', '\ud800', 'top-year-v3-2026-03-02']],
    ['algorithmVersion', ['top-year-v3', 'top-year-v1']],
    ['asOfDay', ['2026-02-30', '2026-01-02']],
    ['file', ['', '/etc/passwd', '../x', 'a/../../x', 'a/..', 'a\0']],
  ])('a line with a wrong %s is refused: %j', (field, values) => {
    for (const value of values)
      expect(parse({ [field]: value })).toMatchObject(reason(new RegExp(`^${field}: `)))
  })

  test('a line may be published on its own day', () => {
    expect(parse({ asOfDay: '2026-01-01' })).toHaveProperty('manifest')
  })

  test('a line that is no object is refused', () => {
    expect(parseManifestRow([], 9, NOW)).toMatchObject({ line: 9, reason: 'not a JSON object' })
  })

  test('the ledger of the first takes lines of version top-year-v1 alone', () => {
    expect(parse({ ledger: 'v1', algorithmVersion: 'top-year-v1' })).toHaveProperty('manifest')
    expect(parse({ ledger: 'v1', algorithmVersion: 'top-year-v2' })).toHaveProperty('reason')
  })

  test('a line with a text that would make an entry too long for a signed log is refused', () => {
    expect(parse({ publicationId: '\u0001'.repeat(1_000) })).not.toHaveProperty('reason')
    expect(parse({ publicationId: 'x'.repeat(1_001) })).toMatchObject({
      reason: 'publicationId: has more than 1000 characters',
    })
  })
})

function listed(line: number, ledger: 'v1' | 'versioned', publishedAt: number): ListedPublication {
  const publicationId = `${ledger} ${line}`
  return { line, ledger, file: 'x', manifest: manifest('2025-12-31', { publicationId, publishedAt }) }
}

test('a founding is a provable ledger, in order of time and, at equal times, of the list', () => {
  const list = [
    listed(1, 'versioned', 5),
    listed(2, 'v1', 4),
    listed(3, 'versioned', 2),
    listed(4, 'v1', 1),
    listed(5, 'versioned', 5),
    listed(6, 'v1', 4),
  ]
  const { rows: imported, legacy } = planFounding(list)
  for (const [now, recordedAt] of [
    [3, 5],
    [9, 9],
  ] as const) {
    const rows = [...imported, sealFounding({ rows: imported, legacy }, now)]
    const { timeline, entries } = proveLedger({ rows, legacy, founding: null }, headAt(rows, rows.length))
    const ids = timeline.map(({ manifest: { publicationId } }) => publicationId)
    expect(ids.filter((id) => id.startsWith('v1'))).toEqual(['v1 4', 'v1 2', 'v1 6'])
    expect(ids.filter((id) => id.startsWith('versioned'))).toEqual([
      'versioned 3',
      'versioned 1',
      'versioned 5',
    ])
    expect(entries.at(-1)).toMatchObject({ kind: 'legacy-seal', recordedAt })
    expect(startsWithFounding(entries, planFounding(list))).toBe(true)
    for (const other of [
      list.slice(1),
      list.slice(0, 5),
      [...list, listed(7, 'v1', 7)],
      [...list, listed(7, 'versioned', 7)],
      [...list.slice(0, 5), listed(7, 'v1', 4)],
      [...list.slice(1), listed(7, 'versioned', 5)],
    ])
      expect(startsWithFounding(entries, planFounding(other))).toBe(false)
  }
})
