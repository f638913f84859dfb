import { describe, expect, test } from 'vitest'
import type { LedgerAuditor, ObjectsAuditor } from '../../../src/domain/year/ports.ts'
import { storageDamaged } from '../../../src/domain/refusal.ts'
import { objectPath } from '../../../src/domain/year/examine.ts'
import type { NoBytes, ObjectOutcome, ReadObject } from '../../../src/domain/year/examine.ts'
import { READ_ERROR, finding } from '../../../src/domain/year/finding.ts'
import type { Finding } from '../../../src/domain/year/finding.ts'
import type { AuditedContents, LedgerContents, LedgerRow, Manifest } from '../../../src/domain/year/ledger.ts'
import { formatHead } from '../../../src/domain/year/ledger.ts'
import { proveLedger } from '../../../src/domain/year/check.ts'
import type { LedgerAudit } from '../../../src/domain/year/check.ts'
import { audit } from '../../../src/jobs/archive/audit.ts'
import type {
  ArchiveReader,
  AuditOptions,
  AuditPorts,
  VerifyResult,
} from '../../../src/jobs/archive/audit.ts'
import { ownArchive } from '../../../src/jobs/archive/archives.ts'
import { chainOf, headAt, publication, sampleLedger } from '../../domain/year/ledger-rows.ts'

type Examination = 'identity' | 'whole'

/** One object that was asked for: its as-of day, and how it was to be examined. */
interface Asked {
  day: string
  examination: Examination
}

/** An archive in memory that tells what it was asked. */
interface FakeArchive {
  ledger: LedgerAuditor
  objects: ObjectsAuditor
  asked: Asked[]
  onProgress: AuditPorts['onProgress']
}

const CONTENTS = sampleLedger()

/** The publications of {@link sampleLedger}, oldest first. */
const MANIFESTS = proveLedger(CONTENTS, headAt(CONTENTS.rows, 7)).timeline.map((item) => item.manifest)
const DAYS = MANIFESTS.map(({ asOfDay }) => asOfDay)

function audited(contents: LedgerContents): AuditedContents {
  return { ...contents, unreadable: [] }
}

/** Keys and files of the heads up to an entry. */
function headsUpTo(rows: readonly LedgerRow[], seq: () => number): Pick<ObjectsAuditor, 'keys' | 'headFile'> {
  return {
    keys: (area) =>
      Promise.resolve(
        area === 'heads'
          ? rows.slice(0, seq()).map((row) => `heads/${row.seq}`)
          : MANIFESTS.map(({ sha256 }) => objectPath(sha256)),
      ),
    headFile: (key) => {
      const bytes = Buffer.from(formatHead(headAt(rows, Number(key.slice('heads/'.length)))))
      return Promise.resolve({ found: 'bytes', bytes })
    },
  }
}

const GONE = { found: 'nothing' } as const
const BROKEN = { found: 'something else', why: `${READ_ERROR}EIO` } as const

/** How an object reads: as it was sealed, with another digest, invalid with ends that tell nothing, or not at all. */
type Reading = 'sound' | 'differs' | 'unusual' | NoBytes | Error

const STOPPED = new DOMException('stopped', 'AbortError')

/** A signal that ends an audit once it has examined so many objects. */
function stoppedAfter(count: number, archive: FakeArchive): AbortSignal {
  const stopping = new AbortController()
  archive.onProgress = ({ done }) => {
    if (done === count) stopping.abort(STOPPED)
  }
  return stopping.signal
}

function summaryOf(manifest: Manifest, reading: Reading): ReadObject {
  if (typeof reading === 'object') {
    if (reading instanceof Error) throw reading
    return reading
  }
  const { byteSize, publishedAt, generatedAt, windowStart, windowEnd } = manifest
  const { schemaVersion, kind, publicationId, algorithmVersion, asOfDay } = manifest
  const instants = [generatedAt, windowStart, windowEnd, publishedAt]
  const scalars = [schemaVersion, kind, publicationId, algorithmVersion, asOfDay]
  const identity = JSON.stringify([...scalars, ...instants])
  const sha256 = reading === 'differs' ? 'f'.repeat(64) : manifest.sha256
  return { found: 'bytes', byteSize, sha256, identity: reading === 'unusual' ? null : identity }
}

function outcomeOf(reading: Reading): ObjectOutcome {
  if (typeof reading === 'object') {
    if (reading instanceof Error) throw reading
    return reading
  }
  const code = reading === 'differs' ? 'digest_mismatch' : 'envelope_invalid'
  const problem = { code, difference: 'is wrong', expected: 'a digest', actual: 'x' } as const
  return { found: 'bytes', byteSize: 12_345, problems: reading === 'sound' ? [] : [problem] }
}

/** @param readings of objects by their day; the others are sound */
function fakeArchive(
  readings: Record<string, Reading> = {},
  changes: { ledger?: Partial<LedgerAuditor>; objects?: Partial<ObjectsAuditor> } = {},
): FakeArchive {
  const readingOf = (manifest: Manifest, examination: Examination): Reading => {
    const day = manifest.asOfDay
    archive.asked.push({ day, examination })
    return readings[day] ?? 'sound'
  }
  const archive: FakeArchive = {
    asked: [],
    onProgress: () => undefined,
    ledger: { read: () => Promise.resolve(audited(CONTENTS)), ...changes.ledger },
    objects: {
      ...headsUpTo(CONTENTS.rows, () => 7),
      logFiles: { list: () => Promise.resolve([]), get: () => Promise.resolve(null) },
      async summarize(key) {
        const known = MANIFESTS.find(({ sha256 }) => objectPath(sha256) === key)
        if (known === undefined) throw new Error(`no publication has the object ${key}`)
        return summaryOf(known, readingOf(known, 'identity'))
      },
      prove: async (manifest) => outcomeOf(readingOf(manifest, 'whole')),
      ...changes.objects,
    },
  }
  return archive
}

function verify(
  archive: FakeArchive,
  { payloads = false, ...changes }: Partial<AuditOptions> & { payloads?: boolean } = {},
): Promise<VerifyResult> {
  const options = { sample: null, since: null, jobs: 1, signal: new AbortController().signal, ...changes }
  const own = ownArchive(archive, { expectedHead: null, payloads })
  let now = 1_000
  const ports = { clock: () => (now += 5), random: () => 0, onProgress: archive.onProgress }
  return audit(own, ports, options)
}

/** A list of objects instead of the one of the sample. */
function listing(keys: () => Promise<string[]>): { objects: Partial<ObjectsAuditor> } {
  const heads = headsUpTo(CONTENTS.rows, () => 7)
  return { objects: { keys: (area) => (area === 'heads' ? heads.keys(area) : keys()) } }
}

const NEWEST = '2026-01-07'

describe('an audit', () => {
  test('an audit of a sound archive reads every object and reports no finding', async () => {
    const objects = fakeArchive()
    expect(await verify(objects)).toEqual({
      cause: null,
      report: {
        ok: true,
        complete: true,
        publications: 7,
        objects: 7,
        bytes: 7 * 12_345,
        gaps: 2,
        head: { seq: 7, leaf: CONTENTS.rows[6]?.leaf },
        findings: [],
        durationMs: 5,
      },
    })
  })

  test('an audit of an archive without writes is sound and empty', async () => {
    const ledger = { read: () => Promise.resolve(null) }
    const { report } = await verify(fakeArchive({}, { ledger, objects: { keys: () => Promise.resolve([]) } }))
    expect(report).toMatchObject({
      ok: true,
      complete: true,
      publications: 0,
      objects: 0,
      head: { seq: 0, leaf: '0'.repeat(64) },
    })
  })

  test('an audit reports objects without an entry as orphans, which are no damage', async () => {
    const keys = [...MANIFESTS.map(({ sha256 }) => objectPath(sha256)), 'sha256/zz', 'sha256/aa/left']
    const listed = listing(() => Promise.resolve(keys))
    const { report } = await verify(fakeArchive({}, listed))
    const orphan = { code: 'orphan_object', publicationId: null, expected: null, actual: null }
    expect(report).toMatchObject({ ok: true })
    expect(report.findings).toEqual(['sha256/aa/left', 'sha256/zz'].map((path) => ({ ...orphan, path })))
  })
})

describe('a failing object', () => {
  test('an object with a read error is unreadable, leaves the archive unproved, and is no damage', async () => {
    const { report, cause } = await verify(fakeArchive({ '2026-01-02': BROKEN }))
    expect([cause, report]).toMatchObject([null, { ok: false, complete: true }])
    expect(report.findings).toEqual([
      {
        code: 'object_unreadable',
        publicationId: 'v2 of 2 January',
        path: expect.stringMatching(/^sha256\/20\//) as unknown,
        expected: expect.stringMatching(/^20260102/) as unknown,
        actual: 'read error: EIO',
      },
    ])
  })
})

describe('the selection of objects', () => {
  const daysRead = ({ asked }: FakeArchive, examination: Examination): string[] =>
    asked.filter((one) => one.examination === examination).map(({ day }) => day)

  test('a day or a sample limits what is read', async () => {
    const objects = fakeArchive()
    const { report } = await verify(objects, { since: '2026-01-03' })
    expect(objects.asked.map(({ day }) => day)).toEqual(['2026-01-03', '2026-01-06', NEWEST])
    expect(report).toMatchObject({ ok: true, publications: 7, objects: 3, bytes: 3 * 12_345 })
    const sampled = fakeArchive()
    await verify(sampled, { sample: { by: 'share', percent: 30 } })
    expect(daysRead(sampled, 'identity')).toHaveLength(3)
  })

  test('the newest publication is always read whole and counted once', async () => {
    const none = fakeArchive()
    const limited = await verify(none, { since: '2027-01-01' })
    expect(none.asked).toEqual([{ day: NEWEST, examination: 'whole' }])
    expect(limited.report).toMatchObject({ objects: 1, bytes: 12_345 })
    const all = fakeArchive()
    const { report } = await verify(all)
    expect(daysRead(all, 'whole')).toEqual([NEWEST])
    expect(report.objects).toBe(7)
  })

  test('every publication is proved whole on request, and the newest not twice', async () => {
    const objects = fakeArchive()
    await verify(objects, { payloads: true })
    expect(daysRead(objects, 'whole').sort()).toEqual(DAYS)
    expect(objects.asked).toHaveLength(7)
  })
})

describe('an object', () => {
  test('an object whose ends do not tell its identity is read as a whole', async () => {
    const archive = fakeArchive({ '2026-01-02': 'unusual' })
    const { report } = await verify(archive)
    expect(report.findings).toMatchObject([{ code: 'envelope_invalid' }])
  })
})

describe('an audit that ends early', () => {
  const broken = new Error('the store went away')

  test('an interrupted audit reports its findings so far, that it is not complete, and the cause', async () => {
    const archive = fakeArchive({ '2025-12-30': GONE, '2025-12-31': 'differs', '2026-01-02': broken })
    const { report, cause } = await verify(archive)
    expect(cause).toBe(broken)
    expect(report).toMatchObject({ ok: false, complete: false, publications: 7, objects: 3, gaps: 2 })
    expect(report.findings).toMatchObject([{ code: 'object_missing' }, { code: 'digest_mismatch' }])
  })

  test('an audit that ends because a store cannot be read is not ok and has no finding', async () => {
    const read = (): Promise<never> => Promise.reject(broken)
    for (const changes of [{ ledger: { read } }, { objects: { headFile: read } }]) {
      const { report, cause } = await verify(fakeArchive({}, changes))
      expect(cause).toBe(broken)
      expect(report).toMatchObject({ ok: false, complete: false, publications: 0, objects: 0, findings: [] })
    }
  })

  test('an audit checks everything but orphans when the objects cannot be listed', async () => {
    const unlisted = listing(() => Promise.reject(broken))
    const { report, cause } = await verify(fakeArchive({}, unlisted))
    expect(cause).toBe(broken)
    expect(report).toMatchObject({ ok: false, complete: false, publications: 7, objects: 7, findings: [] })
  })

  test('an audit that a signal ends stops reading and keeps its findings', async () => {
    const archive = fakeArchive({ '2025-12-30': GONE })
    const { report, cause } = await verify(archive, { signal: stoppedAfter(3, archive) })
    expect(cause).toBe(STOPPED)
    expect(report).toMatchObject({ ok: false, complete: false, objects: 3 })
    expect(report.findings).toMatchObject([{ code: 'object_missing' }])
    expect(archive.asked.map(({ day }) => day)).toEqual(DAYS.slice(0, 3))
  })
})

describe('a damaged store', () => {
  test('a damaged list of objects is a finding, and the rest is still audited', async () => {
    const damaged = listing(() => Promise.reject(storageDamaged('sha256 is a file')))
    const { report } = await verify(fakeArchive({}, damaged))
    expect(report).toMatchObject({ ok: false, complete: true, objects: 7 })
    expect(report.findings).toMatchObject([
      { code: 'object_unreadable', path: 'sha256', actual: 'sha256 is a file' },
    ])
  })
})

describe('a running publisher', () => {
  const rows = chainOf(['2026-01-01', '2026-01-02', '2026-01-03'].map((day) => publication(day)))

  /** The ledger has this many entries, and each look at the heads sees them a step further on. */
  function growing(entries: number, headsSeen: number[]) {
    const looks = { ledger: 0, heads: 0 }
    const contents = audited({ rows: rows.slice(0, entries), legacy: [], founding: null })
    const heads = headsUpTo(rows, () => headsSeen[looks.heads++] ?? headsSeen.at(-1) ?? 0)
    const keys: ObjectsAuditor['keys'] = (area) => (area === 'heads' ? heads.keys(area) : Promise.resolve([]))
    const objects = { ...heads, prove: () => Promise.resolve(outcomeOf('sound')), keys }
    return { looks, ledger: { read: () => Promise.resolve((looks.ledger++, contents)) }, objects }
  }

  test.each([
    ['commits once between heads and ledger leaves no finding', 2, [1], 1, 1],
    ['commits twice between them makes both be read again', 3, [1, 3], 2, 2],
  ])('a publisher that %s', async (_what, entries, headsSeen, ledger, heads) => {
    const { looks, ...changes } = growing(entries, headsSeen)
    expect((await verify(fakeArchive({}, changes), { payloads: true })).report).toMatchObject({
      ok: true,
      findings: [],
    })
    expect(looks).toEqual({ ledger, heads })
  })

  test('a running publisher cannot hide missing heads', async () => {
    const { looks, ...changes } = growing(3, [1])
    const { report } = await verify(fakeArchive({}, changes), { payloads: true })
    expect(report.findings).toMatchObject([{ code: 'head_mismatch', path: 'heads/2', actual: 'absent' }])
    expect(looks).toEqual({ ledger: 1, heads: 2 })
  })

  test('an object that is published during the audit is no orphan', async () => {
    const order: string[] = []
    const archive = fakeArchive()
    const { keys } = archive.objects
    const { read } = archive.ledger
    archive.objects.keys = (area) => (order.push(area), keys(area))
    archive.ledger.read = () => (order.push('ledger'), read())
    await verify(archive)
    expect(order).toEqual(['sha256', 'heads', 'ledger'])
  })
})

describe('the findings of another host', () => {
  const findings = (count: number, from = 0): Finding[] =>
    Array.from({ length: count }, (_, index) => finding('row_tampered', `entries/${from + index}`, null, 'x'))

  /** A host with findings in its ledger and, from the same numbers on, in each of its publications. */
  const hostOf = (inLedger: number, inEach: number): ArchiveReader => ({
    isOwn: false,
    read: (report) => {
      report(findings(inLedger))
      const { timeline } = proveLedger(CONTENTS, headAt(CONTENTS.rows, 7))
      const ledger: LedgerAudit = { findings: [], timeline, gaps: 0, head: { seq: 7, leaf: '' } }
      return Promise.resolve({
        ledger,
        examine: (item, reportItem) =>
          Promise.resolve(reportItem(findings(inEach, 10_000 * (1 + timeline.indexOf(item))))),
        rest: () => Promise.resolve(),
      })
    },
    close: () => undefined,
  })

  test.each<[inLedger: number, inEach: number, complete: boolean]>([
    [1_000, 0, true],
    [1_001, 0, false],
    [300, 101, false],
  ])('a host with %i and seven times %i findings has at most a thousand of them', async (...given) => {
    const [inLedger, inEach, complete] = given
    const ports: AuditPorts = { clock: Date.now, random: () => 0, onProgress: () => undefined }
    const options: AuditOptions = { sample: null, since: null, jobs: 2, signal: new AbortController().signal }
    const { report, cause } = await audit(hostOf(inLedger, inEach), ports, options)
    expect(report).toMatchObject({ ok: false, complete, comparedWith: 'none', log: null })
    expect(report.findings).toHaveLength(1_000)
    if (!complete)
      expect(cause).toMatchObject({
        code: 'source_unavailable',
        detail: expect.stringContaining('more than 1000 findings'),
      })
  })
})
