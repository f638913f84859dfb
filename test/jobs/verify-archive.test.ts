import { describe, expect, test } from 'vitest'
import type { Auditors, ReadAhead } from '../../src/domain/ports.ts'
import { storageDamaged, storageUnavailable } from '../../src/domain/refusal.ts'
import { objectPath, READ_ERROR } from '../../src/domain/year/finding.ts'
import type { AuditedContents, AuditedHead } from '../../src/domain/year/audit.ts'
import type { ObjectOutcome, SeenObject } from '../../src/domain/year/finding.ts'
import { formatInstant } from '../../src/domain/time.ts'
import { manifestOf, timelineOf } from '../../src/domain/year/chain.ts'
import { seeBytes } from '../../src/domain/year/envelope.ts'
import type { LedgerContents, LedgerRow, Manifest } from '../../src/domain/year/ledger.ts'
import { verifyArchive } from '../../src/jobs/verify-archive.ts'
import type { VerifyResult, VerifyOptions, VerifyPorts } from '../../src/jobs/verify-archive.ts'
import {
  chainOf,
  headAt,
  legacyRow,
  manifest,
  publication,
  sampleLedger,
} from '../domain/year/ledger-rows.ts'

type Examination = 'identity' | 'whole'

/** One object that was asked for: its as-of day, and how it was to be examined. */
interface Asked {
  day: string
  examination: Examination
}

/** An archive in memory that tells what it was asked. */
interface FakeArchive {
  ports: VerifyPorts
  asked: Asked[]
  notes: string[]
}

const DAYS = [
  '2025-12-30',
  '2025-12-31',
  '2026-01-01',
  '2026-01-02',
  '2026-01-03',
  '2026-01-06',
  '2026-01-07',
]

/** The publications of {@link sampleLedger}, oldest first. */
function sampleManifests(): Manifest[] {
  const v1 = DAYS.slice(0, 3).map((day, index) => legacyRow(index + 1, day))
  const items = v1.map(({ position, envelopeKind, ...columns }) => ({
    manifest: { ...columns, kind: envelopeKind },
    ledger: 'v1' as const,
    seq: position,
  }))
  const own = DAYS.slice(3).map((day, index) => ({
    manifest: manifest(day),
    ledger: 'versioned' as const,
    seq: index + 1,
  }))
  return timelineOf([...items, ...own]).map((item) => item.manifest)
}

function audited({ rows, legacy, founding }: LedgerContents): AuditedContents {
  return { rows: rows.map((row) => ({ row })), legacy: legacy.map((row) => ({ row })), founding }
}

function headsOf(rows: readonly LedgerRow[], upTo: number): AuditedHead[] {
  return rows.slice(0, upTo).map(({ seq }) => ({ path: `heads/${seq}`, seq, head: headAt(rows, seq) }))
}

const SOUND: ObjectOutcome = { found: 'bytes', byteSize: 12_345, problems: [] }

function differing(expected: string): ObjectOutcome {
  const problem = {
    code: 'digest_mismatch' as const,
    what: 'does not match its digest',
    expected,
    actual: 'x',
  }
  return { found: 'bytes', byteSize: 12_345, problems: [problem] }
}

/** Objects seen ahead, by day; and whether the reading was begun and ended. */
function readingAhead(objects: Record<string, SeenObject>, batches = 2) {
  const known = sampleManifests()
  const told = { begun: 0, closed: 0 }
  const all = Object.entries(objects).map(([day, seen]) => {
    const sha256 = known.find(({ asOfDay }) => asOfDay === day)?.sha256 ?? day.padEnd(64, '0')
    return { key: objectPath(sha256), seen }
  })
  const readAhead = (): ReadAhead => {
    told.begun += 1
    return {
      async *seen(signal) {
        await Promise.resolve()
        for (let start = 0; start < all.length; start += batches) {
          signal.throwIfAborted()
          yield all.slice(start, start + batches)
        }
      },
      close: () => Promise.resolve(void (told.closed += 1)),
    }
  }
  return { told, archive: { readAhead } }
}

/** The object of a day as it was sealed, seen without its manifest. */
function seenSound(day: string): SeenObject {
  const { rows, legacy } = sampleLedger()
  const publications = [...rows.filter(({ kind }) => kind === 'publication'), ...legacy].map(manifestOf)
  const known = publications.find((one) => one?.asOfDay === day)
  if (!known) throw new Error(`there is no publication of ${day}`)
  const { sha256, byteSize, publishedAt, generatedAt, windowStart, windowEnd, ...rest } = known
  const texts = Object.entries({ generatedAt, windowStart, windowEnd, archivedAt: publishedAt }).map(
    ([name, instant]) => [name, formatInstant(instant)],
  )
  const { archivedAt, ...leading } = Object.fromEntries(texts)
  const text = JSON.stringify({ ...rest, ...leading, feed: {}, archivedAt })
  return { found: 'bytes', ...seeBytes(new TextEncoder().encode(text)), byteSize, sha256 }
}

/** What the readings of an object give, one after the other; the last one again and again. */
type Readings = Record<string, (ObjectOutcome | Error)[]>

function fakeArchive(
  readings: Readings = {},
  changes: { ledger?: Partial<Auditors['ledger']>; archive?: Partial<Auditors['archive']> } = {},
): FakeArchive {
  const contents = sampleLedger()
  const asked: Asked[] = []
  const notes: string[] = []
  const readingsOf = new Map<string, number>()
  const outcomeOf = (day: string): ObjectOutcome => {
    const list = readings[day] ?? [SOUND]
    const nth = readingsOf.get(day) ?? 0
    readingsOf.set(day, nth + 1)
    const outcome = list[Math.min(nth, list.length - 1)] ?? SOUND
    if (outcome instanceof Error) throw outcome
    return outcome
  }
  const archive: Auditors['archive'] = {
    heads: () => Promise.resolve(headsOf(contents.rows, 7)),
    objectKeys: () => Promise.resolve(sampleManifests().map(({ sha256 }) => objectPath(sha256))),
    readAhead: () => null,
    async *examine(manifests, examination, _jobs, signal) {
      await Promise.resolve()
      for (const [index, { asOfDay: day }] of manifests.entries()) {
        signal.throwIfAborted()
        asked.push({ day, examination })
        yield [{ index, outcome: outcomeOf(day) }]
      }
    },
    ...changes.archive,
  }
  const ledger = { read: () => Promise.resolve(audited(contents)), ...changes.ledger }
  let now = 1_000
  const ports: VerifyPorts = {
    ledger,
    archive,
    clock: () => (now += 5),
    random: () => 0,
    onProgress: () => undefined,
    onNote: (note) => notes.push(note),
  }
  return { ports, asked, notes }
}

function verify({ ports }: FakeArchive, changes: Partial<VerifyOptions> = {}): Promise<VerifyResult> {
  return verifyArchive(ports, {
    sample: null,
    since: null,
    expectedHead: null,
    payloads: false,
    jobs: 2,
    signal: new AbortController().signal,
    ...changes,
  })
}

const NEWEST = '2026-01-07'

describe('an audit', () => {
  test('of a sound archive reads every object and reports no finding', async () => {
    const archive = fakeArchive()
    const { report, cause } = await verify(archive)
    expect(cause).toBeNull()
    expect(report).toEqual({
      ok: true,
      complete: true,
      publications: 7,
      objects: 7,
      bytes: 7 * 12_345,
      gaps: 2,
      head: { seq: 7, leaf: sampleLedger().rows[6]?.leaf },
      findings: [],
      durationMs: 5,
    })
    expect(archive.notes).toEqual([])
  })

  test('names everything that is wrong, not only the first', async () => {
    const archive = fakeArchive({
      '2025-12-30': [{ found: 'nothing' }],
      '2026-01-02': [differing('a digest')],
      '2026-01-03': [{ found: 'something else', why: 'a symbolic link' }],
    })
    const { report } = await verify(archive)
    expect(report.ok).toBe(false)
    expect(report.complete).toBe(true)
    expect(report.findings.map(({ code }) => code)).toEqual([
      'object_missing',
      'digest_mismatch',
      'object_unreadable',
    ])
  })

  test('of an archive that was never written to is sound and empty', async () => {
    const { report } = await verify(
      fakeArchive(
        {},
        {
          ledger: { read: () => Promise.resolve(null) },
          archive: { heads: () => Promise.resolve([]), objectKeys: () => Promise.resolve([]) },
        },
      ),
    )
    expect(report).toMatchObject({
      ok: true,
      complete: true,
      publications: 0,
      objects: 0,
      head: { seq: 0, leaf: '0'.repeat(64) },
    })
  })

  test('tells objects no entry names as orphans, which harm nothing', async () => {
    const keys = [...sampleManifests().map(({ sha256 }) => objectPath(sha256)), 'sha256/zz', 'sha256/aa/left']
    const { report } = await verify(fakeArchive({}, { archive: { objectKeys: () => Promise.resolve(keys) } }))
    expect(report.ok).toBe(true)
    expect(report.findings).toEqual(
      ['sha256/aa/left', 'sha256/zz'].map((path) => ({
        code: 'orphan_object',
        publicationId: null,
        path,
        expected: null,
        actual: null,
      })),
    )
  })
})

describe('an object that does not hold', () => {
  test('is read once more, and one that then holds is a note and no finding', async () => {
    const archive = fakeArchive({ '2026-01-02': [differing('a digest'), SOUND] })
    const { report } = await verify(archive)
    expect(report).toMatchObject({ ok: true, objects: 7, findings: [] })
    expect(archive.notes).toEqual([
      expect.stringMatching(/sha256\/20\/\w+ is sound at the second reading.*\(digest_mismatch\)/),
    ])
  })

  test('is not read a third time', async () => {
    const archive = fakeArchive({ '2026-01-02': [{ found: 'nothing' }, { found: 'nothing' }, SOUND] })
    const { report } = await verify(archive)
    expect(report.findings).toMatchObject([{ code: 'object_missing' }])
    expect(archive.asked.filter(({ day }) => day === '2026-01-02')).toHaveLength(2)
  })

  test('is reported as the second reading found it', async () => {
    const gone: ObjectOutcome = { found: 'nothing' }
    const { report } = await verify(fakeArchive({ '2026-01-02': [differing('a digest'), gone] }))
    expect(report.findings.map(({ code }) => code)).toEqual(['object_missing'])
  })

  test('for a read error that goes away is a note and no finding', async () => {
    const broken: ObjectOutcome = { found: 'something else', why: `${READ_ERROR}EIO` }
    const archive = fakeArchive({ '2026-01-02': [broken, SOUND] })
    expect((await verify(archive)).report).toMatchObject({ ok: true, complete: true, findings: [] })
    expect(archive.notes).toHaveLength(1)
  })

  test('for a read error that stays is unreadable, leaves the archive unproved, and is no damage', async () => {
    const broken: ObjectOutcome = { found: 'something else', why: `${READ_ERROR}EIO` }
    const { report, cause } = await verify(fakeArchive({ '2026-01-02': [broken] }))
    expect(report).toMatchObject({ ok: false, complete: true })
    expect(report.findings).toEqual([
      {
        code: 'object_unreadable',
        publicationId: 'v2 of 2 January',
        path: expect.stringMatching(/^sha256\/20\//) as unknown,
        expected: expect.stringMatching(/^20260102/) as unknown,
        actual: 'read error: EIO',
      },
    ])
    expect(cause).toBeNull()
  })
})

describe('what is read', () => {
  const daysRead = ({ asked }: FakeArchive, examination: Examination): string[] =>
    asked.filter((one) => one.examination === examination).map(({ day }) => day)

  test('is limited by a day', async () => {
    const archive = fakeArchive()
    const { report } = await verify(archive, { since: '2026-01-03' })
    expect(archive.asked.map(({ day }) => day)).toEqual([NEWEST, '2026-01-03', '2026-01-06'])
    expect(report).toMatchObject({ ok: true, publications: 7, objects: 3, bytes: 3 * 12_345 })
  })

  test('is limited by a sample', async () => {
    const archive = fakeArchive()
    await verify(archive, { sample: { by: 'share', percent: 30 } })
    expect(daysRead(archive, 'identity')).toHaveLength(3)
  })

  test('of several buckets together is everything, and nothing twice', async () => {
    const read = await Promise.all(
      [1, 2, 3].map(async (bucket) => {
        const archive = fakeArchive()
        await verify(archive, { sample: { by: 'bucket', bucket, buckets: 3 } })
        expect(daysRead(archive, 'whole')).toEqual([NEWEST])
        return daysRead(archive, 'identity')
      }),
    )
    expect([...read.flat(), NEWEST].sort()).toEqual(DAYS)
  })

  test('always holds the newest publication, whole, and counts it once', async () => {
    const none = fakeArchive()
    const limited = await verify(none, { since: '2027-01-01' })
    expect(none.asked).toEqual([{ day: NEWEST, examination: 'whole' }])
    expect(limited.report).toMatchObject({ objects: 1, bytes: 12_345 })
    const all = fakeArchive()
    const { report } = await verify(all)
    expect(daysRead(all, 'whole')).toEqual([NEWEST])
    expect(report.objects).toBe(7)
  })

  test('finds a newest publication no server would serve, although its digest holds', async () => {
    const problem = { code: 'envelope_invalid' as const, what: 'is no payload', expected: null, actual: null }
    const invalid: ObjectOutcome = { found: 'bytes', byteSize: 12_345, problems: [problem] }
    const { report } = await verify(fakeArchive({ [NEWEST]: [invalid] }))
    expect(report).toMatchObject({ ok: false, findings: [{ code: 'envelope_invalid' }] })
  })

  test('of the newest publication is read once more too before it is damage', async () => {
    const archive = fakeArchive({ [NEWEST]: [differing('a digest'), SOUND] })
    expect((await verify(archive)).report).toMatchObject({ ok: true, findings: [] })
    expect(archive.notes).toHaveLength(1)
  })

  test('is proved whole for every publication when asked for, and the newest not twice', async () => {
    const archive = fakeArchive()
    await verify(archive, { payloads: true })
    expect(daysRead(archive, 'whole').sort()).toEqual(DAYS)
    expect(archive.asked).toHaveLength(7)
  })
})

describe('objects that are read ahead', () => {
  const allSound = (): Record<string, SeenObject> =>
    Object.fromEntries(DAYS.map((day) => [day, seenSound(day)]))

  test('are not read again, but for the newest', async () => {
    const { told, archive } = readingAhead(allSound())
    const fake = fakeArchive({}, { archive })
    const { report, cause } = await verify(fake)
    expect(cause).toBeNull()
    expect(report).toMatchObject({ ok: true, complete: true, objects: 7, bytes: 7 * 12_345, findings: [] })
    expect(fake.asked).toEqual([{ day: NEWEST, examination: 'whole' }])
    expect(told).toEqual({ begun: 1, closed: 1 })
  })

  test('are examined as any other where they were not seen, or where that does not tell', async () => {
    const { '2025-12-30': _unseen, ...seen } = allSound()
    const { archive } = readingAhead({
      ...seen,
      '2026-01-02': { ...seenSound('2026-01-02'), identity: null } as SeenObject,
      '2026-01-03': { ...seenSound('2026-01-06'), sha256: sampleManifests()[4]?.sha256 } as SeenObject,
    })
    const fake = fakeArchive({ '2026-01-03': [differing('a digest')] }, { archive })
    const { report } = await verify(fake)
    expect(fake.asked.map(({ day }) => day)).toEqual([
      NEWEST,
      '2025-12-30',
      '2026-01-02',
      '2026-01-03',
      '2026-01-03',
    ])
    expect(report).toMatchObject({ ok: false, objects: 7, findings: [{ code: 'digest_mismatch' }] })
  })

  test('count as the first of two readings when they do not hold', async () => {
    const broken: SeenObject = { found: 'something else', why: `${READ_ERROR}EIO` }
    const changed = { ...seenSound('2026-01-03'), sha256: 'f'.repeat(64) } as SeenObject
    const { archive } = readingAhead({
      ...allSound(),
      '2026-01-06': { found: 'nothing' },
      '2026-01-03': changed,
      '2026-01-02': broken,
    })
    const fake = fakeArchive({ '2026-01-03': [differing('a digest')] }, { archive })
    const { report } = await verify(fake)
    expect(fake.asked.map(({ day }) => day)).toEqual([NEWEST, '2026-01-02', '2026-01-03', '2026-01-06'])
    expect(report.findings.map(({ code }) => code)).toEqual(['digest_mismatch'])
    expect(fake.notes).toEqual([
      expect.stringMatching(/second reading.*\(object_unreadable\)/),
      expect.stringMatching(/second reading.*\(object_missing\)/),
    ])
  })

  test('are no finding and are not counted when no entry names them', async () => {
    const { archive } = readingAhead({
      ...allSound(),
      '1999-01-01': { found: 'something else', why: 'a link' },
    })
    const { report } = await verify(fakeArchive({}, { archive }))
    expect(report).toMatchObject({ ok: true, objects: 7, findings: [] })
  })

  test.each<[string, Partial<VerifyOptions>]>([
    ['of a sample', { sample: { by: 'share', percent: 30 } }],
    ['from a day on', { since: '2026-01-03' }],
    ['with whole payloads', { payloads: true }],
  ])('are not asked for by an audit %s', async (_which, changes) => {
    const { told, archive } = readingAhead(allSound())
    expect((await verify(fakeArchive({}, { archive }), changes)).report.ok).toBe(true)
    expect(told).toEqual({ begun: 0, closed: 0 })
  })

  test.each<[string, Parameters<typeof fakeArchive>[1]]>([
    ['the ledger cannot be read', { ledger: { read: () => Promise.reject(new Error('EIO')) } }],
    ['the ledger is damaged', { ledger: { read: () => Promise.reject(storageDamaged('no database')) } }],
  ])('are given up when %s', async (_what, changes) => {
    const { told, archive } = readingAhead(allSound())
    const { report } = await verify(fakeArchive({}, { ...changes, archive }))
    expect(report).toMatchObject({ ok: false, objects: 0 })
    expect(told).toEqual({ begun: 1, closed: 1 })
  })

  test('are reported as far as they were seen when a signal ends the audit', async () => {
    const stopping = new AbortController()
    const reason = new DOMException('stopped', 'AbortError')
    const { told, archive } = readingAhead({ ...allSound(), '2025-12-30': { found: 'nothing' } })
    const fake = fakeArchive({}, { archive })
    fake.ports.onProgress = ({ objects }) => {
      if (objects === 5) stopping.abort(reason)
    }
    const { report, cause } = await verify(fake, { signal: stopping.signal })
    expect(cause).toBe(reason)
    expect(report).toMatchObject({ complete: false, objects: 5, findings: [{ code: 'object_missing' }] })
    expect(fake.asked).toEqual([{ day: NEWEST, examination: 'whole' }])
    expect(told.closed).toBe(1)
  })
})

describe('an audit that ends early', () => {
  const broken = new Error('the store went away')

  test('reports what it found until then, that it is not complete, and why', async () => {
    const archive = fakeArchive({
      '2025-12-30': [{ found: 'nothing' }],
      '2025-12-31': [differing('a digest')],
      '2026-01-02': [broken],
    })
    const { report, cause } = await verify(archive)
    expect(cause).toBe(broken)
    expect(report).toMatchObject({ ok: false, complete: false, publications: 7, objects: 4, gaps: 2 })
    expect(report.findings.map(({ code }) => code)).toEqual(['object_missing', 'digest_mismatch'])
  })

  test('while it reads for the second time keeps what the first reading found', async () => {
    const { report, cause } = await verify(
      fakeArchive({
        '2025-12-30': [{ found: 'nothing' }],
        '2026-01-02': [differing('a digest'), broken],
        '2026-01-03': [{ found: 'nothing' }],
      }),
    )
    expect(cause).toBe(broken)
    expect(report.complete).toBe(false)
    expect(report.findings.map(({ code, path }) => [code, path?.slice(0, 14)])).toEqual([
      ['object_missing', expect.stringContaining('sha256/20')],
      ['digest_mismatch', expect.stringContaining('sha256/20')],
      ['object_missing', expect.stringContaining('sha256/20')],
    ])
  })

  test.each<[string, Parameters<typeof fakeArchive>[1]]>([
    ['the ledger', { ledger: { read: () => Promise.reject(broken) } }],
    ['the heads', { archive: { heads: () => Promise.reject(broken) } }],
  ])('is not ok when %s cannot be read', async (_what, changes) => {
    const { report, cause } = await verify(fakeArchive({}, changes))
    expect(cause).toBe(broken)
    expect(report).toMatchObject({ ok: false, complete: false, publications: 0, objects: 0, findings: [] })
  })

  test('audits all but the orphans when the objects cannot be listed', async () => {
    const archive = fakeArchive({}, { archive: { objectKeys: () => Promise.reject(broken) } })
    const { report, cause } = await verify(archive)
    expect(cause).toBe(broken)
    expect(report).toMatchObject({ ok: false, complete: false, findings: [] })
    expect(report.objects).toBe(report.publications)
    expect(report.objects).toBeGreaterThan(0)
  })

  test('by a signal stops reading and keeps what it has', async () => {
    const stopping = new AbortController()
    const reason = new DOMException('stopped', 'AbortError')
    const archive = fakeArchive({ '2025-12-30': [{ found: 'nothing' }] })
    archive.ports.onProgress = ({ objects }) => {
      if (objects === 3) stopping.abort(reason)
    }
    const { report, cause } = await verify(archive, { signal: stopping.signal })
    expect(cause).toBe(reason)
    expect(report).toMatchObject({ ok: false, complete: false, objects: 3 })
    expect(report.findings.map(({ code }) => code)).toEqual(['object_missing'])
    expect(archive.asked).toHaveLength(3)
  })
})

describe('a whole store that cannot be what was written', () => {
  test('is a finding when it is the ledger', async () => {
    const read = (): Promise<never> => Promise.reject(storageDamaged('the file is not a database'))
    const { report, cause } = await verify(fakeArchive({}, { ledger: { read } }))
    expect(cause).toBeNull()
    expect(report).toMatchObject({ ok: false, complete: true })
    expect(report.findings).toEqual([
      {
        code: 'row_tampered',
        publicationId: null,
        path: 'ledger',
        expected: null,
        actual: 'the file is not a database',
      },
    ])
  })

  test('is a finding when it is the list of objects, and the rest is audited all the same', async () => {
    const objectKeys = (): Promise<never> => Promise.reject(storageDamaged('sha256 is a file'))
    const { report } = await verify(fakeArchive({}, { archive: { objectKeys } }))
    expect(report).toMatchObject({ ok: false, complete: true, objects: 7 })
    expect(report.findings).toMatchObject([
      { code: 'object_unreadable', path: 'sha256', actual: 'sha256 is a file' },
    ])
  })

  test('is no finding when it only cannot be reached', async () => {
    const refusal = storageUnavailable('the folder is not there')
    const { report, cause } = await verify(
      fakeArchive({}, { ledger: { read: () => Promise.reject(refusal) } }),
    )
    expect(cause).toBe(refusal)
    expect(report).toMatchObject({ ok: false, complete: false, findings: [] })
  })
})

describe('a publisher at work', () => {
  const rows = chainOf(['2026-01-01', '2026-01-02', '2026-01-03'].map((day) => publication(day)))

  /** Each look at the ledger or the heads sees the archive a step further on. */
  function growing(entriesSeen: number[], headsSeen: number[]) {
    const looks = { ledger: 0, heads: 0 }
    const next = (seen: number[], look: number): number => seen[Math.min(look, seen.length - 1)] ?? 0
    return {
      looks,
      ledger: {
        read: () => {
          const upTo = next(entriesSeen, looks.ledger++)
          return Promise.resolve(audited({ rows: rows.slice(0, upTo), legacy: [], founding: null }))
        },
      },
      archive: {
        heads: () => Promise.resolve(headsOf(rows, next(headsSeen, looks.heads++))),
        objectKeys: () => Promise.resolve([]),
      },
    }
  }

  test('that commits once between heads and ledger leaves no finding', async () => {
    const { looks, ...changes } = growing([2], [1])
    expect((await verify(fakeArchive({}, changes))).report).toMatchObject({ ok: true, findings: [] })
    expect(looks).toEqual({ ledger: 1, heads: 1 })
  })

  test('that commits twice between heads and ledger makes the heads be read again', async () => {
    const { looks, ...changes } = growing([3], [1, 3])
    expect((await verify(fakeArchive({}, changes))).report).toMatchObject({ ok: true, findings: [] })
    expect(looks).toEqual({ ledger: 2, heads: 2 })
  })

  test('cannot hide heads that are really missing', async () => {
    const { looks, ...changes } = growing([3], [1])
    const { report } = await verify(fakeArchive({}, changes))
    expect(report.findings).toMatchObject([{ code: 'head_mismatch', path: 'heads/2', actual: 'absent' }])
    expect(looks).toEqual({ ledger: 1, heads: 2 })
  })

  test('makes no orphan of an object it names while the audit runs', async () => {
    const order: string[] = []
    const archive = fakeArchive()
    const { objectKeys } = archive.ports.archive
    const { read } = archive.ports.ledger
    archive.ports.archive.objectKeys = () => (order.push('objects'), objectKeys())
    archive.ports.ledger.read = () => (order.push('ledger'), read())
    await verify(archive)
    expect(order).toEqual(['objects', 'ledger'])
  })
})
