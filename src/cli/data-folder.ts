import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { badValue } from './settings/environment.ts'
import { storageUnavailable } from '../domain/refusal.ts'
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
  if (config.dataDirUsed) {
    if (creates || !config.dataDirNamed) create(config.dataDir, config, 'DASH_DATA_DIR')
    else requireDataFolder(config)
  }
  if (config.store.kind !== 'file') return
  if (creates || !config.storeNamed)
    create(config.store.path, config, config.storeNamed ? 'DASH_STORE_URL' : 'DASH_DATA_DIR')
  else requireStoreFolder(config, config.store.path)
}

/**
 * As {@link prepareFolders} for a command that only reads: it adds nothing to a data folder that is there. An object
 * store that is missing from it is refused by whoever reads it.
 *
 * @throws Refusal `configuration`, `usage` for a folder that a flag named
 */
export function requireFolders(config: Config): void {
  if (lacksDefaultFolder(config)) {
    prepareFolders(config, false)
    return
  }
  if (config.dataDirUsed) requireDataFolder(config)
  if (config.store.kind === 'file' && config.storeNamed) requireStoreFolder(config, config.store.path)
}

/**
 * True when the object store can be asked, for a command that reads nothing else: false while nothing was ever kept in
 * the default data folder, which is then not created.
 *
 * @throws Refusal `configuration` or `usage` when a folder that was named is not there
 */
export function hasStoreFolder(config: Config): boolean {
  const { store, storeNamed, dataDir, dataDirNamed } = config
  if (store.kind !== 'file') return true
  if (storeNamed) requireStoreFolder(config, store.path)
  else if (dataDirNamed) requireDataFolder(config)
  return storeNamed || existsSync(dataDir)
}

/** Which stores exist already. */
type ExistingStores = Record<'ledger' | 'feed' | 'state' | 'objects', boolean>

/**
 * The stores that a rehearsal finds: it makes no folder and no file, and a store that does not exist yet counts as
 * empty.
 *
 * @throws Refusal `configuration` or `usage` when a folder that was named is not there
 */
export function existingStores(config: Config): ExistingStores {
  const { ledger, feed, state, store, storeNamed, dataDirNamed, dataDirUsed } = config
  if (dataDirNamed && dataDirUsed) requireDataFolder(config)
  if (store.kind === 'file' && storeNamed) requireStoreFolder(config, store.path)
  const exists = ({ url }: Config['state']): boolean =>
    !url.startsWith('file:') || existsSync(fileURLToPath(url))
  return {
    ledger: exists(ledger),
    feed: exists(feed),
    state: exists(state),
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
  const fileIn = (name: string): Config['feed'] => ({
    url: pathToFileURL(join(scratch, name)).href,
    authToken: null,
  })
  // A ledger without its objects is damage, and is reported as such.
  const isNew = !existing.ledger && !existing.objects
  return {
    config: {
      ...config,
      ...(existing.ledger ? {} : { ledger: fileIn('ledger.db') }),
      ...(existing.feed ? {} : { feed: fileIn('feed.db') }),
      ...(isNew ? { store: { kind: 'file', path: scratch } } : {}),
    },
    remove: () => rmSync(scratch, { recursive: true, force: true }),
  }
}

/** True when the ledger belongs into the default data folder and there is none: nothing was ever kept here. */
export function isUnfounded(config: Config): boolean {
  const { url } = config.ledger
  if (!lacksDefaultFolder(config) || !url.startsWith('file:')) return false
  return dirname(fileURLToPath(url)) === config.dataDir
}

/**
 * For commands that ask the feed and need nothing else: no folder is created, and no file, as opening one that is not there
 * would.
 *
 * @throws Refusal `configuration` or `usage` when a folder that was named is not there; `storage_unavailable` without a feed
 */
export function requireFeed(config: Config): void {
  if (!lacksDefaultFolder(config)) requireFolders(config)
  const { feed } = config
  if (!feed.url.startsWith('file:')) return
  const path = fileURLToPath(feed.url)
  if (existsSync(path)) return
  throw storageUnavailable(
    `there is no feed at ${path}; dash import signals makes one, or correct --data-dir`,
  )
}

function lacksDefaultFolder({ dataDir, dataDirNamed, dataDirUsed }: Config): boolean {
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
    const why = error instanceof Error ? error.message : String(error)
    const advice = `choose another with ${config.dataDirNamed ? settingName(config, setting) : '--data-dir'}`
    throw badValue(config.originOf(setting), `the folder ${folder} cannot be created (${why}); ${advice}`)
  }
}

function requireDataFolder(config: Config): void {
  requireFolder(config.dataDir, 'data folder', config, 'DASH_DATA_DIR')
}

function requireStoreFolder(config: Config, path: string): void {
  requireFolder(path, 'object store folder', config, 'DASH_STORE_URL')
}

/** @param setting variable that names the folder */
function requireFolder(folder: string, what: string, config: Config, setting: string): void {
  const stat = statSync(folder, { throwIfNoEntry: false })
  if (stat?.isDirectory()) return
  const problem = stat ? 'is not a folder' : 'does not exist'
  const advice = `mount it, create it, or correct ${settingName(config, setting)}`
  throw badValue(config.originOf(setting), `the ${what} ${folder} ${problem}; ${advice}`)
}
