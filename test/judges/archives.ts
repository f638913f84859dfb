import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { H3 } from 'h3'
import { addDays, formatInstant, startOfDay } from '../../src/domain/time.ts'
import type { Day } from '../../src/domain/time.ts'
import { asOfProofSchema } from '../../src/domain/year/log/log-proof.ts'
import { leafHash, merkleTree } from '../../src/domain/year/log/merkle-tree.ts'
import { formatVerifierKey } from '../../src/domain/year/log/signed-note.ts'
import { entriesOf, entryBundle, tileOf, tilePath, tilesOfSize } from '../../src/domain/year/log/tiles.ts'
import { openApp } from '../support/api-client.ts'
import { requestRoute } from '../server/contract-client.ts'
import { importArchive } from '../../src/jobs/import-archive.ts'
import { exportFolder, exportTo } from '../support/exports.ts'
import { importPortsOf, recentArchive } from '../support/legacy-archive.ts'
import { signedLogIn } from '../support/signed-log.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

/** An archive with a signed log, as those see it who check it. */
export interface SignedArchive {
  workspace: Workspace
  vkey: string
  /** The application over the archive. Its clock is a day after the newest publication. */
  app: H3
  /** Publishes a day and signs a checkpoint; missed days become gaps. */
  publish(day: Day): Promise<void>
}

/** Creates an archive in a temporary folder. `before` can write to it before the log is founded. */
export async function signedArchive(
  before: (workspace: Workspace) => Promise<void> = async () => undefined,
): Promise<SignedArchive> {
  // A file clock ahead of the real one makes every proof settle at once.
  const workspace = await openWorkspace(() => Date.now() + 60_000)
  await before(workspace)
  const log = signedLogIn(workspace.folder)
  let now = 0
  return {
    workspace,
    vkey: formatVerifierKey(log.signer.key),
    app: openApp(workspace, { clock: () => now }),
    async publish(day) {
      await publishDay({ ...workspace, log }, day)
      now = startOfDay(addDays(day, 2))
    },
  }
}

async function publishDay(workspace: Parameters<typeof publishDays>[0], day: Day): Promise<void> {
  await workspace.feed.importSignals(sampleSignals(day))
  await publishDays(workspace, [day])
}

/** Returns a day by its distance from the first one that archives of these tests publish. */
export const dayAt = (index: number): Day => addDays(AS_OF, index)

/** An archive of the days, by their distance from the first; `before` as for {@link signedArchive}. */
async function archiveOf(
  days: readonly number[],
  before?: (workspace: Workspace) => Promise<void>,
): Promise<SignedArchive> {
  const archive = await signedArchive(before)
  for (const index of days) await archive.publish(dayAt(index))
  return archive
}

/** Archives that differ in how their ledger began. */
export const ARCHIVES: Record<string, () => Promise<SignedArchive>> = {
  'an archive with gaps': () => archiveOf([0, 1, 4, 5]),
  'an archive with a sealed legacy ledger': () =>
    archiveOf([0, 1], async (workspace) => {
      await importArchive(importPortsOf(workspace, recentArchive()))
    }),
  'an archive that began without a key': () =>
    archiveOf([3, 4], async (workspace) => {
      for (const index of [0, 2]) await publishDay(workspace, dayAt(index))
    }),
}

/** Returns the paths of all checkpoints that the log ever signed. */
export function storedNotes({ workspace }: SignedArchive): string[] {
  const folder = join(workspace.objectsPath, 'tlog', 'year')
  return readdirSync(folder)
    .filter((name) => /^\d+$/.test(name))
    .map((name) => join(folder, name))
}

/** Exports the archive, into the same folder each time, and returns the folder of its checkpoint. */
export async function exportLog({ workspace }: SignedArchive): Promise<string> {
  const { path, tree } = exportFolder(workspace)
  await exportTo(workspace, tree)
  return join(path, 'tlog', 'year')
}

/** Writes the static files of a log with any entries and returns the folder of its checkpoint. */
export async function writeLog(entries: readonly Uint8Array[], note: string): Promise<string> {
  const folder = temporaryFolder()
  const tree = merkleTree(entries.map(leafHash))
  write(folder, 'checkpoint', note)
  for (const tile of tilesOfSize(entries.length)) {
    const { level } = tile
    const bytes =
      level === 'entries' ? entryBundle(entriesOf(entries, tile)) : tileOf(tree, { ...tile, level })
    write(folder, tilePath(tile), bytes)
  }
  return folder
}

/** Writes a file and the folders above it; returns its path. */
export function write(folder: string, name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  return path
}

/** Returns every proof file that the server has for its publications, those of an as-of proof one by one. */
export async function proofFiles({ workspace, app }: SignedArchive): Promise<string[]> {
  const { proved } = await workspace.year.read()
  const files = new Set<string>()
  for (const { manifest } of proved.timeline)
    for (const query of ['', '&until=next']) {
      const { text } = await requestRoute(
        app,
        `/tlog/year/proof?at=${formatInstant(manifest.publishedAt)}${query}`,
      )
      const several = text.startsWith('{') ? asOfProofSchema.parse(JSON.parse(text)).proofs : [text]
      for (const file of several) files.add(file)
    }
  return [...files]
}
