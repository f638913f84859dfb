import { describe, expect, onTestFinished, test } from 'vitest'
import { openPublishedHistory, openSeenLogs } from '../../../src/adapters/audited-hosts.ts'
import { sha256Hex } from '../../../src/domain/digest.ts'
import type { PublishedHistory } from '../../../src/domain/year/ports.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { isDamage } from '../../../src/domain/year/finding.ts'
import type { LedgerContents } from '../../../src/domain/year/ledger.ts'
import { formatHead } from '../../../src/domain/year/ledger.ts'
import type { Reference } from '../../../src/domain/year/published-ledger.ts'
import { audit as auditArchive } from '../../../src/jobs/archive/audit.ts'
import type { AuditOptions, AuditPorts, VerifyReport, VerifyResult } from '../../../src/jobs/archive/audit.ts'
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

type Options = Partial<AuditOptions & Reference & HostLedgerPorts & Pick<AuditPorts, 'onProgress'>>

/** One audit of a host, and why it ended early. */
function audit(published: PublishedHistory, options: Options = {}): Promise<VerifyResult> {
  const {
    own = null,
    ownNote = null,
    expectedHead = null,
    seenLogs = openSeenLogs('/nowhere'),
    policy = null,
    clock = Date.now,
    onNote = () => undefined,
    onProgress = () => undefined,
    ...chosen
  } = options
  const ports = { published, seenLogs, policy, clock, onNote }
  return auditArchive(
    hostArchive(ports, { own, ownNote, expectedHead }),
    { clock, random: () => 0, onProgress },
    { sample: null, since: null, jobs: 3, signal: new AbortController().signal, ...chosen },
  )
}

async function verify(...given: Parameters<typeof audit>): Promise<VerifyReport> {
  const { report, cause } = await audit(...given)
  if (cause !== null) throw cause
  return report
}

/** The ledgers of an archive as our own copy of them. */
function ownLedger({ rows, legacy }: Pick<LedgerContents, 'rows' | 'legacy'>): LedgerContents {
  return { rows, legacy, founding: null }
}

function keptHead({ contents }: SampleArchive, seq = contents.rows.length): Reference['expectedHead'] {
  return { ...headAt(contents.rows, seq), path: 'kept.json' }
}

const linesOf = ({ findings }: VerifyReport): string[] => findings.map(({ code, path }) => `${code} ${path}`)

const honestly: Lie = (answer) => answer

/** The findings about a host that changes its honest answers. */
async function findingsOf(lie: Lie, options: Options = {}, archive = sampleArchive()): Promise<string[]> {
  const report = await verify(publishedBy(openSampleApp(archive), lie), options)
  expect(report.findings.every(isDamage)).toBe(true)
  return linesOf(report)
}

type Change = (answer: Parameters<Lie>[0]) => ReturnType<Lie>

/** The host changes what it answers for a time. */
const atTime =
  (time: number, change: Change): Lie =>
  (answer, { at }) =>
    at === time ? change(answer) : answer

/** The host changes what it answers for a path. */
const atPath =
  (end: string, change: Change): Lie =>
  (answer, { path }) =>
    path.endsWith(end) ? change(answer) : answer

const EMPTY = { contents: { rows: [], legacy: [], founding: null }, head: null, objects: new Map() }

function without<T>(list: readonly T[], count: number): T[] {
  return list.slice(0, list.length - count)
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
const decode = (bytes: Uint8Array | null): string => Buffer.from(bytes ?? []).toString()

describe('a sound host', () => {
  test('a sound host has no findings, and every body is fetched once', async () => {
    const archive = sampleArchive()
    const { findings, ...report } = await verify(publishedBy(openSampleApp(archive)), {
      expectedHead: keptHead(archive, 3),
    })
    const { rows } = archive.contents
    const hidden = archive.contents.legacy[1]?.byteSize ?? 0
    const bytes = [...archive.objects.values()].reduce((sum, one) => sum + one.byteLength, 0) - hidden
    expect(findings).toEqual([])
    expect(report).toMatchObject({ publications: 6, objects: 5, gaps: 1 })
    expect(report.bytes).toBeGreaterThanOrEqual(bytes)
    expect(report.head).toEqual({ seq: rows.length, leaf: rows.at(-1)?.leaf })
  })

  test('a sound host may be one entry ahead of its head, and may publish during the audit', async () => {
    const archive = sampleArchive()
    const { rows } = archive.contents
    const behind = { ...archive, head: headAt(rows, rows.length - 1) }
    expect((await verify(publishedBy(openSampleApp(behind)))).findings).toEqual([])
    for (const seq of [2, rows.length - 2]) {
      let heads = 0
      const moving: Lie = (answer, { path }) => {
        if (!path.endsWith('/head')) return answer
        heads += 1
        return heads === 1 ? { ...answer, ...textAnswer(formatHead(headAt(rows, seq))) } : answer
      }
      expect((await verify(publishedBy(openSampleApp(archive), moving))).findings).toEqual([])
      expect(heads).toBe(2)
    }
  })

  test('a sound host agrees with the own ledger, of the same length or shorter', async () => {
    const archive = sampleArchive()
    const published = publishedBy(openSampleApp(archive))
    const { rows, legacy } = archive.contents
    for (const own of [rows, rows.slice(0, 4), rows.slice(0, 1)]) {
      const report = await verify(published, { own: ownLedger({ rows: own, legacy }) })
      expect(report.findings).toEqual([])
    }
  })

  test('a host is not compared with an unrelated own archive, and a note says so', async () => {
    const archive = sampleArchive()
    const notes: string[] = []
    const published = publishedBy(openSampleApp(archive))
    const own = ownLedger(sampleArchive(9, 'b').contents)
    const report = await verify(published, { own, onNote: (note) => void notes.push(note) })
    expect(report).toMatchObject({ findings: [], publications: 6, objects: 5 })
    expect(notes).toEqual([
      'the archive in the data folder has no entry and no publication in common with http://dash.test; the host was not compared with it',
    ])
  })

  test('a host with an empty archive is sound', async () => {
    const report = await verify(publishedBy(openSampleApp(EMPTY)))
    expect(report).toMatchObject({ findings: [], publications: 0, objects: 0 })
  })
})

describe('a damaged host', () => {
  const archive = sampleArchive()
  const { rows } = archive.contents
  const [, second, last] = rows.filter(({ seq }) => seq >= 4)
  const [secondAt, lastAt] = [second?.publishedAt ?? 0, last?.publishedAt ?? 0]
  const newest = `sha256/${last?.sha256?.slice(0, 2)}/${last?.sha256}`
  const selectionAt = (at: number): string => `selection at ${new Date(at).toISOString()}`
  const etagOf =
    (etag: string | null): Change =>
    (answer) => ({ ...answer, etag })
  const notModified = { status: 304, bytes: new Uint8Array() }
  const honestAt = async (time: number): Promise<SentResponse> => {
    let sent = refusalResponse(500, null)
    const noting: Lie = (answer) => (sent = answer)
    await publishedBy(openSampleApp(archive), noting).at(time, [], new AbortController().signal)
    return sent
  }
  const api = '/api/feed/history'

  test.each<[what: string, lie: Lie, found: string[]]>([
    [
      'sends other bytes under the right ETag',
      atTime(lastAt, (answer) => ({
        ...answer,
        bytes: answer.bytes.map((byte, index) => (index === 40 ? byte ^ 1 : byte)),
      })),
      [`digest_mismatch ${newest}`],
    ],
    ['sends another ETag', atTime(lastAt, etagOf(`"${'0'.repeat(64)}"`)), [`digest_mismatch ${newest}`]],
    ['sends no ETag', atTime(lastAt, etagOf(null)), [`digest_mismatch ${newest}`]],
    [
      'dates a publication otherwise',
      atTime(lastAt, (answer) => ({ ...answer, lastModified: new Date(0).toUTCString() })),
      [`identity_mismatch ${selectionAt(lastAt)}`],
    ],
    [
      'does not have a publication',
      atTime(lastAt, () => refusalResponse(404, 'year_history_not_found')),
      [`object_missing ${newest}`],
    ],
    [
      'says itself that a publication is damaged',
      atTime(lastAt, () => refusalResponse(503, 'year_history_archive_corrupt')),
      [`object_unreadable ${newest}`],
    ],
    [
      'answers 304 to a request without an ETag',
      atTime(lastAt, (answer) => ({ ...answer, ...notModified })),
      [`object_unreadable ${newest}`],
    ],
    [
      'says itself that its ledger is damaged',
      atPath('/ledger', () => refusalResponse(503, 'year_history_archive_corrupt')),
      [`chain_broken ${api}/ledger`],
    ],
    [
      'sends a ledger that does not hash to its ETag',
      (answer, { at }) => (at === null ? { ...answer, etag: '"other"' } : answer),
      ['head', 'ledger', 'ledger/legacy'].map((name) => `digest_mismatch ${api}/${name}`),
    ],
  ])('a host that %s is detected', async (_what, lie, found) => {
    expect((await findingsOf(lie)).sort()).toEqual(found)
  })

  test('a host that responds for another time is detected', async () => {
    const found = await findingsOf((answer, { at }) =>
      at === null ? answer : { ...answer, requestedAt: '2026-01-01T00:00:00.000Z' },
    )
    expect(new Set(found.map((line) => line.split(' ')[0]))).toEqual(new Set(['identity_mismatch']))
  })

  test.each([-1, 1])(
    'a host that selects another publication %i ms away from one is detected',
    async (offset) => {
      const other = await honestAt(secondAt - offset)
      const lie = atTime(secondAt + offset, ({ requestedAt }) => ({ ...other, requestedAt }))
      expect(await findingsOf(lie)).toEqual([`chain_broken ${selectionAt(secondAt + offset)}`])
    },
  )

  test('a host that responds before its first publication is detected', async () => {
    const firstAt = archive.contents.legacy[0]?.publishedAt ?? 0
    const early = await honestAt(firstAt)
    const found = await findingsOf(atTime(firstAt - 1, () => early))
    expect(found).toEqual([`chain_broken ${selectionAt(firstAt - 1)}`])
  })

  const allOf = (held: readonly string[]): string => held.map((sha256) => `"${sha256}"`).join(', ')

  test('a host that responds with 304 and no ETag to every query is detected', async () => {
    const found = await findingsOf((answer, { at, held }) =>
      at === null || held.length === 0 ? answer : { ...answer, ...notModified, etag: null },
    )
    expect(new Set(found.map((line) => line.replace(/ at .*/, '')))).toEqual(
      new Set(['chain_broken selection']),
    )
  })

  test('a host that responds with 304 and the sent ETags only to the query about the end of its ledger is detected', async () => {
    const clock = (): number => lastAt + 3_600_000
    const end = clock() - 300_000
    const lie: Lie = (answer, { at, held }) =>
      at === end ? { ...answer, status: 304, bytes: new Uint8Array(), etag: allOf(held) } : answer
    const report = await verify(publishedBy(openSampleApp(archive, { clock }), lie), { clock })
    expect(linesOf(report)).toEqual([`chain_broken ${selectionAt(end)}`])
  })

  test('a host that serves a publication outside its ledger is detected', async () => {
    const honest = publishedBy(openSampleApp(archive))
    const shorter = publishedBy(openSampleApp(shortened(archive, 1)))
    const { findings } = await verify({ ...shorter, at: honest.at })
    expect(findings.map(({ code }) => code)).toEqual(['chain_broken'])
    expect(findings[0]?.path).toMatch(/^selection at /)
  })

  test.each<[what: string, lie: Lie, found: string]>([
    ['lost the tail of its ledger', ledgerLie((lines) => without(lines, 1)), `head_mismatch ${api}/head`],
    [
      'cuts its ledger off',
      atPath('/ledger', (answer) => ({ ...answer, ...textAnswer(decode(answer.bytes).slice(0, -1)) })),
      `row_tampered entries/${rows.length}`,
    ],
    [
      'hides its legacy ledger',
      atPath('/legacy', () => refusalResponse(404, 'not_found')),
      'row_tampered legacy_publications',
    ],
  ])('a host with a damaged ledger is detected: it %s', async (_what, lie, found) => {
    expect(await findingsOf(lie)).toContainEqual(expect.stringMatching(new RegExp(`^${found}`)))
  })

  test.each([
    ['no head', refusalResponse(404, 'year_history_not_found')],
    [
      'a head that is two entries behind',
      { ...refusalResponse(200, null), ...textAnswer(formatHead(headAt(rows, rows.length - 2))) },
    ],
  ])('a host that has %s is detected', async (_what, head) => {
    expect(await findingsOf(atPath('/head', () => head))).toEqual([
      expect.stringMatching(/^(head_mismatch|chain_broken) \/api\/feed\/history\/head$/),
    ])
  })

  test('a host that rewrote its whole archive consistently is detected only by a head kept elsewhere', async () => {
    const other = rewritten(archive, 3, { attempts: 3, reason: 'attempts_spent' })
    const found = (seq: number): Promise<string[]> =>
      findingsOf(honestly, { expectedHead: keptHead(archive, seq) }, other)
    expect(await findingsOf(honestly, {}, other)).toEqual([])
    expect(await found(2)).toEqual([])
    for (const seq of [3, 4, rows.length]) expect(await found(seq)).toEqual(['head_mismatch kept.json'])
  })

  test('a host whose signed log contradicts the own one is forked, and the report has both notes', async () => {
    const forked = rewritten(archive, 3, { attempts: 3, reason: 'attempts_spent' })
    const sizes = [
      [rows.length, rows.length],
      [rows.length - 1, rows.length],
      [rows.length, rows.length - 1],
    ] as const
    for (const [ownSize, hostSize] of sizes) {
      const own = { own: ownLedger(archive.contents), ownNote: noteOf(archive, ownSize) }
      const seenLogs = openSeenLogs(await temporaryFolder())
      const published = publishedBy(openSampleApp(forked, {}, logFilesOf(forked, hostSize)))
      const report = await verify(published, { ...own, seenLogs })
      expect(linesOf(report)).toEqual(['chain_broken entries/3', 'log_forked tlog/year/checkpoint'])
      expect(report.log?.fork?.map(({ note }) => note)).toEqual([own.ownNote, noteOf(forked, hostSize)])
      const sound = publishedBy(openSampleApp(archive, {}, logFilesOf(archive, hostSize)))
      expect((await verify(sound, { ...own, seenLogs })).findings).toEqual([])
    }
  })

  test.each<[what: string, other: SampleArchive, found: string]>([
    [
      'rewrote its whole archive consistently',
      rewritten(archive, 3, { attempts: 3, reason: 'attempts_spent' }),
      'chain_broken entries/3',
    ],
    ['lost every entry it had', EMPTY, `head_mismatch entries/${rows.length}`],
  ])(
    'a host that %s is detected by the own ledger, with the first differing entry',
    async (_what, other, found) => {
      const own = ownLedger(archive.contents)
      const report = await verify(publishedBy(openSampleApp(other)), { own })
      expect(linesOf(report)).toEqual([found])
    },
  )
})

describe('a host that publishes no ledger', () => {
  const archive = sampleArchive()
  const noLedger: Lie = (answer, { at }) => (at === null ? refusalResponse(404, 'not_found') : answer)

  test('a host without a ledger is compared with the own one', async () => {
    const own = ownLedger(archive.contents)
    const sound = publishedBy(openSampleApp(archive), noLedger)
    const report = await verify(sound, { expectedHead: keptHead(archive), own })
    expect(report).toMatchObject({ findings: [], publications: 6, objects: 5 })
    const other = publishedBy(openSampleApp(sampleArchive(3, 'b')), noLedger)
    const { findings } = await verify(other, { own })
    expect(new Set(findings.map(({ code }) => code))).toEqual(new Set(['digest_mismatch', 'chain_broken']))
  })

  test('a host without a ledger cannot be audited with a kept head alone', async () => {
    const attempt = verify(publishedBy(openSampleApp(archive), noLedger), { expectedHead: keptHead(archive) })
    await expect(attempt).rejects.toMatchObject({
      code: 'usage',
      detail: expect.stringContaining('--data-dir'),
    })
  })
})

describe('an address without an archive', () => {
  const page = '<!doctype html><title>Shop</title>'

  test.each([
    ['that has nothing', 404, 'not found'],
    ['that sends a page for every path', 200, page],
  ])('a host %s is no damaged archive, also beside an own one', async (_what, status, body) => {
    const { url } = await localSource((_request, response) => void response.writeHead(status).end(body))
    const published = openPublishedHistory(`${url}/wrong`)
    onTestFinished(() => published.close())
    for (const ledger of [null, ownLedger(sampleArchive().contents)])
      await expect(verify(published, { own: ledger })).rejects.toMatchObject({
        code: 'usage',
        detail: expect.stringContaining(`there is no archive at ${url}/wrong`),
      })
  })
})

describe('a host that does not respond', () => {
  const unreachable = new Refusal('source_unavailable', 'the host cannot be reached (refused)')

  /** A host that answers the first of every `count` questions and none of the others. */
  const answeringOneOf = (count: number): { published: PublishedHistory; asked: () => number } => {
    const honest = publishedBy(openSampleApp(sampleArchive(30)))
    let asked = 0
    const at: PublishedHistory['at'] = (instant, held, signal) => {
      asked += 1
      return asked % count === 1 ? honest.at(instant, held, signal) : Promise.reject(unreachable)
    }
    return { published: { ...honest, at }, asked: () => asked }
  }

  test('a host that does not send its ledger ends the audit with its response', async () => {
    const lie = atPath('/ledger', () => refusalResponse(503, 'year_history_lookup_failed'))
    await expect(verify(publishedBy(openSampleApp(sampleArchive()), lie))).rejects.toMatchObject({
      code: 'source_unavailable',
      detail: expect.stringContaining('503 year_history_lookup_failed for /api/feed/history/ledger'),
    })
  })

  test('one query without a response is a read error and no damage', async () => {
    const archive = sampleArchive()
    const time = archive.contents.rows.at(-1)?.publishedAt ?? 0
    const honest = publishedBy(openSampleApp(archive))
    const at: PublishedHistory['at'] = (instant, held, signal) =>
      instant === time ? Promise.reject(unreachable) : honest.at(instant, held, signal)
    const busy = atTime(time, () => refusalResponse(503, 'year_history_lookup_failed'))
    for (const [published, why] of [
      [publishedBy(openSampleApp(archive), busy), 'the host responded with 503 year_history_lookup_failed'],
      [{ ...honest, at }, 'the host cannot be reached (refused)'],
    ] as const) {
      const { findings } = await verify(published)
      expect(findings).toMatchObject([{ code: 'object_unreadable', actual: `read error: ${why}` }])
      expect(findings.some(isDamage)).toBe(false)
    }
  })

  test('four consecutive queries without a response do not end the audit, however often that happens', async () => {
    const { published } = answeringOneOf(5)
    const { findings } = await verify(published, { jobs: 1 })
    expect(findings.length).toBeGreaterThan(30)
    expect(findings.some(isDamage)).toBe(false)
  })

  test('five consecutive queries without a response end the audit with the fifth', async () => {
    const { published, asked } = answeringOneOf(6)
    await expect(verify(published, { jobs: 1 })).rejects.toBe(unreachable)
    expect(asked()).toBe(6)
  })
})

describe('a hostile host', () => {
  const archive = sampleArchive()

  test.each(['/ledger', '/legacy'])(
    'a host that sends more lines than %s may have is not audited',
    async (path) => {
      const lie = atPath(path, (answer) => ({ ...answer, ...textAnswer('\n'.repeat(50_001)) }))
      await expect(verify(publishedBy(openSampleApp(archive), lie))).rejects.toMatchObject({
        code: 'source_unavailable',
        detail: expect.stringContaining('more than 50000 lines'),
      })
    },
  )

  test('a host with an overlong line is detected, and the line is not parsed', async () => {
    const lie = ledgerLie((lines) => lines.with(3, `[${'{},'.repeat(3_000)}{}]`))
    const { findings } = await verify(publishedBy(openSampleApp(archive), lie))
    expect(findings).toContainEqual(
      expect.objectContaining({ code: 'row_tampered', path: 'entries/4', actual: 'a line of 9004 bytes' }),
    )
  })
})

test('a publication with a time in the future is reported as one that could not be requested', async () => {
  const archive = sampleArchive()
  const last = archive.contents.rows.at(-1)?.publishedAt ?? 0
  const clock = (): number => last - 300_001
  const { findings } = await verify(publishedBy(openSampleApp(archive, { clock })), { clock })
  expect(findings).toMatchObject([
    { code: 'object_unreadable', actual: expect.stringContaining('is later than this clock') },
  ])
})

/** The host changes the lines of its ledger. */
function ledgerLie(change: (lines: string[]) => string[]): Lie {
  return atPath('/ledger', (answer) => {
    const lines = change(decode(answer.bytes).split('\n').slice(0, -1))
    return { ...answer, ...textAnswer(lines.map((line) => `${line}\n`).join('')) }
  })
}

function textAnswer(text: string): { bytes: Uint8Array; etag: string } {
  return { bytes: encode(text), etag: `"${sha256Hex(text)}"` }
}

/** The archive as it was before its last entries. */
function shortened(archive: SampleArchive, count: number): SampleArchive {
  const rows = without(archive.contents.rows, count)
  return { ...archive, contents: { ...archive.contents, rows }, head: headAt(rows, rows.length) }
}
