import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { openStaticTree } from '../../src/adapters/objects/objects.ts'
import type { StaticTree } from '../../src/domain/year/ports.ts'
import type { Day } from '../../src/domain/time.ts'
import { exportArchive } from '../../src/jobs/archive/export-archive.ts'
import type { ExportPorts, ExportReport } from '../../src/jobs/archive/export-archive.ts'
import { signedLogIn } from './signed-log.ts'
import { openWorkspace, publishDays, sampleSignals, tickingClock } from './workspace.ts'
import type { Workspace } from './workspace.ts'

export type SignedWorkspace = Workspace & { log: ReturnType<typeof signedLogIn> }

/** Creates a workspace with a publication of each of the days, all under signed checkpoints. */
export async function signedWorkspace(days: readonly Day[]): Promise<SignedWorkspace> {
  const workspace = await openWorkspace(() => Date.now() + 60_000)
  const signed = { ...workspace, log: signedLogIn(workspace.folder) }
  await publishSigned(signed, days)
  return signed
}

/** Imports signals of further days and publishes them. */
export async function publishSigned(workspace: SignedWorkspace, days: readonly Day[]): Promise<void> {
  for (const day of days) await workspace.feed.importSignals(sampleSignals(day))
  await publishDays(workspace, days)
}

/** Opens the tree in the folder `name` of a workspace. */
export function exportFolder({ folder }: Workspace, name = 'export'): { path: string; tree: StaticTree } {
  const path = join(folder, name)
  mkdirSync(path, { recursive: true })
  const tree = openStaticTree({ kind: 'file', path })
  onTestFinished(() => tree.close())
  return { path, tree }
}

/** Exports a workspace into a tree. */
export function exportTo(
  { year, objects }: Pick<ExportPorts, 'year' | 'objects'>,
  tree: StaticTree,
  changes: Partial<ExportPorts> = {},
): Promise<ExportReport> {
  const ports: ExportPorts = {
    year,
    objects,
    openTree: () => Promise.resolve(tree),
    pagesOf: null,
    clock: tickingClock(0),
    onProgress: () => undefined,
  }
  return exportArchive({ ...ports, ...changes }, new AbortController().signal)
}
