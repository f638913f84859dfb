import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Signal } from '../../src/domain/feed/signal.ts'
import { Refusal } from '../../src/domain/refusal.ts'
import { addDays, startOfDay } from '../../src/domain/time.ts'
import { headIsBehind } from '../../src/domain/year/chain.ts'
import { proveBytes } from '../../src/domain/year/envelope.ts'
import { COMMIT_WITHIN_MS, LEASE_MS } from '../../src/domain/year/plan.ts'
import type { PublishPorts } from '../../src/jobs/publish-year.ts'
import {
  AS_OF,
  noTitles,
  openWorkspace,
  publish,
  publishDays,
  publishPortsOf,
  reopenWorkspace,
  RUN_AT,
  sampleSignals,
  tickingClock,
} from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

async function filledWorkspace(): Promise<Workspace> {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(sampleSignals())
  return workspace
}

/** Title sources that fail until they have been asked often enough. */
function failingTitles(failures: number): { titles: PublishPorts['titles']; asked: () => number } {
  let asked = 0
  return {
    asked: () => asked,
    titles: {
      title: ({ source, sourceId }) => {
        asked += 1
        if (asked <= failures) return Promise.reject(new Refusal('source_unavailable', 'the source is down'))
        return Promise.resolve({ title: `asked ${source} ${sourceId}`, provenance: `${source}:asked` })
      },
    },
  }
}

const legacySignal: Signal = {
  source: 'hn',
  sourceId: 'legacy',
  day: AS_OF,
  title: 'a title nobody vouched for',
  url: null,
  points: 99,
  comments: null,
  publishedAt: startOfDay(AS_OF),
  titleProvenance: null,
}

describe('a day that can be published', () => {
  test('is published once, with object, entry and head that prove each other', async () => {
    const workspace = await filledWorkspace()
    const { report } = await publish(publishPortsOf(workspace))
    expect(report).toMatchObject({
      outcome: 'published',
      asOfDay: AS_OF,
      attempt: 1,
      publicationId: `top-year-v3-${AS_OF}`,
      items: {
        hackerNews: 3,
        lobsters: 3,
        lessWrong: 3,
        hypeReplicate: 0,
        popular: 9,
        midjourney: 0,
        github: 0,
      },
      distinctItems: 9,
    })
    const { proved, head } = await workspace.year.read()
    expect(proved.entries).toHaveLength(1)
    expect(head).toMatchObject({ seq: 1, leaf: proved.lastLeaf })
    const manifest = proved.timeline[0]?.manifest
    expect(manifest).toMatchObject({ asOfDay: AS_OF, sha256: report.sha256, byteSize: report.byteSize })
    if (manifest) proveBytes(manifest, await workspace.archive.get(manifest.sha256))
  })

  test('is a no-op for every later run', async () => {
    const workspace = await filledWorkspace()
    const first = await publish(publishPortsOf(workspace))
    const second = await publish(publishPortsOf(workspace, { clock: tickingClock(RUN_AT + 3_600_000) }))
    expect(second.report).toMatchObject({
      outcome: 'already-published',
      sha256: first.report.sha256,
      attempt: null,
    })
    expect(await workspace.ledger.attempts(AS_OF)).toHaveLength(1)
  })

  test('has the same bytes for the same signals, titles and clock', async () => {
    const digests = await Promise.all(
      [1, 2].map(async () => (await publish(publishPortsOf(await filledWorkspace()))).report.sha256),
    )
    expect(digests[0]).toMatch(/^[0-9a-f]{64}$/)
    expect(digests[1]).toBe(digests[0])
  })

  test('does not know signals observed after it', async () => {
    const workspace = await filledWorkspace()
    const later = sampleSignals().map((signal) => ({ ...signal, day: addDays(AS_OF, 1), points: 1_000 }))
    await workspace.feed.importSignals(later)
    const other = await filledWorkspace()
    const digest = async (each: Workspace): Promise<string | null> =>
      (await publish(publishPortsOf(each))).report.sha256
    expect(await digest(workspace)).toBe(await digest(other))
  })

  test('is not rehearsed again once it is settled, nor by a clock that went back', async () => {
    const workspace = await filledWorkspace()
    const { report } = await publish(publishPortsOf(workspace))
    const rehearse = async (at: number): Promise<string> =>
      (await publish(publishPortsOf(workspace, { clock: tickingClock(at) }), { dryRun: true })).report.outcome
    expect(report.outcome).toBe('published')
    expect(await rehearse(RUN_AT + 60_000)).toBe('already-published')
    expect(await rehearse(RUN_AT - 60_000)).toBe('failed')
  })

  test('is rehearsed by a dry run that writes nothing', async () => {
    const workspace = await filledWorkspace()
    await workspace.feed.importSignals([legacySignal])
    await workspace.ledger.read()
    const state = (): Buffer[] => [workspace.ledgerPath, workspace.feedPath].map((path) => readFileSync(path))
    const before = state()
    const { report } = await publish(publishPortsOf(workspace, { titles: failingTitles(0).titles }), {
      dryRun: true,
    })
    expect(report).toMatchObject({ outcome: 'dry-run', attempt: null, publishedAt: null })
    expect(report.items?.['hackerNews']).toBe(4)
    expect(state()).toEqual(before)
    expect(readdirSync(workspace.objectsPath)).toEqual([])
  })
})

describe('a window that cannot be published', () => {
  const refusedRuns = [{ dryRun: false }, { dryRun: true }]

  test.each(refusedRuns)(
    'without an eligible event is refused before an attempt is counted: %o',
    async (options) => {
      const workspace = await openWorkspace()
      const unvouched = { ...legacySignal, source: 'hype:github' }
      await workspace.feed.importSignals([unvouched, { ...unvouched, day: addDays(AS_OF, -1) }])
      const { report, cause } = await publish(publishPortsOf(workspace), options)
      expect(report).toMatchObject({ outcome: 'failed', attempt: null, publicationId: null })
      expect(report.reason).toMatch(
        /2 of 365 days have signals.*dash import signals.*dash collect.*--allow-empty/,
      )
      expect(cause).toBeNull()
      expect(await workspace.ledger.attempts(AS_OF)).toEqual([])
      expect((await workspace.ledger.read()).rows).toEqual([])
      expect(readdirSync(workspace.objectsPath)).toEqual([])
    },
  )

  test('without an eligible event is published when that is allowed', async () => {
    const workspace = await openWorkspace()
    const { report } = await publish(publishPortsOf(workspace), { allowEmpty: true })
    expect(report).toMatchObject({ outcome: 'published', attempt: 1, coverage: { materializedDays: 0 } })
  })

  test('leaves the gaps of the days before recorded', async () => {
    const workspace = await openWorkspace()
    await publish(publishPortsOf(workspace), { allowEmpty: true })
    const later = addDays(AS_OF, 3)
    const clock = tickingClock(startOfDay(addDays(later, 1)) + 600_000)
    const { report } = await publish(publishPortsOf(workspace, { clock }))
    expect(report).toMatchObject({ outcome: 'failed', asOfDay: later, attempt: null })
    const { proved } = await workspace.year.read()
    expect(proved.entries).toMatchObject([
      { kind: 'publication' },
      { kind: 'gap', reason: 'missed', asOfDay: addDays(AS_OF, 1) },
      { kind: 'gap', reason: 'missed', asOfDay: addDays(AS_OF, 2) },
    ])
  })

  test.each([
    [{ title: 'x'.repeat(1_001) }, 'its title has more than 1000 characters'],
    [{ url: `https://example.org/${'x'.repeat(5_000)}` }, 'its URL has more than 4096 bytes'],
    [{ titleProvenance: `hn:${'x'.repeat(1_000)}` }, 'its title provenance has more than 256 characters'],
  ])('because stored rows are too long is refused before an attempt is counted', async (change, problem) => {
    const workspace = await filledWorkspace()
    const verified = { ...legacySignal, titleProvenance: 'hn:firebase-item', ...change }
    const rows = Array.from({ length: 60 }, (_, index) => ({ ...verified, sourceId: `long${index}` }))
    await workspace.feed.importSignals(rows)
    const { report, cause } = await publish(publishPortsOf(workspace))
    expect(report).toMatchObject({ outcome: 'failed', attempt: null })
    expect(report.reason).toContain(`60 stored events are too long for a publication, the first: hn long`)
    expect(report.reason).toContain(` of ${AS_OF}: `)
    expect(report.reason).toContain(problem)
    expect(cause).toBeNull()
    expect(await workspace.ledger.attempts(AS_OF)).toEqual([])
    // The same rows within the bounds mend it.
    await workspace.feed.importSignals(
      rows.map((row) => ({ ...row, title: 'short', url: null, titleProvenance: 'hn:firebase-item' })),
    )
    expect((await publish(publishPortsOf(workspace))).report.outcome).toBe('published')
  })

  /** Rows within the bounds whose control characters take six bytes each in JSON. */
  function wideRows(sources: readonly string[]): Signal[] {
    return sources.flatMap((source) =>
      Array.from({ length: 100 }, (_, index): Signal => ({
        ...legacySignal,
        source,
        sourceId: `wide${index}`,
        title: `${index}${'\u0001'.repeat(990)}`,
        url: `https://example.org/${index}?${'\u0001'.repeat(4_000)}`,
        titleProvenance: `${source}:test`,
      })),
    )
  }

  test.each(refusedRuns)(
    'because its result would be too large is refused before an attempt is counted, with the largest rows: %o',
    async (options) => {
      const workspace = await openWorkspace()
      const rows = wideRows(['hn', 'lobsters', 'lesswrong'])
      await workspace.feed.importSignals(rows)
      const { report } = await publish(publishPortsOf(workspace), options)
      expect(report).toMatchObject({ outcome: 'failed', attempt: null })
      expect(report.reason).toMatch(
        /^the publication has \d+ bytes, at most 8388608 are allowed; the largest rows: (hn|lobsters|lesswrong) wide\d+ of 2026-03-01 \(\d+ bytes\), .*dash import signals$/,
      )
      expect(readdirSync(workspace.objectsPath)).toEqual([])
      expect(await workspace.ledger.attempts(AS_OF)).toEqual([])
      await workspace.feed.importSignals(rows.map((row) => ({ ...row, url: null })))
      expect((await publish(publishPortsOf(workspace))).report.outcome).toBe('published')
    },
  )

  test('because titles of its sources make it too large costs one attempt and never the day', async () => {
    const workspace = await openWorkspace()
    const rows = wideRows(['hn', 'lobsters', 'lesswrong']).map((row) => ({
      ...row,
      title: row.sourceId,
      url: `${row.url?.slice(0, 3_000)}`,
      titleProvenance: null,
    }))
    await workspace.feed.importSignals(rows)
    const titles: PublishPorts['titles'] = {
      title: ({ sourceId }) =>
        Promise.resolve({ title: `${sourceId}${'\u0001'.repeat(990)}`, provenance: 'x:asked' }),
    }
    const { report } = await publish(publishPortsOf(workspace, { titles }), { once: false })
    expect(report).toMatchObject({ outcome: 'failed', attempt: null })
    expect(report.reason).toContain('at most 8388608 are allowed')
    expect(readdirSync(workspace.objectsPath)).toEqual([])
    expect(await workspace.ledger.attempts(AS_OF)).toMatchObject([
      { attempt: 1, reason: expect.stringMatching(/^the publication has \d+ bytes/) },
    ])
    await workspace.feed.importSignals(rows.map((row) => ({ ...row, url: null })))
    expect((await publish(publishPortsOf(workspace))).report).toMatchObject({
      outcome: 'published',
      attempt: 2,
    })
  })

  test('because a stored row fits no payload is refused before an attempt is counted', async () => {
    const workspace = await filledWorkspace()
    await workspace.feed.importSignals([{ ...legacySignal, title: ' ', titleProvenance: 'hn:test' }])
    const { report } = await publish(publishPortsOf(workspace))
    expect(report).toMatchObject({ outcome: 'failed', attempt: null })
    expect(report.reason).toContain('stored rows form no valid publication: feed.hackerNews.0.title')
    expect(await workspace.ledger.attempts(AS_OF)).toEqual([])
  })

  const unlisted: [name: string, rows: Signal[]][] = [
    [
      'three events of a hype cohort',
      ['a', 'b', 'c'].map((sourceId) => ({
        ...legacySignal,
        source: 'hype:github',
        sourceId,
        titleProvenance: 'hype:github:search',
      })),
    ],
    ['one event of the github list', [{ ...legacySignal, source: 'github', titleProvenance: 'github:api' }]],
    ['one event of the github list without provenance', [{ ...legacySignal, source: 'github' }]],
  ]

  test.each(unlisted)('because every list would be empty is refused: %s', async (_name, rows) => {
    const workspace = await openWorkspace()
    await workspace.feed.importSignals(rows)
    for (const options of refusedRuns) {
      const { report } = await publish(publishPortsOf(workspace), options)
      expect(report).toMatchObject({ outcome: 'failed', attempt: null })
      expect(report.reason).toMatch(/the Year would be empty.*--allow-empty/)
    }
    expect(await workspace.ledger.attempts(AS_OF)).toEqual([])
    const { report } = await publish(publishPortsOf(workspace), { allowEmpty: true })
    expect(report).toMatchObject({ outcome: 'published', distinctItems: 0 })
  })

  test('because its sources give every title too long costs one attempt and never the day', async () => {
    const workspace = await openWorkspace()
    await workspace.feed.importSignals([legacySignal])
    const titles: PublishPorts['titles'] = {
      title: () => Promise.resolve({ title: 'x'.repeat(1_001), provenance: 'hn:asked' }),
    }
    const { report } = await publish(publishPortsOf(workspace, { titles }), { once: false })
    expect(report).toMatchObject({ outcome: 'failed', attempt: null })
    expect(report.reason).toContain('the Year would be empty')
    expect(await workspace.ledger.attempts(AS_OF)).toHaveLength(1)
  })

  test('is not one with a long row that is not published itself', async () => {
    const workspace = await filledWorkspace()
    const long = { ...legacySignal, title: 'x'.repeat(1_001) }
    const unranked = Array.from({ length: 100 }, (_, index) => ({
      ...legacySignal,
      sourceId: `above${index}`,
      title: `above ${index}`,
      titleProvenance: 'hn:test',
    }))
    await workspace.feed.importSignals([
      long,
      ...unranked,
      { ...long, sourceId: 'below', points: 0, titleProvenance: 'hn:test' },
    ])
    const { report } = await publish(publishPortsOf(workspace, { titles: failingTitles(0).titles }))
    expect(report).toMatchObject({ outcome: 'published', attempt: 1 })
  })
})

describe('titles nobody vouched for', () => {
  test('that their source gives longer than 1,000 characters leave their events out, counted, and are asked for once', async () => {
    const workspace = await filledWorkspace()
    await workspace.feed.importSignals([legacySignal])
    let asked = 0
    const titles: PublishPorts['titles'] = {
      title() {
        asked += 1
        return Promise.resolve({ title: 'x'.repeat(1_001), provenance: 'hn:asked' })
      },
    }
    const { report } = await publish(publishPortsOf(workspace, { titles }))
    expect(report).toMatchObject({ outcome: 'published', coverage: { unverified: 1 } })
    expect(report.items?.['hackerNews']).toBe(3)
    const clock = tickingClock(startOfDay(addDays(AS_OF, 2)) + 600_000)
    const next = await publish(publishPortsOf(workspace, { titles, clock }))
    expect(next.report).toMatchObject({ outcome: 'published', coverage: { unverified: 1 } })
    expect(asked).toBe(1)
  })

  test('are asked of their source once, kept, and published with the channel that answered', async () => {
    const workspace = await filledWorkspace()
    await workspace.feed.importSignals([legacySignal])
    const source = failingTitles(0)
    await publish(publishPortsOf(workspace, { titles: source.titles }))
    const next = tickingClock(startOfDay(addDays(AS_OF, 2)) + 600_000)
    const { report } = await publish(publishPortsOf(workspace, { clock: next, titles: source.titles }))
    expect(report.outcome).toBe('published')
    expect(source.asked()).toBe(1)
    const bytes = await workspace.archive.get(report.sha256 ?? '')
    const envelope = JSON.parse(new TextDecoder().decode(bytes ?? new Uint8Array())) as {
      feed: { hackerNews: { title: string; title_provenance: string }[] }
    }
    expect(envelope.feed.hackerNews[0]).toMatchObject({
      title: 'asked hn legacy',
      title_provenance: 'hn:asked',
    })
  })

  test('are not asked for any more once one of them could not be had', async () => {
    const workspace = await filledWorkspace()
    const many = Array.from({ length: 60 }, (_, index) => ({ ...legacySignal, sourceId: `legacy${index}` }))
    await workspace.feed.importSignals(many)
    const source = failingTitles(Number.POSITIVE_INFINITY)
    const { report } = await publish(publishPortsOf(workspace, { titles: source.titles }))
    expect(report.outcome).toBe('failed')
    expect(source.asked()).toBeLessThanOrEqual(4)
  })

  test('fail the attempt when all of them together take more than five minutes', async () => {
    const workspace = await filledWorkspace()
    const many = Array.from({ length: 20 }, (_, index) => ({ ...legacySignal, sourceId: `legacy${index}` }))
    await workspace.feed.importSignals(many)
    let slowMs = 0
    const ticking = tickingClock(RUN_AT)
    const titles: PublishPorts['titles'] = {
      title: ({ sourceId }) => {
        slowMs += 60_000
        return Promise.resolve({ title: `slow ${sourceId}`, provenance: 'hn:slow' })
      },
    }
    const { report } = await publish(publishPortsOf(workspace, { titles, clock: () => ticking() + slowMs }))
    expect(report).toMatchObject({
      outcome: 'failed',
      reason: expect.stringContaining('took more than 300000 ms'),
    })
  })

  test('fail the attempt and publish nothing when their source is down', async () => {
    const workspace = await filledWorkspace()
    await workspace.feed.importSignals([legacySignal])
    const { report, cause } = await publish(publishPortsOf(workspace))
    expect(report).toMatchObject({ outcome: 'failed', attempt: 1, sha256: null })
    expect(cause).toMatchObject({ code: 'source_unavailable' })
    expect((await workspace.ledger.read()).rows).toEqual([])
    expect(readdirSync(workspace.objectsPath)).toEqual([])
    expect(await workspace.ledger.attempts(AS_OF)).toMatchObject([
      { attempt: 1, reason: expect.stringContaining('asked') },
    ])
  })
})

describe('attempts', () => {
  test('are made again after a pause until one succeeds', async () => {
    const workspace = await filledWorkspace()
    await workspace.feed.importSignals([legacySignal])
    const pauses: number[] = []
    const sleep = (ms: number): Promise<void> => Promise.resolve(void pauses.push(ms))
    const { report } = await publish(publishPortsOf(workspace, { titles: failingTitles(2).titles, sleep }), {
      once: false,
    })
    expect(report).toMatchObject({ outcome: 'published', attempt: 3 })
    expect(pauses).toEqual([1_000, 1_000])
  })

  test('are three over all runs; the third failure is a gap for ever', async () => {
    const workspace = await filledWorkspace()
    await workspace.feed.importSignals([legacySignal])
    const outcomes: string[] = []
    for (let run = 0; run < 5; run += 1) {
      const titles = run < 3 ? noTitles : failingTitles(0).titles
      const clock = tickingClock(RUN_AT + run * 60_000)
      outcomes.push((await publish(publishPortsOf(workspace, { titles, clock }))).report.outcome)
    }
    expect(outcomes).toEqual(['failed', 'failed', 'gap', 'gap', 'gap'])
    const { proved } = await workspace.year.read()
    expect(proved.entries).toMatchObject([
      { kind: 'gap', asOfDay: AS_OF, reason: 'attempts_spent', attempts: 3 },
    ])
    expect(await workspace.ledger.attempts(AS_OF)).toHaveLength(3)
  })

  test('that are spent are explained by every later run, with the reason of the last', async () => {
    const workspace = await filledWorkspace()
    await workspace.feed.importSignals([legacySignal])
    await publish(publishPortsOf(workspace), { once: false })
    const clock = tickingClock(RUN_AT + 3_600_000)
    const { report } = await publish(publishPortsOf(workspace, { clock }))
    expect(report).toMatchObject({ outcome: 'gap', attempt: 3 })
    expect(report.reason).toMatch(
      /^attempts_spent: all 3 attempts for 2026-03-01 are spent; the last failed with: .*asked.*; the day stays a gap, so mend the cause before the next day/,
    )
  })

  test('spent by runs that died make the day a gap in the next run', async () => {
    const workspace = await filledWorkspace()
    for (const attempt of [1, 2, 3]) {
      const grant = await workspace.ledger.takeLease(
        { name: 'a run that dies', process: null },
        RUN_AT,
        1,
        () => false,
      )
      if (grant.granted) await workspace.ledger.countAttempt(AS_OF, attempt, RUN_AT, grant.token)
      if (grant.granted) await workspace.ledger.releaseLease(grant.token)
    }
    const { report } = await publish(publishPortsOf(workspace))
    expect(report).toMatchObject({ outcome: 'gap', attempt: 3 })
    expect(report.reason).toMatch(
      /^attempts_spent: all 3 attempts for 2026-03-01 are spent; a run that died gave no reason; the day stays a gap, so mend the cause before the next day/,
    )
  })
})

describe('days on which nothing ran', () => {
  test('become gaps before the next publication, one entry and one head each', async () => {
    const workspace = await filledWorkspace()
    await publishDays(workspace, [AS_OF, addDays(AS_OF, 4)])
    const { proved, head } = await workspace.year.read()
    expect(
      proved.entries.map((entry) => (entry.kind === 'gap' ? `${entry.asOfDay} ${entry.reason}` : entry.kind)),
    ).toEqual([
      'publication',
      `${addDays(AS_OF, 1)} missed`,
      `${addDays(AS_OF, 2)} missed`,
      `${addDays(AS_OF, 3)} missed`,
      'publication',
    ])
    expect(head?.seq).toBe(5)
    expect(readdirSync(join(workspace.objectsPath, 'heads')).sort()).toEqual(['1', '2', '3', '4', '5'])
  })

  test('are none before the first attempt ever made', async () => {
    const workspace = await filledWorkspace()
    await publishDays(workspace, [AS_OF])
    expect((await workspace.year.read()).proved.entries).toHaveLength(1)
  })
})

describe('the clock', () => {
  test('that went back fails the run before an attempt is counted', async () => {
    const workspace = await filledWorkspace()
    await publishDays(workspace, [AS_OF])
    const { report } = await publish(publishPortsOf(workspace, { clock: tickingClock(RUN_AT - 86_400_000) }))
    expect(report).toMatchObject({
      outcome: 'failed',
      attempt: null,
      reason: expect.stringContaining('set the clock right'),
    })
    expect(await workspace.ledger.attempts(addDays(AS_OF, -1))).toEqual([])
  })

  test('that moved on too far before the commit makes the run seal anew', async () => {
    const workspace = await filledWorkspace()
    let late = 0
    const clock = tickingClock(RUN_AT)
    const archive = {
      ...workspace.archive,
      put: async (sha256: string, bytes: Uint8Array) => {
        await workspace.archive.put(sha256, bytes)
        late += COMMIT_WITHIN_MS + 1
      },
    }
    let puts = 0
    const slowOnce = {
      ...archive,
      put: async (sha256: string, bytes: Uint8Array) => {
        puts += 1
        await (puts === 1 ? archive : workspace.archive).put(sha256, bytes)
      },
    }
    const { report } = await publish(
      publishPortsOf(workspace, { archive: slowOnce, clock: () => clock() + late }),
    )
    expect(report).toMatchObject({ outcome: 'published', attempt: 1 })
    expect(puts).toBe(2)
    expect(Date.parse(report.publishedAt ?? '')).toBeGreaterThan(RUN_AT + COMMIT_WITHIN_MS)
  })
})

describe('publishers at once', () => {
  test('have one winner; the others are told who holds the lease', async () => {
    const workspace = await filledWorkspace()
    const runs = await Promise.allSettled(
      Array.from({ length: 12 }, (_, number) =>
        publish(
          publishPortsOf(reopenWorkspace(workspace.folder), {
            holder: { name: `publisher ${number}`, process: null },
          }),
        ),
      ),
    )
    const outcomes = runs.map((run) =>
      run.status === 'fulfilled' ? run.value.report.outcome : (run.reason as Refusal).code,
    )
    expect(outcomes.filter((outcome) => outcome === 'published')).toHaveLength(1)
    expect(new Set(outcomes)).toEqual(
      new Set(['published', ...outcomes.filter((o) => o === 'lease_held' || o === 'already-published')]),
    )
    expect((await workspace.year.read()).proved.entries).toHaveLength(1)
    expect(await workspace.ledger.attempts(AS_OF)).toHaveLength(1)
  })

  test('wait for a lease to run out, but not for one whose holder died', async () => {
    const workspace = await filledWorkspace()
    await workspace.ledger.takeLease({ name: 'an old run', process: 'gone' }, RUN_AT, LEASE_MS, () => false)
    const blocked = publish(publishPortsOf(workspace))
    await expect(blocked).rejects.toMatchObject({
      code: 'lease_held',
      message: expect.stringContaining('an old run'),
    })
    const { report } = await publish(publishPortsOf(workspace, { isDead: (process) => process === 'gone' }))
    expect(report.outcome).toBe('published')
  })

  test('that lost their lease before the commit publish nothing', async () => {
    const workspace = await filledWorkspace()
    const archive = {
      ...workspace.archive,
      put: async (sha256: string, bytes: Uint8Array) => {
        await workspace.archive.put(sha256, bytes)
        const taken = await workspace.ledger.takeLease(
          { name: 'a thief', process: null },
          RUN_AT + 2 * LEASE_MS,
          LEASE_MS,
          () => true,
        )
        expect(taken.granted).toBe(true)
      },
    }
    await expect(publish(publishPortsOf(workspace, { archive }))).rejects.toMatchObject({
      code: 'lease_lost',
    })
    expect((await workspace.ledger.read()).rows).toEqual([])
  })
})

describe('a publisher that was overtaken', () => {
  test('does not report what another run published as its own', async () => {
    const workspace = await filledWorkspace()
    const ledger: typeof workspace.ledger = {
      ...workspace.ledger,
      append: async (row, guard) => {
        // The lease runs out, another run publishes, and only then this one comes to its commit.
        const other = publishPortsOf(reopenWorkspace(workspace.folder), {
          clock: tickingClock(RUN_AT + 2 * LEASE_MS),
        })
        expect((await publish(other)).report).toMatchObject({ outcome: 'published', attempt: 2 })
        return workspace.ledger.append(row, guard)
      },
    }
    await expect(publish(publishPortsOf(workspace, { ledger }))).rejects.toMatchObject({ code: 'lease_lost' })
    expect((await workspace.year.read()).proved.timeline).toHaveLength(1)
  })

  test('keeps its lease while it works, by renewing it', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const workspace = await filledWorkspace()
    const started = tickingClock(RUN_AT)
    let workedMs = 0
    const clock = (): number => started() + workedMs
    const feed: typeof workspace.feed = {
      ...workspace.feed,
      readWindow: async (window) => {
        for (let minute = 0; minute < 25; minute += 1) {
          workedMs += 60_000
          await vi.advanceTimersByTimeAsync(60_000)
          // The renewal is a write of its own, and another run must be refused after it.
          await workspace.ledger.attempts(AS_OF)
        }
        const grant = await workspace.ledger.takeLease(
          { name: 'another', process: null },
          clock(),
          LEASE_MS,
          () => false,
        )
        expect(grant.granted).toBe(false)
        return workspace.feed.readWindow(window)
      },
    }
    const { report } = await publish(publishPortsOf(workspace, { feed, clock }))
    expect(report.outcome).toBe('published')
  })
})

describe('a head that could not be written', () => {
  test('leaves the day published, says so, and is written by the next run', async () => {
    const workspace = await filledWorkspace()
    const archive = { ...workspace.archive, putHead: () => Promise.reject(new Error('no room for heads')) }
    const { report, cause } = await publish(publishPortsOf(workspace, { archive }))
    expect(report).toMatchObject({
      outcome: 'published',
      reason: expect.stringContaining('the next run writes it'),
    })
    expect(cause).toMatchObject({ message: 'no room for heads' })
    const behind = await workspace.year.read()
    expect(headIsBehind(behind.proved.entries, behind.head)).toBe(true)
    const next = await publish(publishPortsOf(workspace, { clock: tickingClock(RUN_AT + 60_000) }))
    expect(next.report.outcome).toBe('already-published')
    expect((await workspace.year.read()).head).toMatchObject({ seq: 1 })
  })
})
