import { describe, expect, onTestFinished, test } from 'vitest'
import { openPublishedHistory, openSeenLogs } from '../../../src/adapters/audited-hosts.ts'
import { sha256Hex } from '../../../src/domain/digest.ts'
import type { PublishedHistory } from '../../../src/domain/year/ports.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { isDamage } from '../../../src/domain/year/finding.ts'
import { formatHead } from '../../../src/domain/year/ledger.ts'
import type { Reference } from '../../../src/domain/year/published-ledger.ts'
import { audit } from '../../../src/jobs/archive/audit.ts'
import type { AuditOptions, AuditPorts, VerifyReport } from '../../../src/jobs/archive/audit.ts'
import { hostArchive } from '../../../src/jobs/archive/archives.ts'
import type { HostLedgerPorts } from '../../../src/jobs/archive/host-ledger.ts'
import { headAt } from '../../domain/year/ledger-rows.ts'
import { localSource } from '../../support/local-source.ts'
import { openSampleApp, rewritten, sampleArchive } from '../../support/sample-archive.ts'
import type { SampleArchive } from '../../support/sample-archive.ts'
import { logFilesOf, noteOf } from '../../support/static-host.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { publishedBy, refusalResponse } from './lying-host.ts'
import type { Lie, SentResponse } from './lying-host.ts'

const archive = sampleArchive()
const { rows, legacy } = archive.contents
const [, second, last] = rows.filter(({ seq }) => seq >= 4)
const [firstAt, secondAt, lastAt] = [legacy[0], second, last].map((row) => row?.publishedAt ?? 0) as [
  number,
  number,
  number,
]

const NOW = lastAt + 3_600_000
const clock = (): number => NOW

/** Another archive: the same log, except for its gap, sealed anew. */
const forked = rewritten(archive, 3, { attempts: 3, reason: 'attempts_spent' })

const EMPTY = { contents: { rows: [], legacy: [], founding: null }, head: null, objects: new Map() }

type Options = Partial<AuditOptions & Reference & HostLedgerPorts & Pick<AuditPorts, 'onProgress'>>

/** @throws the cause of an audit that ended early */
async function verify(published: PublishedHistory, options: Options = {}): Promise<VerifyReport> {
  const { own = null, ownNote = null, expectedHead = null, ...changes } = options
  const onNote = (): void => undefined
  const ports = { published, seenLogs: openSeenLogs('/nowhere'), policy: null, clock, onNote, ...changes }
  const { report, cause } = await audit(
    hostArchive(ports, { own, ownNote, expectedHead }),
    { clock, random: () => 0, onProgress: () => undefined },
    { sample: null, since: null, jobs: 3, signal: new AbortController().signal, ...changes },
  )
  if (cause !== null) throw cause
  return report
}

/** The host that serves an archive, or changes its responses. */
const hostOf = (served: SampleArchive, lie?: Lie, at = clock): PublishedHistory =>
  publishedBy(openSampleApp(served, { clock: at }), lie)

/** An archive as our own copy of it, with its first entries only. */
const ownOf = (copied: SampleArchive, size = rows.length): Pick<Reference, 'own'> => ({
  own: { rows: copied.contents.rows.slice(0, size), legacy: copied.contents.legacy, founding: null },
})

function keptHead(seq: number): Pick<Reference, 'expectedHead'> {
  return { expectedHead: { ...headAt(rows, seq), path: 'kept.json' } }
}

/** Audits a host that is damaged or sound, and returns `code path` of each finding. */
async function findingsOf(published: PublishedHistory, options: Options = {}): Promise<string[]> {
  const { findings } = await verify(published, options)
  expect(findings.every(isDamage)).toBe(true)
  return findings.map(({ code, path }) => `${code} ${path}`)
}

type Change = (answer: SentResponse) => SentResponse

/** The host changes what it sends for a time or, for null, its ledgers and its head. */
const atTime =
  (time: number | null, change: Change): Lie =>
  (answer, { at }) =>
    at === time ? change(answer) : answer

/** The host changes what it sends for a path. */
const atPath =
  (end: string, change: Change): Lie =>
  (answer, { path }) =>
    path.endsWith(end) ? change(answer) : answer

const sends =
  (changes: Partial<SentResponse>): Change =>
  (answer) => ({ ...answer, ...changes })

const sendsText =
  (change: (text: string) => string): Change =>
  ({ bytes, ...answer }) => {
    const text = change(Buffer.from(bytes).toString())
    return { ...answer, bytes: Buffer.from(text), etag: `"${sha256Hex(text)}"` }
  }

const refuses =
  (status: number, error: string): Change =>
  () =>
    refusalResponse(status, error)

/** The host sends what belongs to another time. */
async function sendsAnother(time: number): Promise<Change> {
  let other = refusalResponse(500, null)
  await hostOf(archive, (answer) => (other = answer)).at(time, [], new AbortController().signal)
  return ({ requestedAt }) => ({ ...other, requestedAt })
}

const corrupt = refuses(503, 'year_history_archive_corrupt')

describe('a sound host', () => {
  test('a sound host has no findings, and every body is fetched once', async () => {
    const { findings, ...report } = await verify(hostOf(archive), keptHead(3))
    expect(findings).toEqual([])
    expect(report).toMatchObject({ publications: 6, objects: 5, gaps: 1 })
    const bytes = [...archive.objects.values()].reduce((sum, one) => sum + one.byteLength, 0)
    // A publication at the very time of a later one is never selected.
    expect(report.bytes).toBeGreaterThanOrEqual(bytes - (legacy[1]?.byteSize ?? 0))
    expect(report.head).toEqual({ seq: rows.length, leaf: rows.at(-1)?.leaf })
    expect(await verify(hostOf(EMPTY))).toMatchObject({ findings: [], publications: 0, objects: 0 })
  })

  test('a sound host may be one entry ahead of its head, and may publish during the audit', async () => {
    const behind = { ...archive, head: headAt(rows, rows.length - 1) }
    expect(await findingsOf(hostOf(behind))).toEqual([])
    for (const seq of [2, rows.length - 2]) {
      let heads = 0
      const earlier = sendsText(() => formatHead(headAt(rows, seq)))
      const moving = atPath('/head', (answer) => ((heads += 1) === 1 ? earlier(answer) : answer))
      expect(await findingsOf(hostOf(archive, moving))).toEqual([])
      expect(heads).toBe(2)
    }
  })

  test('a sound host agrees with the own ledger, of the same length or shorter', async () => {
    for (const size of [rows.length, 4, 1])
      expect(await findingsOf(hostOf(archive), ownOf(archive, size))).toEqual([])
  })

  test('a host is not compared with an unrelated own archive, and a note says so', async () => {
    const notes: string[] = []
    const onNote = (note: string): void => void notes.push(note)
    const report = await verify(hostOf(archive), { ...ownOf(sampleArchive(9, 'b'), 12), onNote })
    expect(report).toMatchObject({ findings: [], publications: 6, objects: 5 })
    expect(notes).toEqual([
      'the archive in the data folder has no entry and no publication in common with http://dash.test; the host was not compared with it',
    ])
  })
})

test('a host that has its first head only after it was asked for the ledger is sound', async () => {
  let asked = 0
  const lie = atPath('/head', (answer) => {
    asked += 1
    return asked === 1 ? refusalResponse(404, 'year_history_not_found') : answer
  })
  expect(await findingsOf(hostOf(archive, lie))).toEqual([])
  expect(asked).toBe(2)
})

describe('a damaged host', () => {
  const newest = `sha256/${last?.sha256?.slice(0, 2)}/${last?.sha256}`
  const selection = (at: number): string => `selection at ${new Date(at).toISOString()}`
  const api = '/api/feed/history'
  const end = NOW - 300_000
  const flip: Change = (answer) => ({ ...answer, bytes: answer.bytes.with(40, (answer.bytes[40] ?? 0) ^ 1) })
  const notModified = { status: 304, bytes: new Uint8Array() }
  const held: Lie = (answer, request) =>
    request.at === end
      ? { ...answer, ...notModified, etag: request.held.map((sha256) => `"${sha256}"`).join(', ') }
      : answer
  const olderHead = sendsText(() => formatHead(headAt(rows, rows.length - 2)))
  const headMismatch = `head_mismatch ${api}/head`
  const afterEnd = `chain_broken ${selection(end)}`

  test.each<[what: string, lie: Lie | Promise<Lie>, found: string[]]>([
    ['other bytes under the right ETag', atTime(lastAt, flip), [`digest_mismatch ${newest}`]],
    ['another ETag', atTime(lastAt, sends({ etag: `"${'0'.repeat(64)}"` })), [`digest_mismatch ${newest}`]],
    ['no ETag', atTime(lastAt, sends({ etag: null })), [`digest_mismatch ${newest}`]],
    [
      'another date',
      atTime(lastAt, sends({ lastModified: new Date(0).toUTCString() })),
      [`identity_mismatch ${selection(lastAt)}`],
    ],
    [
      'what it has for another time',
      atTime(lastAt, sends({ requestedAt: '2026-01-01T00:00:00.000Z' })),
      [`identity_mismatch ${selection(lastAt)}`],
    ],
    ['no publication', atTime(lastAt, refuses(404, 'year_history_not_found')), [`object_missing ${newest}`]],
    ['that a publication is damaged', atTime(lastAt, corrupt), [`object_unreadable ${newest}`]],
    ['304 without a condition', atTime(lastAt, sends(notModified)), [`object_unreadable ${newest}`]],
    [
      'the publication of another time, a millisecond too early',
      sendsAnother(secondAt).then((other) => atTime(secondAt - 1, other)),
      [`chain_broken ${selection(secondAt - 1)}`],
    ],
    [
      'the publication of another time, a millisecond too late',
      sendsAnother(secondAt - 1).then((other) => atTime(secondAt + 1, other)),
      [`chain_broken ${selection(secondAt + 1)}`],
    ],
    [
      'a publication before its first one',
      sendsAnother(firstAt).then((other) => atTime(firstAt - 1, other)),
      [`chain_broken ${selection(firstAt - 1)}`],
    ],
    ['304 without an ETag', atTime(end, sends({ ...notModified, etag: null })), [afterEnd]],
    ['304 with the known ETags after the end of its ledger', held, [afterEnd]],
    ['that its ledger is damaged', atPath('/ledger', corrupt), [`chain_broken ${api}/ledger`]],
    [
      'ledgers that do not hash to their ETags',
      atTime(null, sends({ etag: '"other"' })),
      ['ledger', 'ledger/legacy', 'head'].map((name) => `digest_mismatch ${api}/${name}`),
    ],
    [
      'a ledger without its tail',
      atPath(
        '/ledger',
        sendsText((text) => text.replace(/.*\n$/, '')),
      ),
      [headMismatch, afterEnd],
    ],
    [
      'a ledger that is cut off',
      atPath(
        '/ledger',
        sendsText((text) => text.slice(0, -1)),
      ),
      [`row_tampered entries/${rows.length}`, headMismatch, afterEnd],
    ],
    [
      'no legacy ledger',
      atPath('/legacy', refuses(404, 'not_found')),
      ['row_tampered legacy_publications', `chain_broken ${selection((legacy[1]?.publishedAt ?? 0) - 1)}`],
    ],
    ['no head', atPath('/head', refuses(404, 'year_history_not_found')), [headMismatch]],
    ['a head that is two entries behind', atPath('/head', olderHead), [headMismatch]],
  ])('a host that sends %s is detected', async (_what, lie, found) => {
    expect(await findingsOf(hostOf(archive, await lie))).toEqual(found)
  })

  test('a host without a head is said to have none', async () => {
    const lie = atPath('/head', refuses(404, 'year_history_not_found'))
    const { findings } = await verify(hostOf(archive, lie))
    expect(findings).toMatchObject([{ code: 'head_mismatch', actual: 'the host has no head' }])
  })

  test('a host that rewrote its whole archive consistently is detected only by a head kept elsewhere', async () => {
    expect(await findingsOf(hostOf(forked))).toEqual([])
    expect(await findingsOf(hostOf(forked), keptHead(2))).toEqual([])
    for (const seq of [3, 4, rows.length])
      expect(await findingsOf(hostOf(forked), keptHead(seq))).toEqual(['head_mismatch kept.json'])
  })

  test('a host whose signed log contradicts the own one is forked, and the report has both notes', async () => {
    const signed = (served: SampleArchive, size: number): PublishedHistory =>
      publishedBy(openSampleApp(served, { clock }, logFilesOf(served, size)))
    for (const [ownSize, hostSize] of [
      [rows.length, rows.length],
      [rows.length - 1, rows.length],
      [rows.length, rows.length - 1],
    ] as const) {
      const seenLogs = openSeenLogs(temporaryFolder())
      const own = { ...ownOf(archive), ownNote: noteOf(archive, ownSize), seenLogs }
      const { findings, log } = await verify(signed(forked, hostSize), own)
      expect(findings.map(({ code, path }) => `${code} ${path}`)).toEqual([
        'chain_broken entries/3',
        'log_forked tlog/year/checkpoint',
      ])
      expect(log?.fork?.map(({ note }) => note)).toEqual([own.ownNote, noteOf(forked, hostSize)])
      expect(await findingsOf(signed(archive, hostSize), own)).toEqual([])
    }
  })

  test.each<[what: string, other: SampleArchive, found: string]>([
    ['rewrote its whole archive consistently', forked, 'chain_broken entries/3'],
    ['lost every entry it had', EMPTY, `head_mismatch entries/${rows.length}`],
  ])(
    'a host that %s is detected by the own ledger, with the first differing entry',
    async (_what, other, found) => {
      expect(await findingsOf(hostOf(other), ownOf(archive))).toEqual([found])
    },
  )
})

describe('a host that publishes no ledger', () => {
  const noLedger = atTime(null, refuses(404, 'not_found'))

  test('a host without a ledger is compared with the own one', async () => {
    const options = { ...keptHead(rows.length), ...ownOf(archive) }
    const sound = { findings: [], publications: 6, objects: 5, comparedWith: 'own' }
    expect(await verify(hostOf(archive, noLedger), options)).toMatchObject(sound)
    const damaged = await verify(hostOf(archive, atPath('/ledger', corrupt)))
    expect(damaged).toMatchObject({ publications: 0, comparedWith: 'none' })
    const { findings } = await verify(hostOf(sampleArchive(3, 'b'), noLedger), ownOf(archive))
    expect(new Set(findings.map(({ code }) => code))).toEqual(new Set(['digest_mismatch', 'chain_broken']))
  })

  test('a host without a ledger cannot be audited with a kept head alone', async () => {
    await expect(verify(hostOf(archive, noLedger), keptHead(rows.length))).rejects.toMatchObject({
      code: 'usage',
      detail: expect.stringContaining('--data-dir'),
    })
  })
})

describe('an address without an archive', () => {
  test.each([
    ['that has nothing', 404, 'not found'],
    ['that sends a page for every path', 200, '<!doctype html><title>Shop</title>'],
  ])('a host %s is no damaged archive, also beside an own one', async (_what, status, body) => {
    const { url } = await localSource((_request, response) => void response.writeHead(status).end(body))
    const published = openPublishedHistory(`${url}/wrong`)
    onTestFinished(() => published.close())
    for (const options of [{}, ownOf(archive)])
      await expect(verify(published, options)).rejects.toMatchObject({
        code: 'usage',
        detail: expect.stringContaining(`there is no archive at ${url}/wrong`),
      })
  })
})

describe('a host that does not respond', () => {
  const unreachable = new Refusal('source_unavailable', 'the host cannot be reached (refused)')
  const failing = refuses(503, 'year_history_lookup_failed')

  test('a host that does not send its ledger ends the audit with its response', async () => {
    await expect(verify(hostOf(archive, atPath('/ledger', failing)))).rejects.toMatchObject({
      code: 'source_unavailable',
      detail: expect.stringContaining('503 year_history_lookup_failed for /api/feed/history/ledger'),
    })
  })

  test('one query without a response is a read error and no damage', async () => {
    const honest = hostOf(archive)
    const at: PublishedHistory['at'] = (instant, ...rest) =>
      instant === lastAt ? Promise.reject(unreachable) : honest.at(instant, ...rest)
    for (const [published, why] of [
      [hostOf(archive, atTime(lastAt, failing)), 'the host responded with 503 year_history_lookup_failed'],
      [{ ...honest, at }, 'the host cannot be reached (refused)'],
    ] as const) {
      const { findings } = await verify(published)
      expect(findings).toMatchObject([{ code: 'object_unreadable', actual: `read error: ${why}` }])
      expect(findings.some(isDamage)).toBe(false)
    }
  })

  test('five consecutive queries without a response end the audit with the fifth, and four never do', async () => {
    const honest = hostOf(sampleArchive(30))
    let asked = 0
    /** Responds to the first of every `count` queries and to none of the others. */
    const respondingToOneOf = (count: number): PublishedHistory => {
      const at: PublishedHistory['at'] = (...query) =>
        (asked += 1) % count === 1 ? honest.at(...query) : Promise.reject(unreachable)
      return { ...honest, at }
    }
    const { findings } = await verify(respondingToOneOf(5), { jobs: 1 })
    expect(findings.length).toBeGreaterThan(30)
    expect(findings.some(isDamage)).toBe(false)
    asked = 0
    await expect(verify(respondingToOneOf(6), { jobs: 1 })).rejects.toBe(unreachable)
    expect(asked).toBe(6)
  })
})

describe('a hostile host', () => {
  test.each(['/ledger', '/legacy'])(
    'a host that sends more lines than %s may have is not audited',
    async (path) => {
      const lie = atPath(
        path,
        sendsText(() => '\n'.repeat(50_001)),
      )
      await expect(verify(hostOf(archive, lie))).rejects.toMatchObject({
        code: 'source_unavailable',
        detail: expect.stringContaining('more than 50000 lines'),
      })
    },
  )

  test('a host with an overlong line is detected, and the line is not parsed', async () => {
    const long = `[${'{},'.repeat(3_000)}{}]`
    const lie = atPath(
      '/ledger',
      sendsText((text) => text.split('\n').with(3, long).join('\n')),
    )
    const { findings } = await verify(hostOf(archive, lie))
    const overlong = { code: 'row_tampered', path: 'entries/4', actual: 'a line of 9004 bytes' }
    expect(findings).toContainEqual(expect.objectContaining(overlong))
  })
})

test('a publication with a time in the future is reported as one that could not be requested', async () => {
  const early = (): number => lastAt - 300_001
  const { findings } = await verify(hostOf(archive, undefined, early), { clock: early })
  expect(findings).toMatchObject([
    { code: 'object_unreadable', actual: expect.stringContaining('is later than this clock') },
  ])
})
