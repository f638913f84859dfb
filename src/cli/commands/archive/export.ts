import { exportArchive, noCheckpoint } from '../../../jobs/archive/export-archive.ts'
import type { ExportReport } from '../../../jobs/archive/export-archive.ts'
import type { CommandContext } from '../../context.ts'
import { createPublicFolder, isUnfounded, requireFolders, requireOutsideStore } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { readTreeLocation } from '../../settings/read-config.ts'
import { counted } from '../../terminal.ts'

interface ExportFlags {
  /** True to write pages too. */
  page: boolean
}

/**
 * Runs `dash export`: writes the archive as static files.
 *
 * @param target a folder, or the URL of a bucket
 */
export async function exportCommand(
  context: CommandContext,
  { page }: ExportFlags,
  [target = '']: readonly string[],
): Promise<number> {
  const { config, container, terminal, signal } = context
  const location = readTreeLocation(target, 'the target', context)
  if (isUnfounded(config)) throw noCheckpoint()
  requireFolders(config)
  requireOutsideStore(location, config)
  const report = await exportArchive(
    {
      year: await container.year(),
      objects: await container.objects(),
      openTree() {
        if (location.kind === 'file') createPublicFolder(location.path)
        return container.staticTree(location)
      },
      pagesOf: page ? await container.exportedPages() : null,
      clock: Date.now,
      onProgress: ({ objects, ofObjects }) => terminal.progress(`${objects} of ${ofObjects} objects`),
    },
    signal,
  )
  terminal.result(report, summary(report))
  return EXIT.done
}

function summary({ checkpoint: { origin, size }, written }: ExportReport): string {
  return `exported: ${origin}, ${counted(size, 'entry', 'entries')}; ${counted(written, 'file')} written`
}
