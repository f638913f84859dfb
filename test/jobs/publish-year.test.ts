import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Signal } from '../../src/domain/feed/signal.ts'
import { Refusal } from '../../src/domain/refusal.ts'
import { DAY_MS, addDays } from '../../src/domain/time.ts'
import { proveBytes } from '../../src/domain/year/envelope.ts'
import type { YearEnvelope } from '../../src/domain/year/schema.ts'
import type { PublishPorts } from '../../src/jobs/publish-year.ts'
import { signal } from '../support/signals.ts'
import { signedLogIn } from '../support/signed-log.ts'
import {
  AS_OF,
  noTitles,
  openWorkspace,
  publish,
  publishPortsOf,
  reopenWorkspace,
  RUN_AT,
  sampleSignals,
  tickingClock,
} from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

/** The events of the sample, and more. */
async function filledWorkspace(...more: Signal[]): Promise<Workspace> {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals([...sampleSignals(), ...more])
  return workspace
}

/** Gives the lease to another run, unless it is held by one that is not dead. */
function takeLease({ ledger }: Workspace, name: string, from: number, lasts = 600_000, isDead = false) {
  return ledger.takeLease({ name, process: name }, from, lasts, () => isDead)
}

/** A source of titles that is down for its first requests. */
function titleSource(
  failures = 0,
  title = 'as asked',
): { titles: PublishPorts['titles']; asked: () => number } {
  let asked = 0
  const titles: PublishPorts['titles'] = {
    title: async ({ source, sourceId }) => {
      asked += 1
      if (asked <= failures) throw new Refusal('source_unavailable', 'the source is down')
      return { title: `${title} ${sourceId}`, provenance: `${source}:asked` }
    },
  }
  return { titles, asked: () => asked }
}

/** An event whose title no source has confirmed. */
const unverified = signal({ sourceId: 'legacy', points: 99, titleProvenance: null })

const manyUnverified = (count: number): Signal[] =>
  Array.from({ length: count }, (_, index) => ({ ...unverified, sourceId: `legacy${index}` }))

describe('a day that can be published', () => {
  test('a day is published once, with object, entry and head that prove each other', async () => {
    const workspace = await filledWorkspace()
    const { report } = await publish(publishPortsOf(workspace))
    expect(report).toMatchObject({
      outcome: 'published',
      asOfDay: AS_OF,
      attempt: 1,
      publicationId: `top-year-v3-${AS_OF}`,
      items: { hackerNews: 3, hypeReplicate: 0, popular: 9 },
      distinctItems: 9,
    })
    const { proved, head } = await workspace.year.read()
    expect(proved.entries).toHaveLength(1)
    expect(head).toMatchObject({ seq: 1, leaf: proved.lastLeaf })
    const manifest = proved.timeline[0]?.manifest
    expect(manifest).toMatchObject({ asOfDay: AS_OF, sha256: report.sha256, byteSize: report.byteSize })
    if (manifest) proveBytes(manifest, await workspace.objects.get(manifest.sha256))
  })

  test('a settled day is neither published nor rehearsed again, and a clock that went back fails the run', async () => {
    const workspace = await filledWorkspace()
    const { sha256 } = (await publish(publishPortsOf(workspace))).report
    const again = async (laterMs: number, dryRun: boolean): Promise<unknown> => {
      const clock = tickingClock(RUN_AT + laterMs)
      return (await publish(publishPortsOf(workspace, { clock }), { dryRun })).report
    }
    const settled = { outcome: 'already-published', sha256, attempt: null }
    // A clock check after the publication does not unsettle the day.
    await workspace.feed.saveClockCheck({ checkedAt: RUN_AT, aheadMs: 600_000, sources: 1 })
    expect(await again(3_600_000, false)).toMatchObject(settled)
    expect(await again(60_000, true)).toMatchObject(settled)
    const reason: unknown = expect.stringContaining('correct the clock')
    expect(await again(-60_000, false)).toMatchObject({ outcome: 'failed', attempt: null, reason })
    expect(await workspace.ledger.attempts(AS_OF)).toHaveLength(1)
  })

  test('a dry run rehearses a day and writes nothing', async () => {
    const workspace = await filledWorkspace(unverified)
    await workspace.ledger.read()
    const state = (): Buffer[] => [workspace.ledgerPath, workspace.feedPath].map((path) => readFileSync(path))
    const before = state()
    const log = signedLogIn(workspace.folder)
    const ports = publishPortsOf(workspace, { titles: titleSource().titles, log })
    const { report } = await publish(ports, { dryRun: true })
    expect(report).toMatchObject({ outcome: 'dry-run', attempt: null, publishedAt: null })
    expect(report.items?.['hackerNews']).toBe(4)
    expect(state()).toEqual(before)
    expect(readdirSync(workspace.objectsPath)).toEqual([])
    expect(await log.signer.lastSigned()).toMatchObject({ size: 0 })
  })
})

describe('a window that cannot be published', () => {
  test('a window whose sources give every title too long costs one attempt and never the day', async () => {
    const workspace = await openWorkspace()
    await workspace.feed.importSignals([unverified])
    const { titles } = titleSource(0, 'x'.repeat(1_001))
    const { report } = await publish(publishPortsOf(workspace, { titles }), { once: false })
    expect(report).toMatchObject({ outcome: 'failed', attempt: null })
    expect(report.reason).toContain('the Year would be empty')
    expect(await workspace.ledger.attempts(AS_OF)).toHaveLength(1)
  })
})

describe('unverified titles', () => {
  test.each([
    ['as asked', 4, 0],
    // It excludes its event.
    ['x'.repeat(1_001), 3, 1],
  ])(
    'an unverified title is fetched from its source once, stored, and published with the channel of the source if it is not too long: %.8s',
    async (title, hackerNews, excluded) => {
      const workspace = await filledWorkspace(unverified)
      const { titles, asked } = titleSource(0, title)
      const first = await publish(publishPortsOf(workspace, { titles }))
      expect(first.report).toMatchObject({ outcome: 'published', items: { hackerNews } })
      const clock = tickingClock(RUN_AT + DAY_MS)
      const { report } = await publish(publishPortsOf(workspace, { clock, titles }))
      expect([report.outcome, report.coverage?.unverified, asked()]).toEqual(['published', excluded, 1])
      const bytes = await workspace.objects.get(report.sha256 ?? '')
      const { feed } = JSON.parse(Buffer.from(bytes ?? []).toString()) as YearEnvelope
      const fetched = feed.hackerNews.filter((each) => each.title_provenance === 'hn:asked')
      expect(fetched.map((each) => each.title)).toEqual(excluded === 0 ? ['as asked legacy'] : [])
    },
  )

  test('no more titles are fetched after one has failed', async () => {
    const workspace = await filledWorkspace(...manyUnverified(60))
    const { titles, asked } = titleSource(Number.POSITIVE_INFINITY)
    expect((await publish(publishPortsOf(workspace, { titles }))).report.outcome).toBe('failed')
    expect(asked()).toBeLessThanOrEqual(4)
  })

  test('the attempt fails when all titles together take more than five minutes', async () => {
    const workspace = await filledWorkspace(...manyUnverified(20))
    const ticking = tickingClock(RUN_AT)
    const { titles, asked } = titleSource()
    const clock = (): number => ticking() + 60_000 * asked()
    const { report } = await publish(publishPortsOf(workspace, { titles, clock }))
    expect(report.outcome).toBe('failed')
    expect(report.reason).toContain('timed out after 300000 ms')
  })
})

describe('attempts', () => {
  test('attempts are repeated after a pause until one succeeds', async () => {
    const workspace = await filledWorkspace(unverified)
    const pauses: number[] = []
    const sleep = (ms: number): Promise<void> => Promise.resolve(void pauses.push(ms))
    const said: string[] = []
    const onProgress = (message: string): void => void said.push(message)
    const ports = publishPortsOf(workspace, { titles: titleSource(2).titles, sleep, onProgress })
    const { report } = await publish(ports, { once: false })
    expect(report).toMatchObject({ outcome: 'published', attempt: 3 })
    expect(pauses).toEqual([1_000, 1_000])
    expect(said.filter((message) => message.startsWith('attempt'))).toEqual([
      expect.stringMatching(/^attempt 1 failed \(.*the source is down.*\); next attempt in 1 s$/),
      'attempt 2 failed for the same reason; next attempt in 1 s',
    ])
  })

  test('missed days become gaps with the attempts of their own, which a dry run announces', async () => {
    const workspace = await filledWorkspace()
    const onDay = async (day: number, changes: Partial<PublishPorts> = {}, dryRun = false) => {
      const clock = tickingClock(RUN_AT + day * DAY_MS)
      return (await publish(publishPortsOf(workspace, { clock, ...changes }), { dryRun })).report
    }
    expect(await onDay(0)).toMatchObject({ outcome: 'published' })
    await workspace.feed.importSignals([...sampleSignals(addDays(AS_OF, 1)), unverified])
    expect(await onDay(1)).toMatchObject({ outcome: 'failed', attempt: 1 })
    const { titles } = titleSource()
    expect(await onDay(2, { titles }, true)).toMatchObject({ reason: '1 gap would be recorded' })
    expect(await onDay(3, { titles }, true)).toMatchObject({ reason: '2 gaps would be recorded' })
    expect(await onDay(3, { titles })).toMatchObject({ outcome: 'published', gapsRecorded: 2 })
    expect((await workspace.year.read()).proved.entries.slice(1)).toMatchObject([
      { kind: 'gap', asOfDay: addDays(AS_OF, 1), reason: 'missed', attempts: 1 },
      { kind: 'gap', asOfDay: addDays(AS_OF, 2), reason: 'missed', attempts: 0 },
      { kind: 'publication' },
    ])
  })

  test('a failed attempt publishes nothing; the third over all runs is a gap for ever, explained by every later run', async () => {
    const workspace = await filledWorkspace(unverified)
    const run = (titles: PublishPorts['titles'], number: number) =>
      publish(publishPortsOf(workspace, { titles, clock: tickingClock(RUN_AT + number * 60_000) }))
    const first = await run(noTitles, 0)
    expect(first.report).toMatchObject({ outcome: 'failed', attempt: 1, sha256: null, gapsRecorded: 0 })
    expect(first.cause).toMatchObject({ code: 'source_unavailable' })
    expect((await workspace.ledger.read()).rows).toEqual([])
    expect(readdirSync(workspace.objectsPath)).toEqual([])
    const reason: unknown = expect.stringContaining('asked')
    expect(await workspace.ledger.attempts(AS_OF)).toMatchObject([{ attempt: 1, reason }])
    expect((await run(noTitles, 1)).report).toMatchObject({ outcome: 'failed', gapsRecorded: 0 })
    expect((await run(noTitles, 2)).report).toMatchObject({ outcome: 'gap', gapsRecorded: 1 })
    const { report } = await run(titleSource().titles, 3)
    expect(report).toMatchObject({ outcome: 'gap', gapsRecorded: 0 })
    expect(report.reason).toMatch(
      /^attempts_spent: all 3 attempts for 2026-03-01 are used up; the last failed with: .*asked.*; this gap is permanent; fix the cause before the next/,
    )
    expect((await workspace.year.read()).proved.entries).toMatchObject([
      { kind: 'gap', asOfDay: AS_OF, reason: 'attempts_spent', attempts: 3 },
    ])
    expect(await workspace.ledger.attempts(AS_OF)).toHaveLength(3)
  })

  test('attempts of runs that died make the day a gap in the next run', async () => {
    const workspace = await filledWorkspace()
    for (const attempt of [1, 2, 3]) {
      const grant = await takeLease(workspace, 'a run that dies', RUN_AT, 1)
      if (!grant.granted) throw new Error('the lease is held')
      await workspace.ledger.countAttempt(AS_OF, attempt, RUN_AT, grant.token)
      await workspace.ledger.releaseLease(grant.token)
    }
    const rehearsed = await publish(publishPortsOf(workspace), { dryRun: true })
    const { report } = await publish(publishPortsOf(workspace))
    for (const each of [rehearsed.report, report]) expect(each).toMatchObject({ outcome: 'gap', attempt: 3 })
    expect(report.reason).toContain('are used up; the last run ended without a reason; this gap is permanent')
  })
})

describe('the clock', () => {
  test('a clock that advanced too far before the commit makes the run seal again', async () => {
    const workspace = await filledWorkspace()
    const ticking = tickingClock(RUN_AT)
    let [late, puts] = [0, 0]
    const put: typeof workspace.objects.put = async (sha256, bytes) => {
      await workspace.objects.put(sha256, bytes)
      late = 10_001
      puts += 1
    }
    const ports = publishPortsOf(workspace, {
      objects: { ...workspace.objects, put },
      clock: () => ticking() + late,
    })
    const { report } = await publish(ports)
    expect(report).toMatchObject({ outcome: 'published', attempt: 1 })
    expect(puts).toBe(2)
    expect(Date.parse(report.publishedAt ?? '')).toBeGreaterThan(RUN_AT + 10_000)
  })
})

describe('concurrent publishers', () => {
  test('a publisher takes over the lease of a run that died', async () => {
    const workspace = await filledWorkspace()
    await takeLease(workspace, 'an old run', RUN_AT)
    const ports = publishPortsOf(workspace, { isDead: (process) => process === 'an old run' })
    expect((await publish(ports)).report.outcome).toBe('published')
  })

  test("a publisher does not report another run's publication as its own", async () => {
    const workspace = await filledWorkspace()
    const ledger: typeof workspace.ledger = {
      ...workspace.ledger,
      append: async (row, guard) => {
        // The lease runs out, another run publishes, and only then this one comes to its commit.
        const other = publishPortsOf(reopenWorkspace(workspace.folder), {
          clock: tickingClock(RUN_AT + 660_000),
        })
        expect((await publish(other)).report).toMatchObject({ outcome: 'published', attempt: 2 })
        return workspace.ledger.append(row, guard)
      },
    }
    await expect(publish(publishPortsOf(workspace, { ledger }))).rejects.toMatchObject({ code: 'lease_lost' })
    expect((await workspace.year.read()).proved.timeline).toHaveLength(1)
  })

  test('a publisher keeps its lease during its work by renewing it', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const workspace = await filledWorkspace()
    const started = tickingClock(RUN_AT)
    let workedMs = 0
    const clock = (): number => started() + workedMs
    const readWindow: typeof workspace.feed.readWindow = async (window) => {
      for (let minute = 0; minute < 25; minute += 1) {
        workedMs += 60_000
        await vi.advanceTimersByTimeAsync(60_000)
        // The renewal is a write of its own, and another run must be refused after it.
        await workspace.ledger.attempts(AS_OF)
      }
      expect((await takeLease(workspace, 'another', clock())).granted).toBe(false)
      return workspace.feed.readWindow(window)
    }
    const ports = publishPortsOf(workspace, { feed: { ...workspace.feed, readWindow }, clock })
    expect((await publish(ports)).report.outcome).toBe('published')
  })
})
