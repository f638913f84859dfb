import { Refusal } from '../../../domain/refusal.ts'
import type { DatabaseLocation, StoreLocation } from '../../../domain/refusal.ts'
import { copyArchive, emptyArchive } from '../../../jobs/archive/copy-archive.ts'
import type { ArchiveStores, CopyReport, CopyTargetPorts } from '../../../jobs/archive/copy-archive.ts'
import { importMirror } from '../../../jobs/archive/import-mirror.ts'
import type { Container } from '../../container.ts'
import { readTargetConfig, readTreeLocation } from '../../settings/read-config.ts'
import { fileOf, isUnfounded, prepareFolders, realPath, requireFolders } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { THIS_RUN } from '../../process-identity.ts'
import { counted } from '../../terminal.ts'
import type { Terminal } from '../../terminal.ts'
import type { CommandContext } from '../../context.ts'
import { readPolicy } from '../verify/verify-proof.ts'

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
      { source: await archivePortsOf(container), ...(await targetPorts(targetContainer, terminal)) },
      signal,
    )
    terminal.result(report, copySummary(report))
    return EXIT.done
  } finally {
    await targetContainer.close()
  }
}

/**
 * Runs `dash import mirror`: copies what the archive lost from a mirror or an export of it.
 *
 * @param source a folder, or the URL of a bucket
 */
export async function importMirrorCommand(
  context: CommandContext,
  { policy: policyFile }: { policy?: string },
  [source = '']: readonly string[],
): Promise<number> {
  const { config, container, terminal, signal, cwd } = context
  const location = readTreeLocation(source, 'the mirror', context)
  const policy = policyFile === undefined ? null : readPolicy(policyFile, cwd).text
  const report = await importMirror(
    {
      mirror: await container.staticTree(location),
      ...(await targetPorts(container, terminal)),
      policy,
      keyPolicy: async () => (await container.signedLog())?.policy ?? null,
      prepare: () => prepareFolders(config, true),
    },
    signal,
  )
  terminal.result(report, copySummary(report))
  return EXIT.done
}

/** Opens the target of a copy. */
async function targetPorts(container: Container, terminal: Terminal): Promise<CopyTargetPorts> {
  return {
    target: await archivePortsOf(container),
    ...THIS_RUN,
    onNote: terminal.note,
    onProgress: ({ objects, ofObjects }) => terminal.progress(`${objects} of ${ofObjects} objects`),
  }
}

async function archivePortsOf(container: Container): Promise<ArchiveStores> {
  return {
    ledger: await container.ledger(),
    objects: await container.objects(),
    year: await container.year(),
    auditors: await container.auditors(),
  }
}

/** Location of a ledger, independent of links, URL scheme and token. */
function ledgerAddress(location: DatabaseLocation): string {
  const path = fileOf(location)
  return path === null ? location.url.replace(/^libsql:/, 'https:').replace(/\/+$/, '') : realPath(path)
}

/** Location of an object store, independent of links and keys. */
function storeAddress(store: StoreLocation): string {
  if (store.kind === 'file') return realPath(store.path)
  return `${store.endpoint}/${store.bucket}/${store.prefix}`
}

/** Summarizes a copy in one line. */
function copySummary({ objects, entries, legacy, head }: CopyReport): string {
  const rows = entries.copied + legacy.copied
  const there = objects.unchanged > 0 ? `, ${counted(objects.unchanged, 'object')} already present` : ''
  return `copied and audited: ${counted(objects.copied, 'object')}, ${counted(rows, 'ledger row')}${there}; head ${head.seq} ${head.leaf.slice(0, 16)}`
}
