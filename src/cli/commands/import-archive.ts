import { importArchive } from '../../jobs/import-archive.ts'
import type { ArchiveImportReport } from '../../jobs/import-archive.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'
import type { Terminal } from '../terminal.ts'
import { archiveImportPorts, openStores } from '../wire.ts'

const REFUSALS_SHOWN = 10

/**
 * `dash import archive DIR`
 *
 * @returns 0, or 1 when the import was refused
 * @throws Refusals and faults of the folder and the stores; the signal's reason when the command is told to stop
 */
export async function importArchiveCommand(
  { config, terminal, signal }: CommandContext,
  folder: string,
): Promise<number> {
  prepareFolders(config, true)
  const stores = openStores(config, 'batch')
  try {
    const report = await importArchive({
      ...archiveImportPorts(stores, folder, Date.now, terminal.note),
      onPublication: (step, count, of) => terminal.progress(`${count} of ${of} publications ${step}`),
      signal,
    })
    show(report, terminal)
    terminal.result(report, summary(report))
    return report.refused.length > 0 ? EXIT.failed : EXIT.done
  } finally {
    await stores.close()
  }
}

function show({ refused }: ArchiveImportReport, { error }: Terminal): void {
  for (const { line, publicationId, reason } of refused.slice(0, REFUSALS_SHOWN)) {
    const which = publicationId === null ? '' : `${publicationId}: `
    error(line === null ? reason : `line ${line}: ${which}${reason}`)
  }
  if (refused.length > REFUSALS_SHOWN)
    error(`and ${refused.length - REFUSALS_SHOWN} more; --json lists them all`)
}

function summary({ imported, unchanged, refused }: ArchiveImportReport): string {
  if (refused.length > 0) return `${refused.length} refused; nothing was written`
  return `${imported} imported, ${unchanged} unchanged`
}
