import { expect, test } from 'vitest'
import { openStaticTree } from '../../../src/adapters/objects/static-tree.ts'
import type { CopyReport } from '../../../src/jobs/archive/copy-archive.ts'
import { importMirror } from '../../../src/jobs/archive/import-mirror.ts'
import { archiveStoresOf, isSound } from '../../support/archive-stores.ts'
import { temporaryFolder } from '../../support/dash.ts'
import { FaultPlan, InjectedFault } from '../../support/faults.ts'
import type { FaultKind } from '../../support/faults.ts'
import { sampleArchive } from '../../support/sample-archive.ts'
import { HOST_POLICY, staticFiles, writeFiles } from '../../support/static-host.ts'
import { filesOfFolder } from '../../support/temporary-folder.ts'
import { openWorkspace, reopenWorkspace, RUN_AT, tickingClock } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

/** Imports the mirror in a folder; null if the plan's fault ended the import. */
async function run(
  path: string,
  target: Workspace,
  from = RUN_AT,
  plan = new FaultPlan(null),
): Promise<CopyReport | null> {
  const stores = archiveStoresOf(
    target,
    plan.wrap('ledger', target.ledger),
    plan.wrap('objects', target.objects),
  )
  const ports = {
    mirror: openStaticTree({ kind: 'file', path }),
    target: stores,
    policy: HOST_POLICY,
    keyPolicy: async () => null,
    prepare: () => undefined,
    clock: tickingClock(from),
    holder: { name: 'the import', process: null },
    isDead: () => false,
    onNote: () => undefined,
    onProgress: () => undefined,
  }
  return importMirror(ports, new AbortController().signal).catch((error: unknown) => {
    if (!(error instanceof InjectedFault)) throw error
    return null
  })
}

test.each(['lost', 'done-but-reported-lost'] satisfies FaultKind[])(
  'an interrupted import of a mirror leaves the old ledger or a sound new one, and continues when it is repeated, when the effect is %s',
  async (kind) => {
    const archive = sampleArchive(3)
    const { rows } = archive.contents
    const [older, newer] = [temporaryFolder(), temporaryFolder()]
    const size = rows.length - 2
    writeFiles(older, staticFiles(archive, size))
    writeFiles(newer, staticFiles(archive))
    const clean = new FaultPlan(null)
    const whole = await openWorkspace()
    await run(older, whole)
    await run(newer, whole, RUN_AT, clean)
    const expected = filesOfFolder(whole.objectsPath)
    expect(clean.effects.length).toBeGreaterThan(12)
    for (const [effect, name] of clean.effects.entries()) {
      const where = `effect ${effect}, ${name}, ${kind}`
      const target = await openWorkspace()
      await run(older, target)
      const first = await run(newer, target, RUN_AT, new FaultPlan({ effect, kind }))
      const cut = reopenWorkspace(target.folder)
      const { length } = (await cut.ledger.read()).rows
      expect([size, rows.length], where).toContain(length)
      if (length === rows.length) expect(await isSound(cut), where).toBe(true)
      if (first !== null) expect(length, where).toBe(rows.length)
      // The lease of a killed run is taken over once it has run out.
      await run(newer, cut, RUN_AT + 2 * 86_400_000)
      expect(await isSound(cut), where).toBe(true)
      expect(filesOfFolder(cut.objectsPath), where).toEqual(expected)
    }
  },
)
