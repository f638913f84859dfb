import { importArchive } from '../../../jobs/import-archive.ts'
import type { ArchiveImportReport } from '../../../jobs/import-archive.ts'
import { prepareFolders } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import type { CommandContext } from '../../context.ts'
import { THIS_RUN } from '../../process-identity.ts'
import type { Terminal } from '../../terminal.ts'

const REFUSALS_SHOWN = 10

/**
 * `dash import archive DIR`: imports older publications into an empty archive.
 *
 * @returns 0, or 1 if the import was refused
 * @throws Refusals and faults of the folder and the stores; the signal's reason if the command is stopped
 */
export async function importArchiveCommand(
  { config, container, terminal, signal }: CommandContext,
  _flags: object,
  [folder = '']: readonly string[],
): Promise<number> {
  const report = await importArchive({
    folder: await container.archiveFolder(folder),
    ledger: await container.ledger(),
    objects: await container.objects(),
    year: await container.year(),
    ...THIS_RUN,
    onProgress: terminal.note,
    prepare: () => prepareFolders(config, true),
    onPublication: (step, count, of) => terminal.progress(`${count} of ${of} publications ${step}`),
    signal,
  })
  show(report, terminal)
  terminal.result(report, summary(report))
  return report.refusedCount > 0 ? EXIT.failed : EXIT.done
}

function show({ refused, refusedCount }: ArchiveImportReport, { error }: Terminal): void {
  for (const { line, publicationId, reason } of refused.slice(0, REFUSALS_SHOWN)) {
    const which = publicationId === null ? '' : `${publicationId}: `
    error(line === null ? reason : `line ${line}: ${which}${reason}`)
  }
  if (refusedCount > REFUSALS_SHOWN)
    error(`and ${refusedCount - REFUSALS_SHOWN} more; --json lists the first hundred`)
}

function summary({ imported, unchanged, refusedCount }: ArchiveImportReport): string {
  if (refusedCount > 0) return `${refusedCount} refused; nothing was written`
  return `${imported} imported, ${unchanged} unchanged`
}
