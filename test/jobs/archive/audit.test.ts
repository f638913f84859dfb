import { describe, expect, test } from 'vitest'
import { storeAuditor } from '../../../src/adapters/auditors.ts'
import { storageDamaged } from '../../../src/domain/refusal.ts'
import { proveLedger } from '../../../src/domain/year/check.ts'
import { objectPath } from '../../../src/domain/year/examine.ts'
import { finding } from '../../../src/domain/year/finding.ts'
import type { Finding } from '../../../src/domain/year/finding.ts'
import { formatHead } from '../../../src/domain/year/ledger.ts'
import type { ObjectsAuditor } from '../../../src/domain/year/ports.ts'
import { ownArchive } from '../../../src/jobs/archive/archives.ts'
import type { AuditedStores } from '../../../src/jobs/archive/archives.ts'
import { audit } from '../../../src/jobs/archive/audit.ts'
import type {
  ArchiveReader,
  AuditOptions,
  AuditPorts,
  VerifyResult,
} from '../../../src/jobs/archive/audit.ts'
import { headAt } from '../../domain/year/ledger-rows.ts'
import { sampleArchive } from '../../support/sample-archive.ts'

const { contents, head, objects: OBJECTS } = sampleArchive(5)
const { rows } = contents
const { timeline } = proveLedger(contents, head)
const MANIFESTS = timeline.map(({ manifest }) => manifest)
const DAYS = MANIFESTS.map(({ asOfDay }) => asOfDay)
const [FIRST = '', SECOND = '', THIRD = ''] = DAYS
const NEWEST = '2026-01-09'
const BYTES = MANIFESTS.reduce((sum, { byteSize }) => sum + byteSize, 0)

/** Stores in memory, and what was read of them: the ends of an object, or the whole, and of which day. */
interface Stores extends AuditedStores {
  reads: string[]
}

const dayOf = (sha256: string): string =>
  MANIFESTS.find((manifest) => manifest.sha256 === sha256)?.asOfDay ?? 'unknown'

/** @param stored bytes of objects by their day, null for a missing one, an error for one that cannot be read */
function storesWith(stored: Record<string, Uint8Array | Error | null> = {}): Stores {
  const reads: string[] = []
  const objects = storeAuditor({
    keys: async (area) =>
      area === 'heads' ? rows.map(({ seq }) => `heads/${seq}`) : [...OBJECTS.keys()].map(objectPath),
    headFile: async (seq) => Buffer.from(formatHead(headAt(rows, seq))),
    get: async (sha256) => {
      const bytes = stored[dayOf(sha256)]
      if (bytes instanceof Error) throw bytes
      return bytes === undefined ? (OBJECTS.get(sha256) ?? null) : bytes
    },
    logFiles: {
      list: async () => [],
      get: async () => null,
      put: () => Promise.reject(new Error('no write')),
    },
  })
  const watched: ObjectsAuditor = {
    ...objects,
    summarize: (key) => (reads.push(`ends ${dayOf(key.slice(-64))}`), objects.summarize(key)),
    prove: (manifest) => (reads.push(`whole ${manifest.asOfDay}`), objects.prove(manifest)),
  }
  return { reads, ledger: { read: async () => ({ ...contents, unreadable: [] }) }, objects: watched }
}

/** The stores with other functions for their objects. */
const withObjects = (changes: Partial<ObjectsAuditor>, stores = storesWith()): Stores => ({
  ...stores,
  objects: { ...stores.objects, ...changes },
})

/** The stores with another list of objects. */
function listing(list: () => Promise<string[]>): Stores {
  const stores = storesWith()
  const { keys } = stores.objects
  return withObjects({ keys: (area) => (area === 'heads' ? keys(area) : list()) }, stores)
}

type Options = Partial<AuditOptions & Pick<AuditPorts, 'onProgress'>> & { payloads?: boolean }

function verify(stores: AuditedStores, options: Options = {}): Promise<VerifyResult> {
  const { payloads = false, onProgress = () => undefined, ...changes } = options
  let now = 1_000
  const ports = { clock: () => (now += 5), random: () => 0, onProgress }
  return audit(ownArchive(stores, { expectedHead: null, payloads }), ports, {
    sample: null,
    since: null,
    jobs: 1,
    signal: new AbortController().signal,
    ...changes,
  })
}

describe('an audit', () => {
  test('an audit of a sound archive reads every object, the newest whole, and reports no finding', async () => {
    const stores = storesWith()
    expect(await verify(stores)).toEqual({
      cause: null,
      report: {
        ok: true,
        complete: true,
        publications: 8,
        objects: 8,
        bytes: BYTES,
        gaps: 1,
        head: { seq: 8, leaf: rows[7]?.leaf },
        findings: [],
        durationMs: 5,
      },
    })
    expect(stores.reads).toEqual(DAYS.map((day) => (day === NEWEST ? `whole ${day}` : `ends ${day}`)))
  })

  test('an audit of an archive without writes is sound and empty', async () => {
    const objects = { ...storesWith().objects, keys: async () => [] }
    const { report } = await verify({ ledger: { read: async () => null }, objects })
    const empty = { publications: 0, objects: 0, head: { seq: 0, leaf: '0'.repeat(64) } }
    expect(report).toMatchObject({ ok: true, complete: true, ...empty })
  })

  test('an audit reports objects without an entry as orphans, which are no damage', async () => {
    const keys = [...OBJECTS.keys()].map(objectPath)
    const { report } = await verify(listing(async () => [...keys, 'sha256/zz', 'sha256/aa/left']))
    const orphan = { code: 'orphan_object', publicationId: null, expected: null, actual: null }
    expect(report).toMatchObject({ ok: true })
    expect(report.findings).toEqual(['sha256/aa/left', 'sha256/zz'].map((path) => ({ ...orphan, path })))
  })

  test('an object with a read error is unreadable, leaves the archive unproved, and is no damage', async () => {
    const { report, cause } = await verify(storesWith({ [SECOND]: new Error('EIO') }))
    expect([cause, report]).toMatchObject([null, { ok: false, complete: true }])
    const sha256 = MANIFESTS[1]?.sha256 ?? ''
    expect(report.findings).toEqual([
      {
        code: 'object_unreadable',
        publicationId: `top-year-v1-${SECOND}`,
        path: objectPath(sha256),
        expected: sha256,
        actual: 'read error: EIO',
      },
    ])
  })

  test('an object whose ends do not tell its identity is read as a whole', async () => {
    const stores = storesWith()
    const { summarize } = stores.objects
    const unusual = { summarize: async (key: string) => ({ ...(await summarize(key)), identity: null }) }
    expect((await verify(withObjects(unusual as Partial<ObjectsAuditor>, stores))).report.ok).toBe(true)
    expect(stores.reads).toEqual(expect.arrayContaining(DAYS.map((day) => `whole ${day}`)))
  })

  test('a damaged list of objects is a finding, and the rest is still audited', async () => {
    const { report } = await verify(listing(() => Promise.reject(storageDamaged('sha256 is a file'))))
    expect(report).toMatchObject({ ok: false, complete: true, objects: 8 })
    expect(report.findings).toMatchObject([
      { code: 'object_unreadable', path: 'sha256', actual: 'sha256 is a file' },
    ])
  })
})

describe('the selection of objects', () => {
  test.each<[what: string, options: Options, reads: string[]]>([
    ['from a day on', { since: '2026-01-07' }, ['ends 2026-01-07', 'ends 2026-01-08', `whole ${NEWEST}`]],
    ['of none, but for the newest', { since: '2027-01-01' }, [`whole ${NEWEST}`]],
    [
      'of a sample, and the newest',
      { sample: { by: 'share', percent: 25 } },
      [`ends ${SECOND}`, `ends ${THIRD}`, `whole ${NEWEST}`],
    ],
    ['as a whole on request, none twice', { payloads: true }, DAYS.map((day) => `whole ${day}`)],
  ])('the objects are read %s', async (_what, options, reads) => {
    const stores = storesWith()
    const { report } = await verify(stores, options)
    expect(stores.reads.toSorted()).toEqual(reads.toSorted())
    const bytes = MANIFESTS.filter(({ asOfDay }) => reads.some((read) => read.endsWith(asOfDay))).reduce(
      (sum, { byteSize }) => sum + byteSize,
      0,
    )
    expect(report).toMatchObject({ ok: true, publications: 8, objects: reads.length, bytes })
  })
})

describe('an audit that ends early', () => {
  const broken = new Error('the store went away')

  test('an interrupted audit reports its findings so far, that it is not complete, and the cause', async () => {
    const stores = storesWith({ [FIRST]: null, [SECOND]: new Uint8Array(MANIFESTS[1]?.byteSize ?? 0) })
    const { summarize } = stores.objects
    const failing: ObjectsAuditor['summarize'] = (key) =>
      key.endsWith(MANIFESTS[3]?.sha256 ?? '') ? Promise.reject(broken) : summarize(key)
    const { report, cause } = await verify(withObjects({ summarize: failing }, stores))
    expect(cause).toBe(broken)
    expect(report).toMatchObject({ ok: false, complete: false, publications: 8, objects: 3, gaps: 1 })
    expect(report.findings).toMatchObject([{ code: 'object_missing' }, { code: 'digest_mismatch' }])
  })

  test('an audit that ends because a store cannot be read is not ok and has no finding', async () => {
    const read = (): Promise<never> => Promise.reject(broken)
    for (const stores of [{ ...storesWith(), ledger: { read } }, withObjects({ headFile: read })]) {
      const { report, cause } = await verify(stores)
      expect(cause).toBe(broken)
      expect(report).toMatchObject({ ok: false, complete: false, publications: 0, objects: 0, findings: [] })
    }
  })

  test('an audit checks everything but orphans when the objects cannot be listed', async () => {
    const { report, cause } = await verify(listing(() => Promise.reject(broken)))
    expect(cause).toBe(broken)
    expect(report).toMatchObject({ ok: false, complete: false, publications: 8, objects: 8, findings: [] })
  })

  test('an audit that a signal ends stops reading and keeps its findings', async () => {
    const stores = storesWith({ [FIRST]: null })
    const stopping = new AbortController()
    const stopped = new DOMException('stopped', 'AbortError')
    const { report, cause } = await verify(stores, {
      signal: stopping.signal,
      onProgress: ({ done }) => done === 3 && stopping.abort(stopped),
    })
    expect(cause).toBe(stopped)
    expect(report).toMatchObject({ ok: false, complete: false, objects: 3 })
    expect(report.findings).toMatchObject([{ code: 'object_missing' }])
    expect(stores.reads).toEqual([FIRST, SECOND, THIRD].map((day) => `ends ${day}`))
  })
})

describe('a running publisher', () => {
  /** The ledger has this many entries, and each look at the heads sees them a step further on. */
  function growing(entries: number, headsSeen: number[]): { stores: Stores; looks: string[] } {
    const looks: string[] = []
    const stores = storesWith()
    const keys: ObjectsAuditor['keys'] = async (area) => {
      if (area !== 'heads') return stores.objects.keys(area)
      looks.push('heads')
      const seen = headsSeen.length > 1 ? headsSeen.shift() : headsSeen[0]
      return rows.slice(0, seen).map(({ seq }) => `heads/${seq}`)
    }
    const grown = { ...contents, rows: rows.slice(0, entries), unreadable: [] }
    const ledger = { read: async () => (looks.push('ledger'), grown) }
    return { stores: { ...withObjects({ keys }, stores), ledger }, looks }
  }

  test.each<[what: string, entries: number, headsSeen: number[], looks: string[], missing: string[]]>([
    ['commits once between heads and ledger leaves no finding', 4, [3], ['heads', 'ledger'], []],
    [
      'commits twice between them makes both be read again',
      5,
      [3, 5],
      ['heads', 'ledger', 'heads', 'ledger'],
      [],
    ],
    ['does not move cannot hide missing heads', 5, [3], ['heads', 'ledger', 'heads'], ['heads/4']],
  ])('a publisher that %s', async (_what, entries, headsSeen, expected, missing) => {
    const { stores, looks } = growing(entries, headsSeen)
    const { report } = await verify(stores)
    const damage = report.findings.filter(({ code }) => code !== 'orphan_object')
    expect(damage).toMatchObject(missing.map((path) => ({ code: 'head_mismatch', path, actual: 'absent' })))
    expect(looks).toEqual(expected)
  })

  test('an object that is published during the audit is no orphan', async () => {
    const order: string[] = []
    const { ledger, objects } = storesWith()
    await verify({
      ledger: { read: () => (order.push('ledger'), ledger.read()) },
      objects: { ...objects, keys: (area) => (order.push(area), objects.keys(area)) },
    })
    expect(order).toEqual(['sha256', 'heads', 'ledger'])
  })
})

test.each<[inLedger: number, inEach: number, complete: boolean]>([
  [1_000, 0, true],
  [1_001, 0, false],
  [300, 88, false],
])('another host with %i and eight times %i findings has at most a thousand of them', async (...given) => {
  const [inLedger, inEach, complete] = given
  const findings = (count: number, from = 0): Finding[] =>
    Array.from({ length: count }, (_, index) => finding('row_tampered', `entries/${from + index}`, null, 'x'))
  const host: ArchiveReader = {
    isOwn: false,
    read: async (report) => {
      report(findings(inLedger))
      return {
        ledger: { findings: [], timeline, gaps: 0, head: { seq: 8, leaf: '' } },
        examine: async (item, reportItem) =>
          reportItem(findings(inEach, 10_000 * (1 + timeline.indexOf(item)))),
        rest: async () => undefined,
      }
    },
    close: () => undefined,
  }
  const ports: AuditPorts = { clock: Date.now, random: () => 0, onProgress: () => undefined }
  const { signal } = new AbortController()
  const { report, cause } = await audit(host, ports, { sample: null, since: null, jobs: 2, signal })
  expect(report).toMatchObject({ ok: false, complete, comparedWith: 'none', log: null })
  expect(report.findings).toHaveLength(1_000)
  const tooMany = {
    code: 'source_unavailable',
    detail: expect.stringContaining('more than 1000 findings') as string,
  }
  if (complete) expect(cause).toBeNull()
  else expect(cause).toMatchObject(tooMany)
})
