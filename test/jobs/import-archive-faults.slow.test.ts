import { expect, test } from 'vitest'
import { archiveFolder } from '../../src/adapters/input.ts'
import { headIsBehind } from '../../src/domain/year/chain.ts'
import { proveBytes } from '../../src/domain/year/envelope.ts'
import { importArchive } from '../../src/jobs/import-archive.ts'
import type { ArchiveImportReport } from '../../src/jobs/import-archive.ts'
import { atEachEffect, FaultPlan, unlessStruck } from './faults.ts'
import type { Fault } from './faults.ts'
import { importPortsOf, SAMPLE_ARCHIVE } from '../support/legacy-archive.ts'
import { AS_OF, openWorkspace, publish, publishPortsOf, RUN_AT, tickingClock } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

/** When a run that comes after a broken one starts: its lease has run out. */
const LATER = RUN_AT + 660_000

function runWith(workspace: Workspace, plan: FaultPlan): Promise<ArchiveImportReport | null> {
  const ports = importPortsOf(workspace, SAMPLE_ARCHIVE, {
    ledger: plan.wrap('ledger', workspace.ledger),
    objects: plan.wrap('archive', workspace.objects),
    year: plan.wrap('year', workspace.year),
    folder: plan.wrap('folder', archiveFolder(SAMPLE_ARCHIVE)),
  })
  return unlessStruck(importArchive(ports))
}

/** Expects the invariant of every moment: the archive is sound, and its founding is complete or absent. */
async function expectWholeOrNothing(workspace: Workspace): Promise<number> {
  const { proved } = await workspace.year.read()
  expect([0, 6]).toContain(proved.timeline.length)
  for (const { manifest } of proved.timeline)
    proveBytes(manifest, await workspace.objects.get(manifest.sha256))
  return proved.timeline.length
}

/** Expects a publisher beside an interrupted import to refuse without counting an attempt, or to publish after the whole import. */
async function expectPublisherKeepsOut(workspace: Workspace): Promise<void> {
  const { proved } = await workspace.year.read()
  if (!proved.unfinished) return
  const { report } = await publish(publishPortsOf(workspace, { clock: tickingClock(LATER) }))
  expect(report).toMatchObject({
    outcome: 'failed',
    reason: expect.stringContaining('run `dash import archive`'),
  })
  expect(await workspace.ledger.attempts(AS_OF)).toEqual([])
  expect((await workspace.ledger.read()).rows).toEqual([])
}

async function expectRecovery(fault: Fault): Promise<void> {
  const workspace = await openWorkspace()
  const first = await runWith(workspace, new FaultPlan(fault))
  const there = await expectWholeOrNothing(workspace)
  if (first?.imported === 6) expect(there).toBe(6)
  await expectPublisherKeepsOut(workspace)
  const clock = tickingClock(LATER + 660_000)
  const second = await importArchive(importPortsOf(workspace, SAMPLE_ARCHIVE, { clock }))
  expect(second).toEqual({ imported: 6 - there, unchanged: there, refused: [], refusedCount: 0 })
  expect(await expectWholeOrNothing(workspace)).toBe(6)
  const { proved, head } = await workspace.year.read()
  expect(proved.entries).toHaveLength(4)
  expect(headIsBehind(proved.entries, head)).toBe(false)
}

test('an import has its effects in the decided order; interrupted at any of them, it leaves all or nothing and blocks publishers, and the next run completes it', async () => {
  const clean = new FaultPlan(null)
  expect(await runWith(await openWorkspace(), clean)).toMatchObject({ imported: 6 })
  expect(clean.effects.filter((effect) => !effect.startsWith('folder.'))).toEqual([
    'ledger.takeLease',
    'year.read',
    ...Array<string>(6).fill('archive.put'),
    'ledger.beginFounding',
    'archive.putHead',
    'ledger.commitFounding',
    'archive.putHead',
    'ledger.releaseLease',
  ])
  await atEachEffect(clean.effects, 20, expectRecovery)
})
