import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Signal } from '../../src/domain/feed/signal.ts'
import type { SignedLog } from '../../src/domain/year/ports.ts'
import { addDays, startOfDay } from '../../src/domain/time.ts'
import type { Day } from '../../src/domain/time.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import type { PublishOptions, PublishPorts } from '../../src/jobs/publish-year.ts'
import { signal } from '../support/signals.ts'
import { signedLogIn } from '../support/signed-log.ts'
import {
  AS_OF,
  openWorkspace,
  publish,
  publishDays,
  publishPortsOf,
  sampleSignals,
  tickingClock,
} from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

interface SignedWorkspace extends Workspace {
  log: SignedLog
}

/** A workspace with a log key, and signals of as-of days. */
async function workspaceOf(...signalsOf: Day[]): Promise<SignedWorkspace> {
  const stores = await openWorkspace()
  for (const day of signalsOf) await stores.feed.importSignals(sampleSignals(day))
  return { ...stores, log: signedLogIn(stores.folder) }
}

/** A workspace with a signed publication of {@link AS_OF}, and signals of later as-of days. */
async function publishedTo(...signalsOf: Day[]): Promise<SignedWorkspace> {
  const workspace = await workspaceOf(AS_OF, ...signalsOf)
  await publishDays(workspace, [AS_OF])
  return workspace
}

/** Runs ten minutes after the end of a day, by the clock of the run. */
async function publishAsOf(
  workspace: Workspace,
  day: Day,
  options: Partial<PublishOptions> = {},
  ports: Partial<PublishPorts> = {},
): Promise<PublishReport> {
  const clock = tickingClock(startOfDay(addDays(day, 1)) + 600_000)
  return (await publish(publishPortsOf(workspace, { clock, ...ports }), options)).report
}

/** Everything that a refused run must leave as it was. */
async function written(workspace: Workspace & { log?: SignedLog }): Promise<unknown> {
  return {
    rows: (await workspace.ledger.read()).rows,
    attempts: await workspace.ledger.attempts(),
    objects: readdirSync(workspace.objectsPath, { recursive: true }).sort(),
    signed: await workspace.log?.signer.lastSigned(),
  }
}

/** Publishes, expects a refusal that writes nothing, rehearsed or not, and returns its reason. */
async function refusalOf(
  workspace: Workspace & { log?: SignedLog },
  day: Day,
  options: Partial<PublishOptions> = {},
): Promise<string> {
  const before = await written(workspace)
  const reports = []
  for (const dryRun of [true, false]) reports.push(await publishAsOf(workspace, day, { ...options, dryRun }))
  for (const report of reports)
    expect(report).toMatchObject({ outcome: 'failed', asOfDay: day, attempt: null, gapsRecorded: 0 })
  expect(await written(workspace)).toEqual(before)
  const [rehearsed, refused] = reports.map(({ reason }) => reason?.replaceAll(/\.\d{3}Z/g, 'Z') ?? '')
  expect(rehearsed).toBe(refused)
  return refused ?? ''
}

describe('the confirmation of missed days', () => {
  const day = addDays(AS_OF, 9)

  test.each<[what: string, prepared: () => Promise<Workspace>, gaps: number, reason: RegExp]>([
    [
      'after the last entry',
      () => publishedTo(day),
      8,
      /^8 missed days .* the clock says 2026-03-11T00:10:00.*, and the last entry of the ledger is of 2026-03-02T00:10:00Z; .*--record-gaps 8/,
    ],
    [
      'since the first attempt of an archive without an entry',
      async () => {
        const workspace = await workspaceOf(AS_OF, day)
        const objects = { ...workspace.objects, put: () => Promise.reject(new Error('no room')) }
        expect(await publishAsOf(workspace, AS_OF, {}, { objects })).toMatchObject({ attempt: 1 })
        return workspace
      },
      9,
      /^9 missed days .* the ledger has no entry; .*--record-gaps 9/,
    ],
    [
      'of a first publication, which has none, with stale news',
      () => workspaceOf(AS_OF),
      0,
      new RegExp(`^the newest news signal is of ${AS_OF}, 9 days before ${day}, .*--record-gaps 0`),
    ],
  ])('missed days %s are recorded only with exactly their number', async (...row) => {
    const [, prepared, gaps, reason] = row
    const workspace = await prepared()
    expect(await refusalOf(workspace, day)).toMatch(reason)
    expect(await refusalOf(workspace, day, { recordGaps: gaps + 1 })).toContain(
      `--record-gaps ${gaps + 1} is not`,
    )
    const report = { outcome: 'published', gapsRecorded: gaps }
    expect(await publishAsOf(workspace, day, { recordGaps: gaps })).toMatchObject(report)
  })
})

describe('a run over missed days', () => {
  test.each([
    ['a gap', 3, 0, 'takeLease'],
    ['a publication', 0, 1, 'countAttempt'],
  ] as const)(
    'a clock that is set right during a run stops it before %s of a day that has not ended',
    async (_what, missed, attempts, step) => {
      const day = addDays(AS_OF, missed + 1)
      const workspace = await publishedTo(day)
      const right = tickingClock(startOfDay(day) + 3_600_000)
      let clock = tickingClock(startOfDay(addDays(day, 1)) + 600_000)
      const work = workspace.ledger[step] as (...args: unknown[]) => Promise<unknown>
      const corrected = (...args: unknown[]): Promise<unknown> => work(...args).finally(() => (clock = right))
      const ledger = { ...workspace.ledger, [step]: corrected }
      const running = publish(publishPortsOf(workspace, { clock: () => clock(), ledger }))
      const reason = await running.then(({ report }) => report.reason, String)
      expect(reason).toContain('the clock went backwards')
      expect((await workspace.ledger.read()).rows).toHaveLength(1)
      expect(await workspace.ledger.attempts(day)).toHaveLength(attempts)
    },
  )

  test('a run that fails after gaps were recorded reports their number', async () => {
    const day = addDays(AS_OF, 4)
    const workspace = await publishedTo(day)
    const fault = new Error('the disk is gone')
    const ledger = { ...workspace.ledger, countAttempt: () => Promise.reject(fault) }
    const clock = tickingClock(startOfDay(addDays(day, 1)))
    const { report, cause } = await publish(publishPortsOf(workspace, { clock, ledger }))
    expect(report).toMatchObject({ outcome: 'failed', gapsRecorded: 3, reason: 'the disk is gone' })
    expect(cause).toBe(fault)
  })
})

describe('preconditions', () => {
  test('a window with a hype column and no news is refused before an attempt is counted, unless that is allowed', async () => {
    const events = (count: number, changes: Partial<Signal>): Signal[] =>
      Array.from({ length: count }, (_, index) =>
        signal({ sourceId: `${index}`, titleProvenance: 'test', ...changes }),
      )
    const workspace = await workspaceOf()
    await workspace.feed.importSignals([
      ...events(5, { source: 'hype:github' }),
      ...events(3, { source: 'hype:reddit' }),
      ...events(2, { publishedAt: null }),
    ])
    const reason = await refusalOf(workspace, AS_OF)
    expect(reason).toMatch(/^the Year would be empty: .*dash import signals.*dash collect.*--allow-empty$/)
    expect(reason).toContain(
      ', and 1 of 365 days have news signals; events left out: 2 without a publication time, 3 in hype sources that are unknown or have fewer than 5 events; ',
    )
    expect(await refusalOf(await workspaceOf(), AS_OF)).not.toContain('events left out')
    const report = await publishAsOf(workspace, AS_OF, { allowEmpty: true })
    expect(report).toMatchObject({ outcome: 'published', attempt: 1, distinctItems: 5 })
    expect(report.coverage?.materializedDays).toBe(1)
  })

  const day = addDays(AS_OF, 4)
  test('no gap is recorded while a stored row is too long', async () => {
    const workspace = await publishedTo()
    await workspace.feed.importSignals(
      sampleSignals(day).map((row) => ({ ...row, title: 'x'.repeat(1_001) })),
    )
    expect(await refusalOf(workspace, day)).toMatch(
      /^9 stored events are too long .* of 2026-03-0\d: its title has more than 1000 characters/,
    )
  })

  test('no gap is recorded while the object store refuses writes', async () => {
    const workspace = await publishedTo(day)
    const before = await written(workspace)
    const full = { ...workspace.objects, prepare: () => Promise.reject(new Error('the store is read-only')) }
    await expect(publishAsOf(workspace, day, {}, { objects: full })).rejects.toThrow('the store is read-only')
    expect(await written(workspace)).toEqual(before)
  })

  test('a refused run writes no head that a crash left out, and a settled day does', async () => {
    const workspace = await publishedTo()
    const objects = { ...workspace.objects, putHead: () => Promise.reject(new Error('no space for heads')) }
    await workspace.feed.importSignals(sampleSignals(addDays(AS_OF, 1)))
    await publishAsOf(workspace, addDays(AS_OF, 1), {}, { objects })
    await refusalOf(workspace, addDays(AS_OF, 20))
    const clock = tickingClock(startOfDay(addDays(AS_OF, 2)) + 3_600_000)
    const { report } = await publish(publishPortsOf(workspace, { clock }))
    expect(report.outcome).toBe('already-published')
    expect((await workspace.year.read()).head).toMatchObject({ seq: 2 })
  })
})

test('a clock that was ahead of the sources refuses every run until a collect with the right clock', async () => {
  const runAt = startOfDay(addDays(AS_OF, 1)) + 600_000
  const workspace = await workspaceOf(AS_OF)
  await workspace.feed.saveClockCheck({ checkedAt: runAt - 3_600_000, aheadMs: 300_001, sources: 3 })
  for (const recordGaps of [null, 0])
    expect(await refusalOf(workspace, AS_OF, { recordGaps })).toMatch(/ahead of 3 sources .* dash collect/)
  // The right clock may be behind the wrong one.
  await workspace.feed.saveClockCheck({ checkedAt: runAt - 7_200_000, aheadMs: 300_000, sources: 1 })
  expect(await publishAsOf(workspace, AS_OF)).toMatchObject({ outcome: 'published' })
})
