import fc from 'fast-check'
import type { H3 } from 'h3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openPublishedHistory } from '../../src/adapters/published-history.ts'
import { sha256Hex } from '../../src/domain/digest.ts'
import type { PublicHost } from '../../src/domain/ports.ts'
import { Refusal } from '../../src/domain/refusal.ts'
import { addDays } from '../../src/domain/time.ts'
import { isDamage } from '../../src/domain/year/finding.ts'
import type { AuditedContents } from '../../src/domain/year/audit.ts'
import { formatHead } from '../../src/domain/year/ledger.ts'
import type { LedgerContents } from '../../src/domain/year/ledger.ts'
import { verifyPublished } from '../../src/jobs/verify-published.ts'
import type {
  PublishedAuditOptions,
  PublishedAuditPorts,
  PublishedAuditReport,
} from '../../src/jobs/verify-published.ts'
import { headAt } from '../domain/year/ledger-rows.ts'
import { openApp, publishedBy, refusalAnswer, listenLocally } from '../support/api-client.ts'
import type { Lie } from '../support/api-client.ts'
import { openSampleApp, rewritten, sampleArchive } from '../support/sample-archive.ts'
import type { SampleArchive } from '../support/sample-archive.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../support/workspace.ts'

async function verify(
  published: PublicHost['history'],
  options: Partial<PublishedAuditOptions> = {},
  ports: Partial<PublishedAuditPorts> = {},
): Promise<PublishedAuditReport> {
  const { report, cause } = await verifyPublished(
    {
      published,
      ledger: null,
      clock: Date.now,
      onProgress: () => undefined,
      onNote: () => undefined,
      ...ports,
    },
    {
      expectedHead: null,
      chosen: (manifests) => manifests,
      jobs: 3,
      signal: new AbortController().signal,
      ...options,
    },
  )
  if (cause !== null) throw cause
  return report
}

/** The ledgers of an archive as our own copy of them. */
function ownLedger({ rows, legacy }: Pick<LedgerContents, 'rows' | 'legacy'>): AuditedContents {
  return { rows: rows.map((row) => ({ row })), legacy: legacy.map((row) => ({ row })), founding: null }
}

function keptHead(
  { contents }: SampleArchive,
  seq = contents.rows.length,
): PublishedAuditOptions['expectedHead'] {
  return { ...headAt(contents.rows, seq), path: 'kept.json' }
}

/** The findings about a host that changes its honest answers. */
async function findingsOf(
  lie: Lie,
  options: Partial<PublishedAuditOptions> = {},
  archive = sampleArchive(),
): Promise<string[]> {
  const { findings } = await verify(publishedBy(openSampleApp(archive), lie), options)
  expect(findings.every(isDamage)).toBe(true)
  return findings.map(({ code, path }) => `${code} ${path}`)
}

function without<T>(list: readonly T[], count: number): T[] {
  return list.slice(0, list.length - count)
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
const decode = (bytes: Uint8Array | null): string => Buffer.from(bytes ?? []).toString()

describe('a sound host', () => {
  test('has no findings, and every body is fetched once', async () => {
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

  test('is asked only for the publications that were chosen, and its ledger is proved whole', async () => {
    const archive = sampleArchive(5)
    const asked: number[] = []
    const lie: Lie = (answer, { at }) => {
      if (at !== null) asked.push(at)
      return answer
    }
    const report = await verify(publishedBy(openSampleApp(archive), lie), {
      chosen: (manifests) => manifests.slice(-1),
    })
    expect(report).toMatchObject({ findings: [], publications: 8, objects: 1 })
    const at = archive.contents.rows.at(-1)?.publishedAt ?? 0
    expect(asked).toEqual(expect.arrayContaining([at - 1, at, at + 1]))
    expect(asked).toHaveLength(4)
  })

  test('may be one entry ahead of its head, and may publish while it is audited', async () => {
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

  test('agrees with our own ledger, of the same length or shorter', async () => {
    const archive = sampleArchive()
    const published = publishedBy(openSampleApp(archive))
    const { rows, legacy } = archive.contents
    for (const own of [rows, rows.slice(0, 4), rows.slice(0, 1)]) {
      const report = await verify(published, {}, { ledger: ownLedger({ rows: own, legacy }) })
      expect(report.findings).toEqual([])
    }
  })

  test('beside an unrelated archive of ours is audited alone, and one sentence says so', async () => {
    const archive = sampleArchive()
    const notes: string[] = []
    const published = publishedBy(openSampleApp(archive))
    const ledger = ownLedger(sampleArchive(9, 'b').contents)
    const report = await verify(published, {}, { ledger, onNote: (note) => void notes.push(note) })
    expect(report).toMatchObject({ findings: [], publications: 6, objects: 5 })
    expect(notes).toEqual([
      'the archive in the data folder shares no entry and no publication with http://dash.test: the host was audited alone',
    ])
  })

  test('with an empty archive is sound', async () => {
    const app = openSampleApp({
      contents: { rows: [], legacy: [], founding: null },
      head: null,
      objects: new Map(),
    })
    expect(await verify(publishedBy(app))).toMatchObject({ findings: [], publications: 0, objects: 0 })
  })

  test('of the product itself is sound over a socket, and tells how far the audit is', async () => {
    const workspace = await openWorkspace()
    await workspace.feed.importSignals([...sampleSignals(), ...sampleSignals(addDays(AS_OF, 1))])
    await publishDays(workspace, [AS_OF, addDays(AS_OF, 1)])
    const published = await served(openApp(workspace))
    const progress: [number, number][] = []
    const head = await workspace.archive.newestHead()
    const report = await verify(
      published,
      { expectedHead: head && { ...head, path: 'kept.json' } },
      {
        ledger: ownLedger(await workspace.ledger.read()),
        onProgress: (done, total) => void progress.push([done, total]),
      },
    )
    expect(report).toMatchObject({ findings: [], publications: 2, objects: 2, gaps: 0 })
    expect(progress.at(-1)).toEqual([3, 3])
  })
})

describe('a host is found out that', () => {
  const archive = sampleArchive()
  const { rows } = archive.contents
  const [first, second, last] = rows.filter(({ seq }) => seq >= 4)
  const newest = `sha256/${last?.sha256?.slice(0, 2)}/${last?.sha256}`

  test('sends other bytes under the right ETag', async () => {
    const lie: Lie = (answer, { at }) => {
      if (at !== last?.publishedAt) return answer
      return { ...answer, bytes: answer.bytes.map((byte, index) => (index === 40 ? byte ^ 1 : byte)) }
    }
    expect(await findingsOf(lie)).toEqual([`digest_mismatch ${newest}`])
  })

  test('sends the right bytes under another ETag, or a weak one', async () => {
    for (const etag of [`"${'0'.repeat(64)}"`, `W/"${last?.sha256}"`, null]) {
      const lie: Lie = (answer, { at }) => (at === last?.publishedAt ? { ...answer, etag } : answer)
      expect(await findingsOf(lie)).toEqual([`digest_mismatch ${newest}`])
    }
  })

  test('answers with an older publication, whole and with its own ETag', async () => {
    const app = openSampleApp(archive)
    const honest = publishedBy(app)
    const older = await honest.at(second?.publishedAt ?? 0, [], new AbortController().signal)
    const lie: Lie = (answer, { at }) => (at === last?.publishedAt ? older : answer)
    expect(await findingsOf(lie)).toContain(`digest_mismatch ${newest}`)
  })

  test('dates a publication otherwise', async () => {
    const lie: Lie = (answer, { at }) =>
      at === last?.publishedAt ? { ...answer, lastModified: new Date(0).toUTCString() } : answer
    const selection = `selection at ${new Date(last?.publishedAt ?? 0).toISOString()}`
    expect(await findingsOf(lie)).toEqual([`identity_mismatch ${selection}`])
  })

  test('answers a time it was not asked for', async () => {
    const lie: Lie = (answer, { at }) =>
      at === null ? answer : { ...answer, requestedAt: '2026-01-01T00:00:00.000Z' }
    expect(new Set((await findingsOf(lie)).map((line) => line.split(' ')[0]))).toEqual(
      new Set(['identity_mismatch']),
    )
  })

  test('does not have a publication, or says itself that it is damaged', async () => {
    const gone = refusalAnswer(404, 'year_history_not_found')
    const corrupt = refusalAnswer(503, 'year_history_archive_corrupt')
    const at =
      (lie: typeof gone): Lie =>
      (answer, question) =>
        question.at === last?.publishedAt ? lie : answer
    expect(await findingsOf(at(gone))).toEqual([`object_missing ${newest}`])
    expect(await findingsOf(at(corrupt))).toEqual([`object_unreadable ${newest}`])
  })

  test('selects another publication a millisecond before or after', async () => {
    const shifted = publishedBy(openSampleApp(archive))
    const signal = new AbortController().signal
    for (const offset of [-1, 1]) {
      const other = await shifted.at((second?.publishedAt ?? 0) - offset, [], signal)
      const lie: Lie = (answer, { at }) =>
        at === (second?.publishedAt ?? 0) + offset ? { ...other, requestedAt: answer.requestedAt } : answer
      const selection = new Date((second?.publishedAt ?? 0) + offset).toISOString()
      expect(await findingsOf(lie)).toEqual([`chain_broken selection at ${selection}`])
    }
  })

  test('answers before the first publication was made', async () => {
    const firstAt = archive.contents.legacy[0]?.publishedAt ?? 0
    const early = await publishedBy(openSampleApp(archive)).at(firstAt, [], new AbortController().signal)
    const lie: Lie = (answer, { at }) => (at === firstAt - 1 ? early : answer)
    const selection = new Date(firstAt - 1).toISOString()
    expect(await findingsOf(lie)).toEqual([`chain_broken selection at ${selection}`])
  })

  test('answers 304 to everything, with the ETags it was sent, with one of them, or with none', async () => {
    const notModified = { status: 304, bytes: new Uint8Array(), error: null }
    const echoes: ((held: readonly string[]) => string | null)[] = [
      (held) => held.map((sha256) => `"${sha256}"`).join(', '),
      (held) => `"${held[0]}"`,
      (held) => `"${held.at(-1)}"`,
      () => null,
    ]
    for (const echo of echoes) {
      const lie: Lie = (answer, { at, held }) =>
        at === null || held.length === 0 ? answer : { ...answer, ...notModified, etag: echo(held) }
      const found = await findingsOf(lie)
      expect(found.length).toBeGreaterThan(0)
      expect(found.every((line) => line.startsWith('chain_broken selection at '))).toBe(true)
    }
    const unasked: Lie = (answer, { at }) =>
      at === last?.publishedAt ? { ...answer, ...notModified } : answer
    expect(await findingsOf(unasked)).toEqual([`object_unreadable ${newest}`])
  })

  test('answers 304 with the ETags it was sent to the question about the end of its ledger alone', async () => {
    const clock = (): number => (last?.publishedAt ?? 0) + 3_600_000
    const end = clock() - 300_000
    const lie: Lie = (answer, { at, held }) => {
      if (at !== end) return answer
      const etag = held.map((sha256) => `"${sha256}"`).join(', ')
      return { ...answer, status: 304, bytes: new Uint8Array(), etag }
    }
    const { findings } = await verify(publishedBy(openSampleApp(archive, { clock }), lie), {}, { clock })
    expect(findings.map(({ code, path }) => `${code} ${path}`)).toEqual([
      `chain_broken selection at ${new Date(end).toISOString()}`,
    ])
  })

  test('answers with a publication that its ledger does not list', async () => {
    const honest = publishedBy(openSampleApp(archive))
    const shorter = publishedBy(openSampleApp(shortened(archive, 1)))
    const { ledger, legacyLedger, head, base } = shorter
    const { findings } = await verify({ at: honest.at, ledger, legacyLedger, head, base })
    expect(findings.map(({ code }) => code)).toEqual(['chain_broken'])
    expect(findings[0]?.path).toMatch(/^selection at /)
  })

  test('edits an entry of its ledger', async () => {
    const lie = ledgerLie((lines) => lines.map((line) => line.replace(`${first?.byteSize}`, '17')))
    expect(await findingsOf(lie)).toContain(`chain_broken entries/${(first?.seq ?? 0) + 1}`)
  })

  test('edits the last entry of its ledger', async () => {
    const lie = ledgerLie((lines) => lines.map((line) => line.replace(`${last?.sha256}`, '0'.repeat(64))))
    expect(await findingsOf(lie)).toContain('head_mismatch /api/feed/history/head')
  })

  test('drops, repeats or swaps entries of its ledger', async () => {
    const changes: ((lines: string[]) => string[])[] = [
      (lines) => lines.toSpliced(3, 1),
      (lines) => lines.toSpliced(3, 0, lines[3] ?? ''),
      (lines) => lines.with(3, lines[4] ?? '').with(4, lines[3] ?? ''),
      (lines) => lines.slice(1),
    ]
    for (const change of changes) {
      const found = await findingsOf(ledgerLie(change))
      expect(found.some((line) => line.startsWith('chain_broken entries/'))).toBe(true)
    }
  })

  test('sends lines no ledger publishes, or cuts its ledger off', async () => {
    const spaced = ledgerLie((lines) =>
      lines.map((line, index) => (index === 3 ? line.replace(',', ', ') : line)),
    )
    expect(await findingsOf(spaced)).toContain('row_tampered entries/4')
    const cut: Lie = (answer, { path }) =>
      path.endsWith('/ledger') ? { ...answer, ...textAnswer(decode(answer.bytes).slice(0, -1)) } : answer
    expect(await findingsOf(cut)).toContain(`row_tampered entries/${rows.length}`)
    const binary: Lie = (answer, { path }) =>
      path.endsWith('/ledger') ? { ...answer, bytes: Uint8Array.of(0xc3, 0x28), etag: null } : answer
    expect(await findingsOf(binary)).toContain('row_tampered entries/1')
  })

  test('sends a ledger that does not hash to its ETag', async () => {
    const lie: Lie = (answer, { at }) => (at === null ? { ...answer, etag: '"other"' } : answer)
    const paths = ['ledger', 'ledger/legacy', 'head'].map(
      (name) => `digest_mismatch /api/feed/history/${name}`,
    )
    expect((await findingsOf(lie)).sort()).toEqual(paths.sort())
  })

  test('lost the tail of its ledger but not its head', async () => {
    const lie = ledgerLie((lines) => without(lines, 1))
    expect(await findingsOf(lie)).toContain('head_mismatch /api/feed/history/head')
  })

  test('has no head, a head that is none, or one that is two entries behind', async () => {
    const heads = [
      refusalAnswer(404, 'year_history_not_found'),
      { ...refusalAnswer(200, null), ...textAnswer('{"seq":1}\n') },
      { ...refusalAnswer(200, null), ...textAnswer(formatHead(headAt(rows, rows.length - 2))) },
      refusalAnswer(503, 'year_history_archive_corrupt'),
    ]
    for (const head of heads) {
      const found = await findingsOf((answer, { path }) => (path.endsWith('/head') ? head : answer))
      expect(found).toHaveLength(1)
      expect(found[0]).toMatch(/^(head_mismatch|chain_broken) \/api\/feed\/history\/head$/)
    }
  })

  test('edits, drops or hides its legacy ledger', async () => {
    const lies: Lie[] = [
      (answer) => ({ ...answer, ...textAnswer(decode(answer.bytes).replace('top-year-v1', 'top-year-v9')) }),
      (answer) => ({ ...answer, ...textAnswer(decode(answer.bytes).split('\n')[0] ?? '') }),
      (answer) => ({ ...answer, ...textAnswer(`${decode(answer.bytes)}\n`) }),
      () => refusalAnswer(404, 'not_found'),
    ]
    for (const lie of lies) {
      const found = await findingsOf((answer, question) =>
        question.path.endsWith('/legacy') ? lie(answer, question) : answer,
      )
      expect(found.some((line) => line.startsWith('row_tampered legacy_publications'))).toBe(true)
    }
  })

  test('rewrote its whole archive consistently: by a head kept from before, and by nothing else', async () => {
    const other = rewritten(archive, 3, { attempts: 3, reason: 'attempts_spent' })
    expect(await findingsOf((answer) => answer, {}, other)).toEqual([])
    for (const seq of [3, 4, rows.length]) {
      expect(await findingsOf((answer) => answer, { expectedHead: keptHead(archive, seq) }, other)).toEqual([
        'head_mismatch kept.json',
      ])
    }
    expect(await findingsOf((answer) => answer, { expectedHead: keptHead(archive, 2) }, other)).toEqual([])
  })

  test('rewrote its whole archive consistently: by our own ledger, naming the first entry that differs', async () => {
    const other = rewritten(archive, 3, { attempts: 3, reason: 'attempts_spent' })
    const own = ownLedger(archive.contents)
    const { findings } = await verify(publishedBy(openSampleApp(other)), {}, { ledger: own })
    expect(findings.map(({ code, path }) => [code, path])).toEqual([['chain_broken', 'entries/3']])
  })

  test('rewrote every entry from the first on: by our own ledger, which holds the same publications', async () => {
    const other = rewritten(archive, 1, { recordedAt: (rows[0]?.recordedAt ?? 0) - 1 })
    const own = ownLedger(archive.contents)
    const { findings } = await verify(publishedBy(openSampleApp(other)), {}, { ledger: own })
    expect(findings.map(({ code, path }) => [code, path])).toEqual([['chain_broken', 'entries/1']])
  })

  test('lost every entry it had: by our own ledger', async () => {
    const lost = { contents: { rows: [], legacy: [], founding: null }, head: null, objects: new Map() }
    const own = ownLedger(archive.contents)
    const { findings } = await verify(publishedBy(openSampleApp(lost)), {}, { ledger: own })
    expect(findings.map(({ code, path }) => [code, path])).toEqual([
      ['head_mismatch', `entries/${rows.length}`],
    ])
  })

  test('was rolled back with everything it has: by a kept head, and by our own ledger', async () => {
    for (const entries of [1, 2]) {
      const shorter = shortened(archive, entries)
      expect(await findingsOf((answer) => answer, { expectedHead: keptHead(archive) }, shorter)).toEqual([
        'head_mismatch kept.json',
      ])
      const own = ownLedger(archive.contents)
      const { findings } = await verify(publishedBy(openSampleApp(shorter)), {}, { ledger: own })
      expect(findings.map(({ code, path }) => [code, path])).toEqual([
        ['head_mismatch', `entries/${rows.length}`],
      ])
    }
  })

  test('says itself that its ledger is damaged', async () => {
    const corrupt = refusalAnswer(503, 'year_history_archive_corrupt')
    const found = await findingsOf(() => corrupt)
    expect(found).toEqual(['chain_broken /api/feed/history/ledger'])
  })
})

test('no single byte of a ledger or a body can be another without a finding, whatever its ETag', async () => {
  const archive = sampleArchive(2)
  const app = openSampleApp(archive)
  const times = archive.contents.rows.flatMap(({ publishedAt }) => publishedAt ?? [])
  const targets = ['/ledger', '/legacy', ...times.map((at) => new Date(at).toISOString())]
  const changes = fc.record({
    target: fc.constantFrom(...targets),
    place: fc.nat(),
    mask: fc.integer({ min: 1, max: 255 }),
  })
  await fc.assert(
    fc.asyncProperty(changes, async ({ target, place, mask }) => {
      const lie: Lie = (answer, { path }) => {
        if (!path.endsWith(target)) return answer
        const bytes = answer.bytes.map((byte, index) =>
          index === place % answer.bytes.length ? byte ^ mask : byte,
        )
        return { ...answer, bytes, etag: `"${sha256Hex(bytes)}"` }
      }
      const { findings } = await verify(publishedBy(app, lie))
      expect(findings.some(isDamage)).toBe(true)
    }),
    { numRuns: 60 },
  )
})

describe('a host that publishes no ledger', () => {
  const archive = sampleArchive()
  const noLedger: Lie = (answer, { at }) => (at === null ? refusalAnswer(404, 'not_found') : answer)

  test('is held against our own', async () => {
    const own = ownLedger(archive.contents)
    const sound = publishedBy(openSampleApp(archive), noLedger)
    const report = await verify(sound, { expectedHead: keptHead(archive) }, { ledger: own })
    expect(report).toMatchObject({ findings: [], publications: 6, objects: 5 })
    const other = publishedBy(openSampleApp(sampleArchive(3, 'b')), noLedger)
    const { findings } = await verify(other, {}, { ledger: own })
    expect(new Set(findings.map(({ code }) => code))).toEqual(new Set(['digest_mismatch', 'chain_broken']))
  })

  test('may have gone on publishing since our copy was made', async () => {
    const own = ownLedger({ ...archive.contents, rows: without(archive.contents.rows, 2) })
    const report = await verify(publishedBy(openSampleApp(archive), noLedger), {}, { ledger: own })
    expect(report.findings).toEqual([])
  })

  test('cannot be audited with a kept head alone', async () => {
    const attempt = verify(publishedBy(openSampleApp(archive), noLedger), { expectedHead: keptHead(archive) })
    await expect(attempt).rejects.toMatchObject({
      code: 'usage',
      detail: expect.stringContaining('--data-dir'),
    })
  })
})

describe('a host that does not answer', () => {
  const unreachable = new Refusal('source_unavailable', 'the host cannot be reached (refused)')

  /** A host that answers the first of every `count` questions and none of the others. */
  const answeringOneOf = (count: number): { published: PublicHost['history']; asked: () => number } => {
    const honest = publishedBy(openSampleApp(sampleArchive(30)))
    let asked = 0
    const at: PublicHost['history']['at'] = (instant, held, signal) => {
      asked += 1
      return asked % count === 1 ? honest.at(instant, held, signal) : Promise.reject(unreachable)
    }
    return { published: { ...honest, at }, asked: () => asked }
  }

  test('at all ends the audit', async () => {
    const fail = (): Promise<never> => Promise.reject(unreachable)
    const published = { base: 'http://dash.test', ledger: fail, legacyLedger: fail, head: fail, at: fail }
    await expect(verify(published)).rejects.toBe(unreachable)
  })

  test('for its ledger ends the audit with what it answered', async () => {
    const lie: Lie = (answer, { path }) =>
      path.endsWith('/ledger') ? refusalAnswer(503, 'year_history_lookup_failed') : answer
    await expect(verify(publishedBy(openSampleApp(sampleArchive()), lie))).rejects.toMatchObject({
      code: 'source_unavailable',
      detail: expect.stringContaining('503 year_history_lookup_failed for /api/feed/history/ledger'),
    })
  })

  test('one question leaves a read error, which is no damage', async () => {
    const archive = sampleArchive()
    const at = archive.contents.rows.at(-1)?.publishedAt ?? 0
    const busy: Lie = (answer, question) =>
      question.at === at ? refusalAnswer(503, 'year_history_lookup_failed') : answer
    const { findings } = await verify(publishedBy(openSampleApp(archive), busy))
    expect(findings).toMatchObject([
      { code: 'object_unreadable', actual: 'read error: the host answered 503 year_history_lookup_failed' },
    ])
    expect(findings.some(isDamage)).toBe(false)
    const honest = publishedBy(openSampleApp(archive))
    const dropping: PublicHost['history'] = {
      ...honest,
      at: (instant, held, signal) =>
        instant === at ? Promise.reject(unreachable) : honest.at(instant, held, signal),
    }
    const dropped = await verify(dropping)
    expect(dropped.findings.map(({ code, actual }) => [code, actual])).toEqual([
      ['object_unreadable', 'read error: the host cannot be reached (refused)'],
    ])
  })

  test('what was found before the host fell silent is reported all the same', async () => {
    const archive = sampleArchive(30)
    const honest = publishedBy(openSampleApp(archive))
    const lying: PublicHost['history'] = {
      ...honest,
      ledger: async (signal) => {
        const answer = await honest.ledger(signal)
        return { ...answer, bytes: encode(decode(answer.bytes).replace('"gap"', '"gop"')) }
      },
      at: () => Promise.reject(unreachable),
    }
    const { report, cause } = await verifyPublished(
      {
        published: lying,
        ledger: null,
        clock: Date.now,
        onProgress: () => undefined,
        onNote: () => undefined,
      },
      { expectedHead: null, chosen: (all) => all, jobs: 1, signal: new AbortController().signal },
    )
    expect(cause).toBe(unreachable)
    expect(report.findings.filter(isDamage)).not.toEqual([])
    expect(report.publications).toBeGreaterThan(20)
  })

  test('any more ends the audit after a few questions', async () => {
    let asked = 0
    const published: PublicHost['history'] = {
      ...publishedBy(openSampleApp(sampleArchive(30))),
      at: () => {
        asked += 1
        return Promise.reject(unreachable)
      },
    }
    await expect(verify(published)).rejects.toBe(unreachable)
    expect(asked).toBeLessThan(10)
  })

  test('four questions in a row does not end the audit, however often that happens', async () => {
    const { published } = answeringOneOf(5)
    const { findings } = await verify(published, { jobs: 1 })
    expect(findings.length).toBeGreaterThan(30)
    expect(findings.some(isDamage)).toBe(false)
  })

  test('five questions in a row ends the audit with the fifth', async () => {
    const { published, asked } = answeringOneOf(6)
    await expect(verify(published, { jobs: 1 })).rejects.toBe(unreachable)
    expect(asked()).toBe(6)
  })

  test('is no longer asked once the audit is told to stop', async () => {
    const stop = new AbortController()
    let asked = 0
    const honest = publishedBy(openSampleApp(sampleArchive(30)))
    const published: PublicHost['history'] = {
      ...honest,
      at: (instant, held, signal) => {
        asked += 1
        if (asked === 4) stop.abort(new Error('told to stop'))
        return honest.at(instant, held, signal)
      },
    }
    await expect(verify(published, { signal: stop.signal })).rejects.toThrow('told to stop')
    expect(asked).toBeLessThan(8)
  })
})

describe('a hostile host', () => {
  const archive = sampleArchive()

  test.each(['/ledger', '/legacy'])('that sends more lines than %s may have is not audited', async (path) => {
    const lines = textAnswer('\n'.repeat(50_001))
    const lie: Lie = (answer, question) => (question.path.endsWith(path) ? { ...answer, ...lines } : answer)
    await expect(verify(publishedBy(openSampleApp(archive), lie))).rejects.toMatchObject({
      code: 'source_unavailable',
      detail: expect.stringContaining('more than 50000 lines'),
    })
  })

  test('is found out by a line that is longer than any of a ledger, which is not parsed', async () => {
    const lie = ledgerLie((lines) => lines.with(3, `[${'{},'.repeat(3_000)}{}]`))
    const { findings } = await verify(publishedBy(openSampleApp(archive), lie))
    expect(findings).toContainEqual(
      expect.objectContaining({ code: 'row_tampered', path: 'entries/4', actual: 'a line of 9004 bytes' }),
    )
  })

  test('is no longer audited after a thousand findings', async () => {
    const lie = ledgerLie(() => Array.from({ length: 2_000 }, () => 'x'))
    const { report, cause } = await verifyPublished(
      {
        published: publishedBy(openSampleApp(archive), lie),
        ledger: null,
        clock: Date.now,
        onProgress: () => undefined,
        onNote: () => undefined,
      },
      { expectedHead: null, chosen: (all) => all, jobs: 1, signal: new AbortController().signal },
    )
    expect(report.findings).toHaveLength(1_000)
    expect(cause).toMatchObject({ detail: expect.stringContaining('more than 1000 findings') })
  })
})

test('a publication whose time lies ahead is told as one that could not be asked for', async () => {
  const archive = sampleArchive()
  const last = archive.contents.rows.at(-1)?.publishedAt ?? 0
  const clock = (): number => last - 300_001
  const { findings } = await verify(publishedBy(openSampleApp(archive, { clock })), {}, { clock })
  expect(findings).toMatchObject([
    { code: 'object_unreadable', actual: expect.stringContaining('ahead of the clock') },
  ])
})

/** The host changes the lines of its ledger. */
function ledgerLie(change: (lines: string[]) => string[]): Lie {
  return (answer, { path }) => {
    if (!path.endsWith('/ledger')) return answer
    const lines = decode(answer.bytes).split('\n').slice(0, -1)
    return {
      ...answer,
      ...textAnswer(
        change(lines)
          .map((line) => `${line}\n`)
          .join(''),
      ),
    }
  }
}

function textAnswer(text: string): { bytes: Uint8Array; etag: string } {
  return { bytes: encode(text), etag: `"${sha256Hex(text)}"` }
}

/** The archive as it was before its last entries. */
function shortened(archive: SampleArchive, count: number): SampleArchive {
  const rows = without(archive.contents.rows, count)
  return { ...archive, contents: { ...archive.contents, rows }, head: headAt(rows, rows.length) }
}

async function served(app: H3): Promise<PublicHost['history']> {
  const server = await listenLocally(app)
  const published = openPublishedHistory(server.url)
  onTestFinished(() => published.close())
  return published
}
