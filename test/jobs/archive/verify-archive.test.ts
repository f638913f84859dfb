import { describe, expect, test } from 'vitest'
import type { Auditors } from '../../../src/domain/ports.ts'
import { storageDamaged, storageUnavailable } from '../../../src/domain/refusal.ts'
import { objectPath, summarizeBytes } from '../../../src/domain/year/examine.ts'
import { READ_ERROR } from '../../../src/domain/year/finding.ts'
import type { AuditedContents, LedgerContents, LedgerRow } from '../../../src/domain/year/ledger.ts'
import type { AuditedHead } from '../../../src/domain/year/check.ts'
import type { ObjectOutcome, ReadObject } from '../../../src/domain/year/examine.ts'
import { formatInstant } from '../../../src/domain/time.ts'
import { proveLedger } from '../../../src/domain/year/check.ts'
import { verifyArchive } from '../../../src/jobs/archive/verify-archive.ts'
import type { VerifyResult, VerifyOptions, VerifyPorts } from '../../../src/jobs/archive/verify-archive.ts'
import { chainOf, headAt, publication, sampleLedger } from '../../domain/year/ledger-rows.ts'

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

const CONTENTS = sampleLedger()

/** The publications of {@link sampleLedger}, oldest first. */
const MANIFESTS = proveLedger(CONTENTS, headAt(CONTENTS.rows, 7)).timeline.map((item) => item.manifest)
const DAYS = MANIFESTS.map(({ asOfDay }) => asOfDay)

function audited(contents: LedgerContents): AuditedContents {
  return { ...contents, unreadable: [] }
}

function headsOf(rows: readonly LedgerRow[], upTo: number): AuditedHead[] {
  return rows.slice(0, upTo).map(({ seq }) => ({ path: `heads/${seq}`, seq, head: headAt(rows, seq) }))
}

const SOUND: ObjectOutcome = { found: 'bytes', byteSize: 12_345, problems: [] }

const GONE = { found: 'nothing' } as const

const BROKEN = { found: 'something else', why: `${READ_ERROR}EIO` } as const

const DIFFERING: ObjectOutcome = {
  found: 'bytes',
  byteSize: 12_345,
  problems: [
    { code: 'digest_mismatch', difference: 'does not match its digest', expected: 'a digest', actual: 'x' },
  ],
}

const STOPPED = new DOMException('stopped', 'AbortError')

/** A signal that ends an audit once it has examined so many objects. */
function stoppedAfter(count: number, { ports }: FakeArchive): AbortSignal {
  const stopping = new AbortController()
  ports.onProgress = ({ objects }) => {
    if (objects === count) stopping.abort(STOPPED)
  }
  return stopping.signal
}

/** Objects seen ahead, by day; and whether the reading was begun and ended. */
function readingAhead(objects: Record<string, ReadObject>, batches = 2) {
  const told = { begun: 0, closed: 0 }
  const all = Object.entries(objects).map(([day, seen]) => {
    const sha256 = MANIFESTS.find(({ asOfDay }) => asOfDay === day)?.sha256 ?? day.padEnd(64, '0')
    return { key: objectPath(sha256), seen }
  })
  const readAhead: Auditors['objects']['readAhead'] = () => {
    told.begun += 1
    return {
      async *objects(signal) {
        await Promise.resolve()
        for (let start = 0; start < all.length; start += batches) {
          signal.throwIfAborted()
          yield all.slice(start, start + batches)
        }
      },
      close: () => Promise.resolve(void (told.closed += 1)),
    }
  }
  return { told, objects: { readAhead } }
}

/** The object of a day as it was sealed, seen without its manifest. */
function seenSound(day: string): ReadObject {
  const known = MANIFESTS.find(({ asOfDay }) => asOfDay === day)
  if (!known) throw new Error(`there is no publication of ${day}`)
  const { sha256, byteSize, publishedAt, generatedAt, windowStart, windowEnd, ...rest } = known
  const texts = Object.entries({ generatedAt, windowStart, windowEnd, archivedAt: publishedAt }).map(
    ([name, instant]) => [name, formatInstant(instant)],
  )
  const { archivedAt, ...leading } = Object.fromEntries(texts)
  const text = JSON.stringify({ ...rest, ...leading, feed: {}, archivedAt })
  return { found: 'bytes', ...summarizeBytes(new TextEncoder().encode(text)), byteSize, sha256 }
}

/** Results of the successive reads of each object; the last one repeats. */
type Readings = Record<string, (ObjectOutcome | Error)[]>

function fakeArchive(
  readings: Readings = {},
  changes: { ledger?: Partial<Auditors['ledger']>; objects?: Partial<Auditors['objects']> } = {},
): FakeArchive {
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
  const objects: Auditors['objects'] = {
    heads: () => Promise.resolve(headsOf(CONTENTS.rows, 7)),
    objectKeys: () => Promise.resolve(MANIFESTS.map(({ sha256 }) => objectPath(sha256))),
    readAhead: () => null,
    async *examine(manifests, examination, _jobs, signal) {
      await Promise.resolve()
      for (const [index, { asOfDay: day }] of manifests.entries()) {
        signal.throwIfAborted()
        asked.push({ day, examination })
        yield [{ index, outcome: outcomeOf(day) }]
      }
    },
    logFiles: { list: () => Promise.resolve([]), get: () => Promise.resolve(null) },
    ...changes.objects,
  }
  const ledger = { read: () => Promise.resolve(audited(CONTENTS)), ...changes.ledger }
  let now = 1_000
  const ports: VerifyPorts = {
    ledger,
    objects,
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
    expect(objects.notes).toEqual([])
  })

  test('an audit names every problem, not only the first', async () => {
    const { report } = await verify(
      fakeArchive({
        '2025-12-30': [GONE],
        '2026-01-02': [DIFFERING],
        '2026-01-03': [{ found: 'something else', why: 'a symbolic link' }],
      }),
    )
    expect(report).toMatchObject({
      ok: false,
      complete: true,
      findings: [{ code: 'object_missing' }, { code: 'digest_mismatch' }, { code: 'object_unreadable' }],
    })
  })

  test('an audit of an archive without writes is sound and empty', async () => {
    const none = (): Promise<[]> => Promise.resolve([])
    const ledger = { read: () => Promise.resolve(null) }
    const { report } = await verify(fakeArchive({}, { ledger, objects: { heads: none, objectKeys: none } }))
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
    const { report } = await verify(fakeArchive({}, { objects: { objectKeys: () => Promise.resolve(keys) } }))
    const orphan = { code: 'orphan_object', publicationId: null, expected: null, actual: null }
    expect(report).toMatchObject({ ok: true })
    expect(report.findings).toEqual(['sha256/aa/left', 'sha256/zz'].map((path) => ({ ...orphan, path })))
  })
})

describe('a failing object', () => {
  test.each([
    ['differs', '2026-01-02', DIFFERING, 'digest_mismatch'],
    ['cannot be read', '2026-01-02', BROKEN, 'object_unreadable'],
    ['differs and is the newest', NEWEST, DIFFERING, 'digest_mismatch'],
  ])('an object that fails once because it %s is a note and no finding', async (...given) => {
    const [, day, first, code] = given
    const objects = fakeArchive({ [day]: [first, SOUND] })
    const { report } = await verify(objects)
    expect(report).toMatchObject({ ok: true, complete: true, objects: 7, findings: [] })
    expect(objects.notes).toEqual([
      expect.stringMatching(new RegExp(String.raw`sha256/20/\w+ was valid on the second read .*\(${code}\)`)),
    ])
  })

  test('a failing object is read twice and reported by the second read', async () => {
    const objects = fakeArchive({ '2026-01-02': [DIFFERING, GONE, SOUND] })
    const { report } = await verify(objects)
    expect(report.findings).toMatchObject([{ code: 'object_missing' }])
    expect(objects.asked.filter(({ day }) => day === '2026-01-02')).toHaveLength(2)
  })

  test('an object with a lasting read error is unreadable, leaves the archive unproved, and is no damage', async () => {
    const { report, cause } = await verify(fakeArchive({ '2026-01-02': [BROKEN] }))
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
    expect(objects.asked.map(({ day }) => day)).toEqual([NEWEST, '2026-01-03', '2026-01-06'])
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

  test('an unservable newest publication is found, although its digest matches', async () => {
    const problem = {
      code: 'envelope_invalid' as const,
      difference: 'is no payload',
      expected: null,
      actual: null,
    }
    const invalid: ObjectOutcome = { found: 'bytes', byteSize: 12_345, problems: [problem] }
    const { report } = await verify(fakeArchive({ [NEWEST]: [invalid] }))
    expect(report).toMatchObject({ ok: false, findings: [{ code: 'envelope_invalid' }] })
  })

  test('every publication is proved whole on request, and the newest not twice', async () => {
    const objects = fakeArchive()
    await verify(objects, { payloads: true })
    expect(daysRead(objects, 'whole').sort()).toEqual(DAYS)
    expect(objects.asked).toHaveLength(7)
  })
})

describe('objects that are read ahead', () => {
  const allSound = (): Record<string, ReadObject> =>
    Object.fromEntries(DAYS.map((day) => [day, seenSound(day)]))

  test('objects that were read ahead are not read again, except the newest', async () => {
    const { told, objects } = readingAhead(allSound())
    const fake = fakeArchive({}, { objects })
    const { report, cause } = await verify(fake)
    expect(cause).toBeNull()
    expect(report).toMatchObject({ ok: true, complete: true, objects: 7, bytes: 7 * 12_345, findings: [] })
    expect(fake.asked).toEqual([{ day: NEWEST, examination: 'whole' }])
    expect(told).toEqual({ begun: 1, closed: 1 })
  })

  test('objects that read-ahead missed or could not decide are examined normally', async () => {
    const { '2025-12-30': _unseen, ...seen } = allSound()
    const { objects } = readingAhead({
      ...seen,
      '2026-01-02': { ...seenSound('2026-01-02'), identity: null } as ReadObject,
      '2026-01-03': { ...seenSound('2026-01-06'), sha256: MANIFESTS[4]?.sha256 } as ReadObject,
    })
    const fake = fakeArchive({ '2026-01-03': [DIFFERING] }, { objects })
    const { report } = await verify(fake)
    const again = ['2025-12-30', '2026-01-02', '2026-01-03', '2026-01-03']
    expect(fake.asked.map(({ day }) => day)).toEqual([NEWEST, ...again])
    expect(report).toMatchObject({ ok: false, objects: 7, findings: [{ code: 'digest_mismatch' }] })
  })

  test('read-ahead counts as the first of two reads for failing objects', async () => {
    const { objects } = readingAhead({
      ...allSound(),
      '2026-01-06': GONE,
      '2026-01-03': { ...seenSound('2026-01-03'), sha256: 'f'.repeat(64) } as ReadObject,
      '2026-01-02': BROKEN,
    })
    const fake = fakeArchive({ '2026-01-03': [DIFFERING] }, { objects })
    const { report } = await verify(fake)
    expect(fake.asked.map(({ day }) => day)).toEqual([NEWEST, '2026-01-02', '2026-01-03', '2026-01-06'])
    expect(report.findings).toMatchObject([{ code: 'digest_mismatch' }])
    expect(fake.notes).toEqual([
      expect.stringMatching(/second read .*\(object_unreadable\)/),
      expect.stringMatching(/second read .*\(object_missing\)/),
    ])
  })

  test('objects read ahead without an entry are no finding and are not counted', async () => {
    const { objects } = readingAhead({
      ...allSound(),
      '1999-01-01': { found: 'something else', why: 'a link' },
    })
    const { report } = await verify(fakeArchive({}, { objects }))
    expect(report).toMatchObject({ ok: true, objects: 7, findings: [] })
  })

  test.each<[string, Partial<VerifyOptions>]>([
    ['of a sample', { sample: { by: 'share', percent: 30 } }],
    ['from a day on', { since: '2026-01-03' }],
    ['with whole payloads', { payloads: true }],
  ])('nothing is read ahead by an audit %s', async (_which, changes) => {
    const { told, objects } = readingAhead(allSound())
    expect((await verify(fakeArchive({}, { objects }), changes)).report.ok).toBe(true)
    expect(told).toEqual({ begun: 0, closed: 0 })
  })

  test.each<[string, Parameters<typeof fakeArchive>[1]]>([
    ['the ledger cannot be read', { ledger: { read: () => Promise.reject(new Error('EIO')) } }],
    ['the ledger is damaged', { ledger: { read: () => Promise.reject(storageDamaged('no database')) } }],
  ])('reading ahead stops when %s', async (_what, changes) => {
    const { told, objects } = readingAhead(allSound())
    const { report } = await verify(fakeArchive({}, { ...changes, objects }))
    expect(report).toMatchObject({ ok: false, objects: 0 })
    expect(told).toEqual({ begun: 1, closed: 1 })
  })

  test('objects read ahead are reported when a signal ends the audit', async () => {
    const { told, objects } = readingAhead({ ...allSound(), '2025-12-30': GONE })
    const fake = fakeArchive({}, { objects })
    const { report, cause } = await verify(fake, { signal: stoppedAfter(5, fake) })
    expect(cause).toBe(STOPPED)
    expect(report).toMatchObject({ complete: false, objects: 5, findings: [{ code: 'object_missing' }] })
    expect(fake.asked).toEqual([{ day: NEWEST, examination: 'whole' }])
    expect(told.closed).toBe(1)
  })
})

describe('an audit that ends early', () => {
  const broken = new Error('the store went away')

  test('an interrupted audit reports its findings so far, that it is not complete, and the cause', async () => {
    const archive = fakeArchive({ '2025-12-30': [GONE], '2025-12-31': [DIFFERING], '2026-01-02': [broken] })
    const { report, cause } = await verify(archive)
    expect(cause).toBe(broken)
    expect(report).toMatchObject({ ok: false, complete: false, publications: 7, objects: 4, gaps: 2 })
    expect(report.findings).toMatchObject([{ code: 'object_missing' }, { code: 'digest_mismatch' }])
  })

  test('an audit interrupted during the second read keeps the findings of the first', async () => {
    const { report, cause } = await verify(
      fakeArchive({ '2025-12-30': [GONE], '2026-01-02': [DIFFERING, broken], '2026-01-03': [GONE] }),
    )
    expect([cause, report.complete]).toEqual([broken, false])
    const path = expect.stringContaining('sha256/20') as string
    expect(report.findings).toMatchObject([
      { code: 'object_missing', path },
      { code: 'digest_mismatch', path },
      { code: 'object_missing', path },
    ])
  })

  const unreachable = storageUnavailable('the folder is not there')

  test.each<[string, Error, Parameters<typeof fakeArchive>[1]]>([
    ['the ledger cannot be read', broken, { ledger: { read: () => Promise.reject(broken) } }],
    ['the heads cannot be read', broken, { objects: { heads: () => Promise.reject(broken) } }],
    ['the store cannot be reached', unreachable, { ledger: { read: () => Promise.reject(unreachable) } }],
  ])('an audit that ends because %s is not ok and has no finding', async (_what, reason, changes) => {
    const { report, cause } = await verify(fakeArchive({}, changes))
    expect(cause).toBe(reason)
    expect(report).toMatchObject({ ok: false, complete: false, publications: 0, objects: 0, findings: [] })
  })

  test('an audit checks everything but orphans when the objects cannot be listed', async () => {
    const archive = fakeArchive({}, { objects: { objectKeys: () => Promise.reject(broken) } })
    const { report, cause } = await verify(archive)
    expect(cause).toBe(broken)
    expect(report).toMatchObject({ ok: false, complete: false, publications: 7, objects: 7, findings: [] })
  })

  test('an audit that a signal ends stops reading and keeps its findings', async () => {
    const archive = fakeArchive({ '2025-12-30': [GONE] })
    const { report, cause } = await verify(archive, { signal: stoppedAfter(3, archive) })
    expect(cause).toBe(STOPPED)
    expect(report).toMatchObject({ ok: false, complete: false, objects: 3 })
    expect(report.findings).toMatchObject([{ code: 'object_missing' }])
    expect(archive.asked).toHaveLength(3)
  })
})

describe('a damaged store', () => {
  test('a damaged ledger is a finding', async () => {
    const actual = 'the file is not a database'
    const read = (): Promise<never> => Promise.reject(storageDamaged(actual))
    const { report, cause } = await verify(fakeArchive({}, { ledger: { read } }))
    expect([cause, report]).toMatchObject([null, { ok: false, complete: true }])
    expect(report.findings).toEqual([
      { code: 'row_tampered', publicationId: null, path: 'ledger', expected: null, actual },
    ])
  })

  test('a damaged list of objects is a finding, and the rest is still audited', async () => {
    const objectKeys = (): Promise<never> => Promise.reject(storageDamaged('sha256 is a file'))
    const { report } = await verify(fakeArchive({}, { objects: { objectKeys } }))
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
    const objects = {
      heads: () => Promise.resolve(headsOf(rows, headsSeen[looks.heads++] ?? headsSeen.at(-1) ?? 0)),
      objectKeys: () => Promise.resolve([]),
    }
    return { looks, ledger: { read: () => Promise.resolve((looks.ledger++, contents)) }, objects }
  }

  test.each([
    ['commits once between heads and ledger leaves no finding', 2, [1], 1, 1],
    ['commits twice between them makes both be read again', 3, [1, 3], 2, 2],
  ])('a publisher that %s', async (_what, entries, headsSeen, ledger, heads) => {
    const { looks, ...changes } = growing(entries, headsSeen)
    expect((await verify(fakeArchive({}, changes))).report).toMatchObject({ ok: true, findings: [] })
    expect(looks).toEqual({ ledger, heads })
  })

  test('a running publisher cannot hide missing heads', async () => {
    const { looks, ...changes } = growing(3, [1])
    const { report } = await verify(fakeArchive({}, changes))
    expect(report.findings).toMatchObject([{ code: 'head_mismatch', path: 'heads/2', actual: 'absent' }])
    expect(looks).toEqual({ ledger: 1, heads: 2 })
  })

  test('an object that is published during the audit is no orphan', async () => {
    const order: string[] = []
    const archive = fakeArchive()
    const { objectKeys } = archive.ports.objects
    const { read } = archive.ports.ledger
    archive.ports.objects.objectKeys = () => (order.push('objects'), objectKeys())
    archive.ports.ledger.read = () => (order.push('ledger'), read())
    await verify(archive)
    expect(order).toEqual(['objects', 'ledger'])
  })
})
