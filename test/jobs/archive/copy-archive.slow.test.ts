import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { ledgerAuditor, storeAuditor } from '../../../src/adapters/auditors.ts'
import { yearReader } from '../../../src/adapters/ledger/ledger.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { addDays } from '../../../src/domain/time.ts'
import { copyArchive } from '../../../src/jobs/archive/copy-archive.ts'
import type { ArchiveStores, CopyPorts, CopyReport } from '../../../src/jobs/archive/copy-archive.ts'
import { importArchive } from '../../../src/jobs/import-archive.ts'
import { atEachEffect, FaultPlan, unlessStruck } from '../faults.ts'
import { filesOfFolder } from '../../support/temporary-folder.ts'
import { SAMPLE_ARCHIVE, importPortsOf, importSample } from '../../support/legacy-archive.ts'
import { findingsIn } from '../../support/signed-log.ts'
import { noteSizes, signedLogIn } from '../../support/signed-log.ts'
import {
  AS_OF,
  openWorkspace,
  publishDays,
  reopenWorkspace,
  RUN_AT,
  sampleSignals,
  tickingClock,
} from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

const FIRST_DAY = addDays(AS_OF, -4)

/** Two publications with gaps between them. */
async function filledWorkspace(firstDay = FIRST_DAY): Promise<Workspace> {
  const workspace = await openWorkspace()
  for (const day of [firstDay, AS_OF]) await workspace.feed.importSignals(sampleSignals(day))
  await publishDays(workspace, [firstDay, AS_OF])
  return workspace
}

const NEVER = new AbortController().signal

function copy(source: ArchiveStores, target: ArchiveStores, changes: Partial<CopyPorts> = {}) {
  return copyArchive(
    {
      source,
      target,
      clock: tickingClock(RUN_AT + 3_600_000),
      holder: { name: 'the copy', process: null },
      isDead: () => false,
      onNote: () => undefined,
      onProgress: () => undefined,
      ...changes,
    },
    NEVER,
  )
}

const copyOf = (source: Workspace, target: Workspace, changes: Partial<CopyPorts> = {}) =>
  copy(placeOf(source), placeOf(target), changes)

/** The stores of a workspace as a copy uses them; ledger and objects may be replaced. */
function placeOf(
  workspace: Workspace,
  ledger = workspace.ledger,
  objects = workspace.objects,
): ArchiveStores {
  const location = { url: pathToFileURL(workspace.ledgerPath).href, authToken: null }
  return {
    ledger,
    objects,
    year: yearReader(ledger, objects),
    auditors: {
      ledger: ledgerAuditor(location, { nativeBusyMs: 20, retryMs: 5_000 }),
      objects: storeAuditor(objects),
    },
  }
}

/** A target that names a fault: nothing, or an archive in which no publication can be found. */
async function servesNothing(workspace: Workspace): Promise<boolean> {
  try {
    const { proved } = await workspace.year.read()
    return proved.timeline.length === 0
  } catch {
    return true
  }
}

function firstObject({ objectsPath }: Workspace): string {
  const [name = ''] = Object.keys(filesOfFolder(join(objectsPath, 'sha256')))
  return join(objectsPath, 'sha256', name)
}

test('a copy holds the same rows, objects, heads and attempts, and is sound; a later one adds what was published since', async () => {
  const [source, target] = [await filledWorkspace(), await openWorkspace()]
  const report = await copyOf(source, target)
  const { rows } = await source.ledger.read()
  expect(report).toMatchObject({
    objects: { copied: 2, unchanged: 0 },
    heads: { copied: 5, unchanged: 0 },
    entries: { copied: 5, unchanged: 0 },
    legacy: { copied: 0, unchanged: 0 },
    head: { seq: 5, leaf: rows[4]?.leaf },
  })
  expect(await target.ledger.read()).toEqual(await source.ledger.read())
  expect(await target.ledger.attempts()).toEqual(await source.ledger.attempts())
  expect(filesOfFolder(target.objectsPath)).toEqual(filesOfFolder(source.objectsPath))
  expect(await findingsIn(target.folder)).toEqual([])
  const next = addDays(AS_OF, 1)
  await source.feed.importSignals(sampleSignals(next))
  await publishDays(source, [next])
  expect(await copyOf(source, target)).toMatchObject({
    objects: { copied: 1, unchanged: 2 },
    entries: { copied: 1, unchanged: 5 },
    head: { seq: 6 },
  })
  expect(await findingsIn(target.folder)).toEqual([])
})

test('a copy includes the legacy ledger, its seal and the mark of its founding', async () => {
  const [source, target] = [await openWorkspace(), await openWorkspace()]
  await importSample(source)
  await source.feed.importSignals(sampleSignals(AS_OF))
  await publishDays(source, [AS_OF])
  const copied = { legacy: { copied: 3, unchanged: 0 }, objects: { copied: 7 } }
  expect(await copyOf(source, target)).toMatchObject(copied)
  const contents = await source.ledger.read()
  expect(contents.founding).not.toBeNull()
  expect(await target.ledger.read()).toEqual(contents)
  expect(filesOfFolder(target.objectsPath)).toEqual(filesOfFolder(source.objectsPath))
  const unchanged = { legacy: { copied: 0, unchanged: 3 }, objects: { copied: 0, unchanged: 7 } }
  expect(await copyOf(source, target)).toMatchObject(unchanged)
})

describe('the refusal of a copy', () => {
  const next = addDays(AS_OF, 1)
  const ahead = async (source: Workspace): Promise<Workspace> => {
    const target = await openWorkspace()
    await copyOf(source, target)
    await target.feed.importSignals(sampleSignals(next))
    await publishDays(target, [next])
    return target
  }
  const withHead = async (): Promise<Workspace> => {
    const target = await openWorkspace()
    await target.objects.putHead({ seq: 3, leaf: 'a'.repeat(64), time: 1 })
    return target
  }

  test.each<[what: string, prepare: (source: Workspace) => Promise<Workspace>, why: RegExp]>([
    ['with another archive', () => filledWorkspace(addDays(FIRST_DAY, 1)), /entry 1 differs from/],
    ['that is ahead of its source', ahead, /entry 6 differs from/],
    ['with the heads of another archive', withHead, /head 3 is not in/],
  ])('a target %s refuses the copy and is not changed', async (_what, prepare, why) => {
    const source = await filledWorkspace()
    const target = await prepare(source)
    const before = [filesOfFolder(target.objectsPath), await target.ledger.read()]
    await expect(copyOf(source, target)).rejects.toMatchObject({
      code: 'copy_refused',
      detail: expect.stringMatching(why) as unknown,
    })
    expect([filesOfFolder(target.objectsPath), await target.ledger.read()]).toEqual(before)
  })

  test('a copy of an empty archive, or of one whose import is not finished, is refused', async () => {
    const [source, target] = [await openWorkspace(), await openWorkspace()]
    await expect(copyOf(source, target)).rejects.toMatchObject({ code: 'usage' })
    const commitFounding: typeof source.ledger.commitFounding = () => Promise.resolve('lease-lost')
    const ledger = { ...source.ledger, commitFounding }
    await importArchive(importPortsOf(source, SAMPLE_ARCHIVE, { ledger })).catch(() => undefined)
    const detail = 'an import into the archive to copy is not finished'
    await expect(copyOf(source, target)).rejects.toMatchObject({ code: 'usage', detail })
  })

  test('a copy is refused when the lease of the target is lost before the rows are written', async () => {
    const [source, target] = [await filledWorkspace(), await openWorkspace()]
    // A clock that leaps on between the taking of the lease and the commit.
    let now = RUN_AT
    const clock = (): number => (now += 10 * 3_600_000)
    await expect(copyOf(source, target, { clock })).rejects.toMatchObject({ code: 'lease_lost' })
    expect((await target.ledger.read()).rows).toEqual([])
  })
})

test.each<[what: string, damage: (source: Workspace) => [path: string, text: string], why: RegExp]>([
  ['an object', (source) => [firstObject(source), '{}'], /bytes instead of/],
  ['the newest head', ({ objectsPath }) => [join(objectsPath, 'heads', '5'), '{}'], /head 5/],
  ['an older head', ({ objectsPath }) => [join(objectsPath, 'heads', '2'), '{}'], /head_mismatch heads\/2/],
])('a source that is damaged in %s is refused before the target has a row or a head', async (...row) => {
  const [, damage, why] = row
  const [source, target] = [await filledWorkspace(), await openWorkspace()]
  writeFileSync(...damage(source))
  await expect(copyOf(source, target)).rejects.toMatchObject({
    code: 'storage_damaged',
    detail: expect.stringMatching(why) as unknown,
  })
  expect((await target.ledger.read()).rows).toEqual([])
  expect(await target.objects.keys('heads')).toEqual([])
})

test('a target keeps its other bytes for an object, and the copy is reported unsound', async () => {
  const [source, target] = [await filledWorkspace(), await openWorkspace()]
  const path = firstObject(source).replace(source.objectsPath, target.objectsPath)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, 'other bytes')
  await expect(copyOf(source, target)).rejects.toMatchObject({ code: 'storage_damaged' })
  expect(readFileSync(path, 'utf8')).toBe('other bytes')
})

test('an interrupted copy serves nothing or everything, and continues when it is repeated', async () => {
  const source = await filledWorkspace()
  const run = (target: Workspace, plan: FaultPlan): Promise<CopyReport | null> => {
    const place = placeOf(target, plan.wrap('ledger', target.ledger), plan.wrap('archive', target.objects))
    const copied = copy(placeOf(source), place).catch((error: unknown) => {
      // The audit of the copy reports a failed read.
      if (error instanceof Refusal && error.code === 'storage_unavailable') return null
      throw error
    })
    return unlessStruck(copied)
  }
  const clean = new FaultPlan(null)
  await run(await openWorkspace(), clean)
  await atEachEffect(clean.effects, 12, async (fault) => {
    const target = await openWorkspace()
    const first = await run(target, new FaultPlan(fault))
    const cut = reopenWorkspace(target.folder)
    const rows = (await cut.ledger.read()).rows.length
    if (rows === 0) expect(await servesNothing(cut)).toBe(true)
    else expect([rows, await findingsIn(cut.folder)]).toEqual([5, []])
    if (first !== null) expect(rows).toBe(5)
    // The lease of a killed run is taken over once it has run out.
    await copyOf(source, cut, { clock: tickingClock(RUN_AT + 2 * 86_400_000) })
    expect(await findingsIn(cut.folder)).toEqual([])
    expect(filesOfFolder(cut.objectsPath)).toEqual(filesOfFolder(source.objectsPath))
  })
}, 120_000)

test('a copy has the notes of the log up to its last entry, and refuses others in their place', async () => {
  const stores = await openWorkspace()
  const source = { ...stores, log: signedLogIn(stores.folder) }
  for (const day of [FIRST_DAY, AS_OF]) await source.feed.importSignals(sampleSignals(day))
  await publishDays(source, [FIRST_DAY, AS_OF])
  const target = await openWorkspace()
  const { logFiles } = await copy(placeOf(source), placeOf(target))
  expect(logFiles).toEqual({ copied: 4, unchanged: 0 })
  expect(await noteSizes(target.objects)).toEqual([1, 4, 5])
  const again = await copy(placeOf(source), placeOf(target))
  expect(again.logFiles).toEqual({ copied: 0, unchanged: 4 })
  const note = { kind: 'note', size: 5 } as const
  const changed = { ...source.objects.logFiles, get: () => Promise.resolve(new Uint8Array(9)) }
  const objects = { ...source.objects, logFiles: changed }
  await expect(copy(placeOf(source, source.ledger, objects), placeOf(target))).rejects.toMatchObject({
    code: 'storage_damaged',
  })
  expect(await target.objects.logFiles.get(note)).toEqual(await source.objects.logFiles.get(note))
})
