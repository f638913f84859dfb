import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { badValue } from './settings/environment.ts'
import { storageUnavailable, messageOf } from '../domain/refusal.ts'
import type { DatabaseLocation } from '../domain/refusal.ts'
import { settingName } from './settings/config.ts'
import type { Config } from './settings/config.ts'

/**
 * Makes sure that the data folder and the object store's folder are there (docs/configuration.md).
 *
 * @param creates true for commands that found a data folder; others create only the default one, because a named
 *   folder that is missing is a disk that is not mounted, and must not be taken for an empty archive
 * @throws Refusal `configuration`, `usage` for a folder that a flag named
 */
export function prepareFolders(config: Config, creates: boolean): void {
  const { dataDir, dataDirNamed, dataDirUsed, store, storeNamed } = config
  if (dataDirUsed && (creates || !dataDirNamed)) create(dataDir, config, 'DASH_DATA_DIR')
  else requireNamed(config, 'data')
  if (store.kind === 'file' && (creates || !storeNamed))
    create(store.path, config, storeNamed ? 'DASH_STORE_URL' : 'DASH_DATA_DIR')
  else requireNamed(config, 'objects')
}

/**
 * As {@link prepareFolders} for a command that only reads: it adds nothing to a data folder that is there. An object
 * store that is missing from it is refused when it is read.
 *
 * @throws Refusal `configuration`, `usage` for a folder that a flag named
 */
export function requireFolders(config: Config): void {
  if (isDefaultFolderMissing(config)) return prepareFolders(config, false)
  if (config.dataDirUsed) requireFolder(config.dataDir, 'data folder', config, 'DASH_DATA_DIR')
  requireNamed(config, 'objects')
}

/**
 * True when the object store can be read, for a command that reads nothing else: false while the default data folder is
 * missing, which is then not created.
 *
 * @throws Refusal `configuration` or `usage` when a folder that was named is not there
 */
export function hasStoreFolder(config: Config): boolean {
  const { store, storeNamed, dataDir, dataDirNamed } = config
  if (store.kind !== 'file') return true
  requireNamed(config, 'objects')
  if (!storeNamed && dataDirNamed) requireFolder(dataDir, 'data folder', config, 'DASH_DATA_DIR')
  return storeNamed || existsSync(dataDir)
}

/**
 * The stores that a rehearsal finds: it makes no folder and no file, and a store that does not exist yet counts as
 * empty.
 *
 * @throws Refusal `configuration` or `usage` when a folder that was named is not there
 */
export function existingStores(config: Config): Record<'ledger' | 'feed' | 'state' | 'objects', boolean> {
  requireNamed(config, 'data')
  requireNamed(config, 'objects')
  const { ledger, feed, state, store } = config
  return {
    ledger: !isFileMissing(ledger),
    feed: !isFileMissing(feed),
    state: !isFileMissing(state),
    objects: store.kind !== 'file' || existsSync(store.path),
  }
}

/**
 * The configuration of a rehearsal: an empty store in a temporary folder takes the place of each store that does not
 * exist yet. `remove` removes that folder.
 *
 * @throws as {@link existingStores}
 */
export function rehearsalConfig(config: Config): { config: Config; remove: () => void } {
  const existing = existingStores(config)
  const scratch = mkdtempSync(join(tmpdir(), 'dash-rehearsal-'))
  // A ledger without its objects is damage, and is reported as such.
  const isNew = !existing.ledger && !existing.objects
  return {
    config: {
      ...config,
      ...(existing.ledger ? {} : { ledger: databaseAt(join(scratch, 'ledger.db')) }),
      ...(existing.feed ? {} : { feed: databaseAt(join(scratch, 'feed.db')) }),
      ...(isNew ? { store: { kind: 'file', path: scratch } } : {}),
    },
    remove: () => rmSync(scratch, { recursive: true, force: true }),
  }
}

/** True when the ledger belongs into the default data folder and there is none: nothing was ever kept here. */
export function isUnfounded(config: Config): boolean {
  return isDefaultFolderMissing(config) && isInDataDir(config.ledger, config)
}

/**
 * For commands that read the feed and need nothing else: no folder is created, and no file, as opening a missing one would.
 *
 * @throws Refusal `configuration` or `usage` when a folder that was named is not there; `storage_unavailable` without a feed
 */
export function requireFeed(config: Config): void {
  if (!isDefaultFolderMissing(config)) requireFolders(config)
  if (!isFileMissing(config.feed)) return
  const advice = 'dash import signals makes one, or correct --data-dir'
  throw storageUnavailable(`there is no feed at ${fileOf(config.feed)}; ${advice}`)
}

/** The location of a database that is a file. */
export function databaseAt(path: string): DatabaseLocation {
  return { url: pathToFileURL(path).href, authToken: null }
}

/** The file a database is; null: it is on a server. */
export function fileOf({ url }: DatabaseLocation): string | null {
  return url.startsWith('file:') ? fileURLToPath(url) : null
}

/** True for a database that is a file and is not there yet. */
export function isFileMissing(location: DatabaseLocation): boolean {
  const path = fileOf(location)
  return path !== null && !existsSync(path)
}

export function isInDataDir(location: DatabaseLocation, { dataDir }: Config): boolean {
  const path = fileOf(location)
  return path !== null && dirname(path) === dataDir
}

function isDefaultFolderMissing({ dataDir, dataDirNamed, dataDirUsed }: Config): boolean {
  return dataDirUsed && !dataDirNamed && !existsSync(dataDir)
}

/** @param setting variable that the folder follows from */
function create(folder: string, config: Config, setting: string): void {
  try {
    mkdirSync(folder, { recursive: true })
  } catch (error) {
    // A full or broken disk is no matter of configuration.
    if (error instanceof Error && 'code' in error && /^E(IO|NOSPC|DQUOT)$/.test(String(error.code)))
      throw error
    const why = messageOf(error)
    const advice = `choose another with ${config.dataDirNamed ? settingName(config, setting) : '--data-dir'}`
    throw badValue(config.originOf(setting), `the folder ${folder} cannot be created (${why}); ${advice}`)
  }
}

/** Refuses a folder that is used, was named, and is not there. */
function requireNamed(config: Config, which: 'data' | 'objects'): void {
  const { dataDir, dataDirNamed, dataDirUsed, store, storeNamed } = config
  if (which === 'data' && dataDirUsed && dataDirNamed)
    requireFolder(dataDir, 'data folder', config, 'DASH_DATA_DIR')
  if (which === 'objects' && store.kind === 'file' && storeNamed)
    requireFolder(store.path, 'object store folder', config, 'DASH_STORE_URL')
}

function requireFolder(folder: string, what: string, config: Config, setting: string): void {
  const stat = statSync(folder, { throwIfNoEntry: false })
  if (stat?.isDirectory()) return
  const problem = stat ? 'is not a folder' : 'does not exist'
  const advice = `mount it, create it, or correct ${settingName(config, setting)}`
  throw badValue(config.originOf(setting), `the ${what} ${folder} ${problem}; ${advice}`)
}
