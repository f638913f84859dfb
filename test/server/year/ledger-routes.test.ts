import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { GENESIS_LEAF } from '../../../src/domain/year/chain.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { formatHead } from '../../../src/domain/year/ledger.ts'
import type { LedgerContents } from '../../../src/domain/year/ledger.ts'
import { historyIndexSchema } from '../../../src/domain/year/history/history.ts'
import {
  historyContract,
  headContract,
  indexContract,
  ledgerContract,
  legacyLedgerContract,
} from '../../../src/server/year/routes.ts'
import { requestRoute } from '../contract-client.ts'
import { openSampleApp, sampleArchive } from '../../support/sample-archive.ts'

const EMPTY: LedgerContents = { rows: [], legacy: [], founding: null }

const CONTRACTS = [ledgerContract, legacyLedgerContract, headContract, indexContract]
const PATHS = CONTRACTS.map(({ path }) => path)
const [LEDGER = '', LEGACY = '', HEAD = '', INDEX = ''] = PATHS

describe('the published ledger', () => {
  test('the published ledger has one line per entry, each hashing to the leaf that the next line names', async () => {
    const archive = sampleArchive()
    const { text } = await requestRoute(openSampleApp(archive), LEDGER)
    const lines = text.split('\n')
    expect(lines.pop()).toBe('')
    const named = lines.map((line) => (JSON.parse(line) as unknown[])[1])
    const leaves = lines.map((line) => sha256Hex(line))
    expect(leaves).toEqual(archive.contents.rows.map(({ leaf }) => leaf))
    expect(named).toEqual([GENESIS_LEAF, ...leaves.slice(0, -1)])
  })

  test('the published ledger has an index of both ledgers, with the digests of the history', async () => {
    const archive = sampleArchive()
    const app = openSampleApp(archive)
    const { text } = await requestRoute(app, INDEX)
    const index = historyIndexSchema.parse(JSON.parse(text))
    expect(index.head?.leaf).toBe(archive.contents.rows.at(-1)?.leaf)
    expect((await requestRoute(app, HEAD)).text).toBe(archive.head && formatHead(archive.head))
    const named = index.publications.map(({ ledger, own, seq }) => `${ledger}${own ? ' own' : ''} ${seq}`)
    const [imported, made] = ['v1 1, v1 2, versioned 1', 'versioned own 4, versioned own 5, versioned own 6']
    expect(named.join(', ')).toBe(`${imported}, ${made}`)
    for (const { leaf, ledger, seq } of index.publications)
      expect(leaf).toBe(ledger === 'v1' ? null : archive.contents.rows[seq - 1]?.leaf)
    const [gap] = index.gaps
    expect(index.gaps).toHaveLength(1)
    expect(gap).toMatchObject({ asOfDay: '2026-01-04', reason: 'missed', attempts: 0, seq: 3 })
    expect(gap?.leaf).toBe(archive.contents.rows[2]?.leaf)
    // Of two at one time the later one in the index is the one that is served.
    const served = new Map(index.publications.map((one) => [one.publishedAt, one]))
    for (const { publishedAt, sha256, byteSize } of served.values()) {
      const response = await app.request(
        `http://dash.test${historyContract.path}?sort=year&at=${publishedAt}`,
      )
      expect(response.headers.get('etag')).toBe(`"${sha256}"`)
      expect((await response.arrayBuffer()).byteLength).toBe(byteSize)
    }
  })

  test('the published ledger of an empty archive is empty, has no head, and an index with empty lists; during an import too', async () => {
    const leaf = 'ab'.repeat(32)
    for (const [contents, head] of [
      [EMPTY, null],
      [
        { ...EMPTY, founding: { seq: 4, leaf, beganAt: 0 } },
        { seq: 4, leaf, time: 0 },
      ],
    ] as const) {
      const app = openSampleApp({ contents, head, objects: new Map() })
      for (const path of [LEDGER, LEGACY]) {
        const { status, text, headers } = await requestRoute(app, path)
        expect([status, text, headers.get('content-length')]).toEqual([200, '', '0'])
      }
      expect((await requestRoute(app, HEAD)).error).toBe('year_history_not_found')
      const none = { head: null, publications: [], gaps: [] }
      expect(JSON.parse((await requestRoute(app, INDEX)).text)).toEqual(none)
    }
  })
})

test.each([
  ['a ledger that is not there', new Refusal('storage_unavailable'), 'year_history_storage_unavailable'],
  ['a ledger that does not hold', new Refusal('storage_damaged'), 'year_history_archive_corrupt'],
  ['an unexpected error', new Error('disk on fire'), 'year_history_lookup_failed'],
])('the published ledger refuses %s with the code of the history', async (_what, thrown, code) => {
  const app = openSampleApp(sampleArchive(), { year: { read: () => Promise.reject(thrown) } })
  for (const path of PATHS) expect((await requestRoute(app, path)).error).toBe(code)
})
