import { Refusal } from '../../domain/refusal.ts'
import type { DatabaseLocation } from '../../domain/refusal.ts'
import { copyArchive, emptyArchive } from '../../jobs/archive/copy-archive.ts'
import type { ArchiveStores, CopyReport } from '../../jobs/archive/copy-archive.ts'
import { exportArchive, noCheckpoint } from '../../jobs/archive/export-archive.ts'
import { importArchive } from '../../jobs/import-archive.ts'
import type { ArchiveImportReport } from '../../jobs/import-archive.ts'
import type { Container } from '../container.ts'
import { readTargetConfig, readTreeLocation } from '../settings/read-config.ts'
import {
  fileOf,
  isFileMissing,
  isUnfounded,
  prepareFolders,
  realPath,
  requireFolders,
  storeAddress,
  createPublicFolder,
  requireOutsideStore,
} from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { THIS_RUN } from '../process-identity.ts'
import { counted } from '../terminal.ts'
import type { Terminal } from '../terminal.ts'
import type { CommandContext } from '../context.ts'

export async function copyArchiveCommand(
  context: CommandContext,
  { to: targets }: { to: string[] },
): Promise<number> {
  const { config, container, terminal, signal } = context
  const targetConfig = readTargetConfig(targets, context)
  if (
    ledgerAddress(config.ledger) === ledgerAddress(targetConfig.ledger) ||
    storeAddress(config.store) === storeAddress(targetConfig.store)
  ) {
    throw new Refusal(
      'usage',
      '--to is the archive itself, or its ledger or object store; choose another target',
    )
  }
  requireOutsideStore(targetConfig.store, config)
  if (!isUnfounded(config)) requireFolders(config)
  if (isFileMissing(config.ledger)) throw emptyArchive()
  prepareFolders(targetConfig, true)
  const targetContainer = container.withConfig(targetConfig)
  try {
    const report = await copyArchive(
      {
        source: await archivePortsOf(container),
        target: await archivePortsOf(targetContainer),
        ...THIS_RUN,
        onNote: terminal.note,
        onProgress: ({ objects, ofObjects }) => terminal.progress(`${objects} of ${ofObjects} objects`),
      },
      signal,
    )
    terminal.result(report, copySummary(report))
    return EXIT.done
  } finally {
    await targetContainer.close()
  }
}

async function archivePortsOf(container: Container): Promise<ArchiveStores> {
  return {
    ledger: await container.ledger(),
    objects: await container.objects(),
    year: await container.year(),
    auditors: {
      ledger: await container.ledgerAuditor(),
      objects: await container.objectsAuditor(),
    },
  }
}

/** Location of a ledger, independent of links, URL scheme and token. */
function ledgerAddress(location: DatabaseLocation): string {
  const path = fileOf(location)
  return path === null ? location.url.replace(/^libsql:/, 'https:').replace(/\/+$/, '') : realPath(path)
}

function copySummary({ objects, entries, legacy, head }: CopyReport): string {
  const rows = entries.copied + legacy.copied
  const there = objects.unchanged > 0 ? `, ${counted(objects.unchanged, 'object')} already present` : ''
  return `copied and audited: ${counted(objects.copied, 'object')}, ${counted(rows, 'ledger row')}${there}; head ${head.seq} ${head.leaf.slice(0, 16)}`
}

export async function exportCommand(
  context: CommandContext,
  { page }: { page: boolean },
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
  if (report.unsigned > 0)
    terminal.note(
      `not exported: ${counted(report.unsigned, 'entry', 'entries')} without a signed checkpoint; run dash checkpoint, and set DASH_LOG_KEY_FILE for publish-year`,
    )
  const { checkpoint, written } = report
  const entries = counted(checkpoint.size, 'entry', 'entries')
  terminal.result(report, `exported: ${checkpoint.origin}, ${entries}; ${counted(written, 'file')} written`)
  return EXIT.done
}

const REFUSALS_SHOWN = 10

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
  showRefused(report, terminal)
  terminal.result(report, importSummary(report))
  return report.refusedCount > 0 ? EXIT.failed : EXIT.done
}

function showRefused({ refused, refusedCount }: ArchiveImportReport, { error }: Terminal): void {
  for (const { line, publicationId, reason } of refused.slice(0, REFUSALS_SHOWN)) {
    const which = publicationId === null ? '' : `${publicationId}: `
    error(line === null ? reason : `line ${line}: ${which}${reason}`)
  }
  if (refusedCount > REFUSALS_SHOWN)
    error(`and ${refusedCount - REFUSALS_SHOWN} more; --json lists the first hundred`)
}

function importSummary({ imported, unchanged, refusedCount }: ArchiveImportReport): string {
  if (refusedCount > 0) return `${refusedCount} refused; nothing was written`
  return `${imported} imported, ${unchanged} unchanged`
}
