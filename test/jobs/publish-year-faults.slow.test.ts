import { expect, test } from 'vitest'
import { addDays } from '../../src/domain/time.ts'
import { headIsBehind } from '../../src/domain/year/chain.ts'
import { isDamage } from '../../src/domain/year/finding.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import type { PublishPorts } from '../../src/jobs/publish-year.ts'
import type { SignedLog } from '../../src/domain/year/ports.ts'
import { atEachEffect, FaultPlan, unlessStruck } from './faults.ts'
import type { Fault } from './faults.ts'
import { findingsIn, noteSizes, signedLogIn } from '../support/signed-log.ts'
import {
  AS_OF,
  openWorkspace,
  publish,
  publishDays,
  publishPortsOf,
  RUN_AT,
  sampleSignals,
  tickingClock,
} from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

const FIRST_DAY = addDays(AS_OF, -2)

interface Prepared extends Workspace {
  log: SignedLog
}

/** A published day, a missed one, and today's signals, one title of which must still be asked for. */
async function preparedWorkspace(): Promise<Prepared> {
  const stores = await openWorkspace()
  const workspace = { ...stores, log: signedLogIn(stores.folder) }
  await workspace.feed.importSignals(sampleSignals(FIRST_DAY))
  await publishDays(workspace, [FIRST_DAY])
  const [first, ...others] = sampleSignals()
  if (first) await workspace.feed.importSignals([{ ...first, titleProvenance: null }, ...others])
  return workspace
}

const answering: PublishPorts['titles'] = {
  title: ({ source }) => Promise.resolve({ title: 'as asked', provenance: `${source}:asked` }),
}

async function runWith(workspace: Prepared, plan: FaultPlan): Promise<PublishReport | null> {
  const logFiles = plan.wrap('logFiles', workspace.objects.logFiles)
  const ports = publishPortsOf(workspace, {
    ledger: plan.wrap('ledger', workspace.ledger),
    objects: { ...plan.wrap('archive', workspace.objects), logFiles },
    log: { ...workspace.log, signer: plan.wrap('signer', workspace.log.signer) },
    feed: plan.wrap('feed', workspace.feed),
    year: plan.wrap('year', workspace.year),
    titles: plan.wrap('titles', answering),
  })
  return (await unlessStruck(publish(ports)))?.report ?? null
}

/** Expects the invariant of every moment: the archive is sound, and no acknowledged publication is lost. */
async function expectSound(workspace: Prepared, acknowledged: string | null): Promise<void> {
  expect((await findingsIn(workspace.folder)).filter(isDamage)).toEqual([])
  const { proved } = await workspace.year.read()
  const days = proved.timeline.map((item) => item.manifest.asOfDay)
  expect(new Set(days).size).toBe(days.length)
  const digests = proved.timeline.map((item) => item.manifest.sha256)
  if (acknowledged !== null) expect(digests).toContain(acknowledged)
}

/** Effects that write, or guard those that do. */
const ORDERED = new Set(
  'ledger.takeLease ledger.countAttempt archive.put ledger.append archive.putHead signer.sign logFiles.put ledger.releaseLease'.split(
    ' ',
  ),
)

async function expectRecovery(fault: Fault): Promise<void> {
  const workspace = await preparedWorkspace()
  const first = await runWith(workspace, new FaultPlan(fault))
  await expectSound(workspace, first?.outcome === 'published' ? first.sha256 : null)
  const clock = tickingClock(RUN_AT + 660_000)
  const { report } = await publish(publishPortsOf(workspace, { titles: answering, clock }))
  expect(['published', 'already-published']).toContain(report.outcome)
  await expectSound(workspace, first?.outcome === 'published' ? first.sha256 : report.sha256)
  const { proved, head } = await workspace.year.read()
  expect(headIsBehind(proved.entries, head)).toBe(false)
  expect(proved.entries.map((entry) => entry.kind)).toEqual(['publication', 'gap', 'publication'])
  expect((await noteSizes(workspace.objects)).at(-1)).toBe(3)
  expect((await workspace.ledger.attempts(AS_OF)).length).toBeLessThanOrEqual(2)
}

test('a run has its effects in the decided order; interrupted at any of them, it leaves a sound archive, and the next run ends published', async () => {
  const clean = new FaultPlan(null)
  expect(await runWith(await preparedWorkspace(), clean)).toMatchObject({ outcome: 'published' })
  expect(clean.effects.filter((effect) => ORDERED.has(effect))).toEqual([
    'ledger.takeLease',
    'ledger.append',
    'archive.putHead',
    'signer.sign',
    'logFiles.put',
    'ledger.countAttempt',
    'archive.put',
    'ledger.append',
    'archive.putHead',
    'signer.sign',
    'logFiles.put',
    'ledger.releaseLease',
  ])
  await atEachEffect(clean.effects, 15, expectRecovery)
})
