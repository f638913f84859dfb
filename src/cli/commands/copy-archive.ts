import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Refusal } from '../../domain/refusal.ts'
import type { DatabaseLocation, StoreLocation } from '../../domain/refusal.ts'
import { copyArchive, emptyArchive } from '../../jobs/copy-archive.ts'
import type { ArchivePlace, CopyReport } from '../../jobs/copy-archive.ts'
import type { Container } from '../container.ts'
import { readTargetConfig } from '../settings/read-config.ts'
import { fileOf, isUnfounded, prepareFolders, requireFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { isDeadProcess, thisProcess } from '../process-identity.ts'
import type { CommandContext } from '../context.ts'

/**
 * `dash copy-archive`
 *
 * @param targets a data folder, or a database URL and a store URL, or an env file that holds them
 */
export async function copyArchiveCommand(
  context: CommandContext,
  targets: readonly string[],
): Promise<number> {
  const { config, container, terminal, signal, flags, env, cwd } = context
  const targetConfig = readTargetConfig(targets, flags, env, cwd)
  if (
    ledgerPlace(config.ledger) === ledgerPlace(targetConfig.ledger) ||
    storePlace(config.store) === storePlace(targetConfig.store)
  ) {
    throw new Refusal('usage', '--to names the archive itself, or one half of it')
  }
  if (isUnfounded(config)) throw emptyArchive()
  requireFolders(config)
  prepareFolders(targetConfig, true)
  const targetContainer = container.withConfig(targetConfig)
  try {
    const report = await copyArchive(
      {
        source: await placeIn(container),
        target: await placeIn(targetContainer),
        clock: Date.now,
        holder: thisProcess(),
        isDead: isDeadProcess,
        onNote: terminal.note,
        onProgress: ({ objects, ofObjects }) => terminal.progress(`${objects} of ${ofObjects} objects`),
      },
      signal,
    )
    terminal.result(report, summary(report))
    return EXIT.done
  } finally {
    await targetContainer.close()
  }
}

async function placeIn(container: Container): Promise<ArchivePlace> {
  return {
    ledger: await container.ledger(),
    objects: await container.objects(),
    year: await container.year(),
    auditors: await container.auditors(),
  }
}

/** Where a ledger is, by whatever link, scheme or token it is reached. */
function ledgerPlace(location: DatabaseLocation): string {
  const path = fileOf(location)
  return path === null ? location.url.replace(/^libsql:/, 'https:').replace(/\/+$/, '') : realPath(path)
}

/** Where objects are, by whatever link or key they are reached. */
function storePlace(store: StoreLocation): string {
  if (store.kind === 'file') return realPath(store.path)
  return `${store.endpoint}/${store.bucket}/${store.prefix}`
}

/** Without links; what is not there yet keeps its name. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    const parent = dirname(path)
    if (parent === path) throw error
    return join(realPath(parent), basename(path))
  }
}

function summary({ objects, entries, legacy, head }: CopyReport): string {
  const rows = entries.copied + legacy.copied
  const there = objects.unchanged > 0 ? `, ${objects.unchanged} objects were there already` : ''
  return `copied and audited: ${objects.copied} objects, ${rows} ledger rows${there}; head ${head.seq} ${head.leaf.slice(0, 16)}`
}
