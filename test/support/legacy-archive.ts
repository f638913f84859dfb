import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { archiveFolder } from '../../src/adapters/input.ts'
import { sha256Hex } from '../../src/domain/digest.ts'
import { addDays, formatInstant } from '../../src/domain/time.ts'
import { importArchive } from '../../src/jobs/import-archive.ts'
import type { ArchiveImportPorts } from '../../src/jobs/import-archive.ts'
import { identityOf, manifest } from '../domain/year/ledger-rows.ts'
import { temporaryFolder } from './dash.ts'
import { AS_OF, RUN_AT, tickingClock } from './workspace.ts'
import type { Workspace } from './workspace.ts'

/** A bundled older archive: three publications of each version, with unusual JSON. */
export const SAMPLE_ARCHIVE = fileURLToPath(new URL('../fixtures/legacy-archive', import.meta.url))

/** A line of the list, before serialisation. */
export type ListedRow = Record<string, unknown>

/** A publication of an older archive: its line and its bytes. */
export interface OldPublication {
  row: ListedRow
  text: string
}

/** A valid publication of a day; `changes` are made to its line alone. */
export function oldPublication(
  ledger: 'v1' | 'versioned',
  asOfDay: string,
  changes: ListedRow = {},
): OldPublication {
  const schemaVersion = ledger === 'v1' ? 1 : 2
  const algorithmVersion = `top-year-v${schemaVersion}`
  const publicationId = `${algorithmVersion} of ${asOfDay}`
  const one = manifest(asOfDay, { schemaVersion, algorithmVersion, publicationId })
  const identity = identityOf(one)
  const publishedAt = formatInstant(one.publishedAt)
  const text = JSON.stringify({ ...identity, feed: {}, archivedAt: publishedAt })
  const content = { sha256: sha256Hex(text), byteSize: Buffer.byteLength(text) }
  const file = `objects/${publicationId}`
  return { row: { ledger, ...identity, publishedAt, ...content, file, ...changes }, text }
}

/** Writes publications and their list into a temporary folder. */
export function writeArchive(publications: readonly OldPublication[]): string {
  const folder = temporaryFolder()
  for (const { row, text } of publications) {
    const path = join(folder, String(row['file']))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  writeList(folder, publications.map(({ row }) => JSON.stringify(row)).join('\n'))
  return folder
}

/** An archive of two days shortly before {@link AS_OF}, one of each ledger: few gaps follow it. */
export function recentArchive(): string {
  return writeArchive([
    oldPublication('v1', addDays(AS_OF, -3)),
    oldPublication('versioned', addDays(AS_OF, -2)),
  ])
}

export function writeList(folder: string, text: string | Buffer): void {
  writeFileSync(join(folder, 'manifests.ndjson'), text)
}

/** A copy of the bundled archive that a test may damage. */
export function copyOfSample(): string {
  const folder = temporaryFolder()
  cpSync(SAMPLE_ARCHIVE, folder, { recursive: true })
  return folder
}

export function importPortsOf(
  workspace: Workspace,
  folder: string,
  changes: Partial<ArchiveImportPorts> = {},
): ArchiveImportPorts {
  return {
    ...workspace,
    folder: archiveFolder(folder),
    clock: tickingClock(RUN_AT - 60_000),
    holder: { name: 'the importer', process: null },
    isDead: () => false,
    onProgress: () => undefined,
    prepare: () => undefined,
    onPublication: () => undefined,
    signal: new AbortController().signal,
    ...changes,
  }
}

export async function importSample(workspace: Workspace): Promise<void> {
  const { refused } = await importArchive(importPortsOf(workspace, SAMPLE_ARCHIVE))
  if (refused.length > 0) throw new Error(`the sample was refused: ${JSON.stringify(refused)}`)
}
