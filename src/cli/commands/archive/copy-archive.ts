import { Refusal } from '../../../domain/refusal.ts'
import type { DatabaseLocation } from '../../../domain/refusal.ts'
import { copyArchive, emptyArchive } from '../../../jobs/archive/copy-archive.ts'
import type { ArchiveStores, CopyReport } from '../../../jobs/archive/copy-archive.ts'
import type { Container } from '../../container.ts'
import { readTargetConfig } from '../../settings/read-config.ts'
import {
  fileOf,
  isUnfounded,
  prepareFolders,
  realPath,
  requireFolders,
  storeAddress,
} from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { THIS_RUN } from '../../process-identity.ts'
import { counted } from '../../terminal.ts'
import type { CommandContext } from '../../context.ts'

/**
 * `dash copy-archive`: copies the archive to other stores and audits the copy.
 */
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
  if (isUnfounded(config)) throw emptyArchive()
  requireFolders(config)
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
