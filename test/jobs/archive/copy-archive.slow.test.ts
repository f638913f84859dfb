import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { ledgerAuditor, storeAuditor } from '../../../src/adapters/auditors.ts'
import { yearReader } from '../../../src/adapters/ledger/ledger.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { addDays } from '../../../src/domain/time.ts'
import { copyArchive } from '../../../src/jobs/archive/copy-archive.ts'
import type { ArchiveStores, CopyPorts, CopyReport } from '../../../src/jobs/archive/copy-archive.ts'
import { importArchive } from '../../../src/jobs/import-archive.ts'
import { FaultPlan, InjectedFault } from '../faults.ts'
import type { FaultKind } from '../faults.ts'
import { filesOfFolder } from '../../support/temporary-folder.ts'
import { importPortsOf, SAMPLE_ARCHIVE } from '../../support/legacy-archive.ts'
import { findingsIn, signedLogIn, storedCheckpoints } from '../../support/signed-log.ts'
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

const EVERYTHING: Partial<CopyReport> = {
  heads: { copied: 5, unchanged: 0 },
  entries: { copied: 5, unchanged: 0 },
  legacy: { copied: 0, unchanged: 0 },
}

describe('a copy of an archive', () => {
  test('a copy holds the same rows, objects, heads and attempts, and is sound', async () => {
    const [source, target] = [await filledWorkspace(), await openWorkspace()]
    const report = await copyOf(source, target)
    const { rows } = await source.ledger.read()
    expect(report).toMatchObject({ ...EVERYTHING, head: { seq: 5, leaf: rows[4]?.leaf } })
    expect(report.objects).toMatchObject({ copied: 2, unchanged: 0 })
    expect(await target.ledger.read()).toEqual(await source.ledger.read())
    expect(await target.ledger.attempts()).toEqual(await source.ledger.attempts())
    expect(filesOfFolder(target.objectsPath)).toEqual(filesOfFolder(source.objectsPath))
    expect(await findingsIn(target.folder)).toEqual([])
  })

  test('a copy includes the legacy ledger, its seal and the mark of its founding', async () => {
    const source = await openWorkspace()
    await importArchive(importPortsOf(source, SAMPLE_ARCHIVE))
    await source.feed.importSignals(sampleSignals(AS_OF))
    await publishDays(source, [AS_OF])
    const target = await openWorkspace()
    const report = await copyOf(source, target)
    expect(report).toMatchObject({ legacy: { copied: 3, unchanged: 0 }, objects: { copied: 7 } })
    const contents = await source.ledger.read()
    expect(contents.founding).not.toBeNull()
    expect(await target.ledger.read()).toEqual(contents)
    expect(filesOfFolder(target.objectsPath)).toEqual(filesOfFolder(source.objectsPath))
    expect(await copyOf(source, target)).toMatchObject({
      legacy: { copied: 0, unchanged: 3 },
      objects: { copied: 0, unchanged: 7 },
    })
  })

  test('a later copy adds what the source published since', async () => {
    const [source, target] = [await filledWorkspace(), await openWorkspace()]
    await copyOf(source, target)
    const next = addDays(AS_OF, 1)
    await source.feed.importSignals(sampleSignals(next))
    await publishDays(source, [next])
    const report = await copyOf(source, target)
    expect(report).toMatchObject({
      objects: { copied: 1, unchanged: 2 },
      entries: { copied: 1, unchanged: 5 },
      head: { seq: 6 },
    })
    expect(await findingsIn(target.folder)).toEqual([])
  })
})

describe('the refusal of a copy', () => {
  const refused = (why: RegExp) => ({ code: 'copy_refused', detail: expect.stringMatching(why) as unknown })

  test('a target with another archive refuses the copy and is not changed', async () => {
    const source = await filledWorkspace()
    const target = await filledWorkspace(addDays(FIRST_DAY, 1))
    const before = filesOfFolder(target.objectsPath)
    await expect(copyOf(source, target)).rejects.toMatchObject(refused(/entry 1 differs from/))
    expect(filesOfFolder(target.objectsPath)).toEqual(before)
  })

  test('a target that is ahead of its source refuses the copy', async () => {
    const [source, target] = [await filledWorkspace(), await openWorkspace()]
    await copyOf(source, target)
    const next = addDays(AS_OF, 1)
    await target.feed.importSignals(sampleSignals(next))
    await publishDays(target, [next])
    await expect(copyOf(source, target)).rejects.toMatchObject(refused(/entry 6 differs from/))
  })

  test('a target with the heads of another archive refuses the copy', async () => {
    const [source, target] = [await filledWorkspace(), await openWorkspace()]
    await target.objects.putHead({ seq: 3, leaf: 'a'.repeat(64), time: 1 })
    await expect(copyOf(source, target)).rejects.toMatchObject(refused(/head 3 is not in/))
    expect((await target.ledger.read()).rows).toEqual([])
  })

  test('a copy of an empty archive is refused', async () => {
    const [source, target] = [await openWorkspace(), await openWorkspace()]
    await expect(copyOf(source, target)).rejects.toMatchObject({ code: 'usage' })
  })

  test('a copy is refused when the lease of the target is lost before the rows are written', async () => {
    const [source, target] = [await filledWorkspace(), await openWorkspace()]
    // A clock that leaps on between the taking of the lease and the commit.
    let now = RUN_AT
    const clock = (): number => (now += 10 * 3_600_000)
    await expect(copyOf(source, target, { clock })).rejects.toMatchObject({
      code: 'lease_lost',
    })
    expect((await target.ledger.read()).rows).toEqual([])
  })
})

describe('a source that is damaged', () => {
  const writeHead =
    (name: string, text: string) =>
    ({ objectsPath }: Workspace): void =>
      writeFileSync(join(objectsPath, 'heads', name), text)
  /** Name of each damage, the function that causes it, and the expected refusal. */
  const DAMAGES: [string, (source: Workspace) => void, RegExp][] = [
    [
      'an object',
      ({ objectsPath }) => {
        const [path] = Object.keys(filesOfFolder(join(objectsPath, 'sha256')))
        writeFileSync(join(objectsPath, 'sha256', path ?? ''), '{}')
      },
      /bytes instead of/,
    ],
    ['the newest head', writeHead('5', '{}'), /head 5/],
    ['an older head', writeHead('2', '{}'), /head_mismatch heads\/2/],
  ]

  test.each(DAMAGES)(
    'a source that is damaged in %s is refused before the target has a row or a head',
    async (_what, damage, why) => {
      const source = await filledWorkspace()
      damage(source)
      const target = await openWorkspace()
      await expect(copyOf(source, target)).rejects.toMatchObject({
        code: 'storage_damaged',
        detail: expect.stringMatching(why) as unknown,
      })
      expect((await target.ledger.read()).rows).toEqual([])
      expect(await target.objects.keys('heads')).toEqual([])
    },
  )
})

describe('a target with other bytes in the place of an object', () => {
  test('a target keeps its other bytes for an object, and the copy is reported unsound', async () => {
    const [source, target] = [await filledWorkspace(), await openWorkspace()]
    const [name = ''] = Object.keys(filesOfFolder(join(source.objectsPath, 'sha256')))
    const path = join(target.objectsPath, 'sha256', name)
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, 'other bytes')
    await expect(copyOf(source, target)).rejects.toMatchObject({ code: 'storage_damaged' })
    expect(Object.values(filesOfFolder(join(path, '..')))).toEqual([
      Buffer.from('other bytes').toString('base64'),
    ])
  })
})

describe('an interrupted copy', () => {
  const run = async (source: Workspace, target: Workspace, plan: FaultPlan): Promise<CopyReport | null> => {
    const place = placeOf(target, plan.wrap('ledger', target.ledger), plan.wrap('archive', target.objects))
    return copy(placeOf(source), place).catch((error: unknown) => {
      // The audit of the copy reports a failed read.
      const isUnread = error instanceof Refusal && error.code === 'storage_unavailable'
      if (!(error instanceof InjectedFault) && !isUnread) throw error
      return null
    })
  }

  test.each(['lost', 'done-but-reported-lost'] satisfies FaultKind[])(
    'an interrupted copy serves nothing or everything, and continues when it is repeated, when the effect is %s',
    async (kind) => {
      const source = await filledWorkspace()
      const clean = new FaultPlan(null)
      await run(source, await openWorkspace(), clean)
      expect(clean.effects.length).toBeGreaterThan(12)
      for (const [effect, name] of clean.effects.entries()) {
        const where = `effect ${effect}, ${name}, ${kind}`
        const target = await openWorkspace()
        const first = await run(source, target, new FaultPlan({ effect, kind }))
        const cut = reopenWorkspace(target.folder)
        const rows = (await cut.ledger.read()).rows.length
        if (rows === 0) expect(await servesNothing(cut), where).toBe(true)
        else expect([rows, await findingsIn(cut.folder)], where).toEqual([5, []])
        if (first !== null) expect(rows, where).toBe(5)
        // The lease of a killed run is taken over once it has run out.
        const later = tickingClock(RUN_AT + 2 * 86_400_000)
        await copy(placeOf(source), placeOf(cut), { clock: later })
        expect(await findingsIn(cut.folder), where).toEqual([])
        expect(filesOfFolder(cut.objectsPath), where).toEqual(filesOfFolder(source.objectsPath))
      }
    },
    120_000,
  )
})

test('a copy has the notes of the log up to its last entry, and refuses others in their place', async () => {
  const stores = await openWorkspace()
  const source = { ...stores, log: signedLogIn(stores.folder) }
  for (const day of [FIRST_DAY, AS_OF]) await source.feed.importSignals(sampleSignals(day))
  await publishDays(source, [FIRST_DAY, AS_OF])
  const target = await openWorkspace()
  const { logFiles } = await copy(placeOf(source), placeOf(target))
  expect(logFiles).toEqual({ copied: 4, unchanged: 0 })
  const { key } = source.log.signer
  expect((await storedCheckpoints(target.objects, key)).map(({ size }) => size)).toEqual([1, 4, 5])
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
