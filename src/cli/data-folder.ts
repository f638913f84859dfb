import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { badValue } from './settings/environment.ts'
import { Refusal, errorCode, storageUnavailable, messageOf } from '../domain/refusal.ts'
import type { DatabaseLocation, StoreLocation } from '../domain/refusal.ts'
import { settingName } from './settings/config.ts'
import type { Config } from './settings/config.ts'
import type { Container } from './container.ts'

/**
 * Creates the data folder and the object store's folder, or refuses missing ones (docs/configuration.md).
 *
 * @param creates true for commands that may create any data folder. Others create only the default one: a missing
 *   named folder is probably an unmounted disk, not an empty archive
 * @throws Refusal `configuration`, `usage` for a folder that a flag named, as all functions below
 */
export function prepareFolders(config: Config, creates: boolean): void {
  const { dataDir, dataDirUsed, store, storeNamed } = config
  if (!creates) requireNamed(config)
  if (dataDirUsed) createFolder(dataDir, config, 'DASH_DATA_DIR')
  if (store.kind === 'file') createFolder(store.path, config, storeNamed ? 'DASH_STORE_URL' : 'DASH_DATA_DIR')
}

/**
 * Like {@link prepareFolders}, for commands that only read: nothing is added to an existing data folder. A missing
 * object store is refused when it is read.
 */
export function requireFolders(config: Config): void {
  if (isDefaultFolderMissing(config)) prepareFolders(config, false)
  else requireNamed(config)
}

/**
 * Returns true if the object store can be read, and false while the default data folder is missing. For commands
 * that read nothing else; creates no folder.
 */
export function hasStoreFolder(config: Config): boolean {
  const { store, storeNamed, dataDir } = config
  requireNamed(config)
  return store.kind !== 'file' || storeNamed || isThere(dataDir)
}

/** Reports which stores exist, for dry runs. Creates no folder and no file. */
export function existingStores(config: Config): Record<'ledger' | 'feed' | 'state' | 'objects', boolean> {
  requireNamed(config)
  const { ledger, feed, state, store } = config
  return {
    ledger: !isFileMissing(ledger),
    feed: !isFileMissing(feed),
    state: !isFileMissing(state),
    objects: store.kind !== 'file' || isThere(store.path),
  }
}

/** Runs a dry run. Each missing store is replaced by an empty one in a temporary folder, which is deleted afterwards. */
export async function rehearse<T>(own: Container, run: (container: Container) => Promise<T>): Promise<T> {
  const existing = existingStores(own.config)
  const scratch = mkdtempSync(join(tmpdir(), 'dash-rehearsal-'))
  // A ledger without its objects is damage, and is reported as such.
  const isNew = !existing.ledger && !existing.objects
  const container = own.withConfig({
    ...(existing.ledger ? {} : { ledger: databaseAt(join(scratch, 'ledger.db')) }),
    ...(existing.feed ? {} : { feed: databaseAt(join(scratch, 'feed.db')) }),
    ...(existing.state ? {} : { state: databaseAt(join(scratch, 'state.db')) }),
    ...(isNew ? { store: { kind: 'file', path: scratch } } : {}),
  })
  try {
    return await run(container)
  } finally {
    await container.close()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/**
 * Returns true if the ledger belongs in the default data folder and that folder is missing: nothing was ever stored
 * here.
 */
export function isUnfounded(config: Config): boolean {
  return isDefaultFolderMissing(config) && isInDataDir(config.ledger, config)
}

/**
 * Refuses a missing feed, for commands that read only the feed. Creates no folder, and no file as opening a missing
 * database would.
 *
 * @throws Refusal `storage_unavailable` without a feed, with the advice
 */
export function requireFeed(config: Config, advice = FEED_ADVICE): void {
  requireNamed(config)
  if (!isFileMissing(config.feed)) return
  throw storageUnavailable(`no feed database at ${fileOf(config.feed)}; ${advice}`)
}

const FEED_ADVICE = 'create one with dash import signals, or correct --data-dir'

export function databaseAt(path: string): DatabaseLocation {
  return { url: pathToFileURL(path).href, authToken: null }
}

/** Path of a database file; null for a database server. */
export function fileOf({ url }: DatabaseLocation): string | null {
  return url.startsWith('file:') ? fileURLToPath(url) : null
}

/** Returns true for a database file that does not exist yet. */
export function isFileMissing(location: DatabaseLocation): boolean {
  const path = fileOf(location)
  return path !== null && !isThere(path)
}

function isThere(path: string): boolean {
  return statsOf(path) !== undefined
}

/** Codes of paths that lead nowhere: below a file, into a circle of links, or with a name that no file can have. */
const LEADS_NOWHERE = /^E(NOTDIR|LOOP|NAMETOOLONG)$/

/**
 * Returns what is at a path; undefined if nothing is.
 *
 * @throws Refusal `storage_unavailable` if this user may not look: what is there must not count as missing
 */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    const code = errorCode(error) ?? ''
    if (LEADS_NOWHERE.test(code)) return undefined
    if (code !== 'EACCES' && code !== 'EPERM') throw error
    throw storageUnavailable(`this user cannot open ${dirname(path)}; run the command as its owner`, error)
  }
}

/** Resolves the links of a path, whose last parts may not exist yet. */
export function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    const parent = dirname(path)
    if (parent === path) throw error
    return join(realPath(parent), basename(path))
  }
}

/**
 * Requires the target of an export or a copy to be apart from the object store of the archive.
 *
 * @throws Refusal `usage` if one of them contains the other
 */
export function requireOutsideStore(target: StoreLocation, { store }: Pick<Config, 'store'>): void {
  const [own, other] = [storeAddress(store), storeAddress(target)]
  if (own.startsWith(other) || other.startsWith(own))
    throw new Refusal('usage', 'the target overlaps the object store of this archive; choose another target')
}

/** Address of a store without links and keys; ends with a slash. */
export function storeAddress(store: StoreLocation): string {
  if (store.kind === 'file') return `${realPath(store.path).replace(/\/$/, '')}/`
  const { endpoint, bucket, prefix } = store
  return `${endpoint}/${bucket}/${prefix === '' ? '' : `${prefix}/`}`
}

/** A full or broken disk is not an error of the configuration. */
const DISK_ERRORS = /^E(IO|NOSPC|DQUOT)$/

/**
 * Creates the folder of a tree of static files, which all users may read, if it is missing.
 *
 * @throws Refusal `usage`
 */
export function createPublicFolder(path: string): void {
  try {
    createFolders(path, 0o755)
  } catch (error) {
    if (DISK_ERRORS.test(errorCode(error) ?? '')) throw error
    throw new Refusal('usage', `the folder ${path} cannot be created (${messageOf(error)}); choose another`)
  }
}

/**
 * Creates a folder and its missing parents with a mode, whatever the umask is. The recursive form of `mkdir` never
 * returns where the system refuses a folder as missing although its parent exists, as in `/proc`.
 */
export function createFolders(path: string, mode: number): void {
  const isFolder = (): boolean => statsOf(path)?.isDirectory() ?? false
  if (isFolder()) return
  createFolders(dirname(path), mode)
  try {
    mkdirSync(path, { mode })
    chmodSync(path, mode)
  } catch (error) {
    if (isFolder()) return
    throw errorCode(error) === 'EEXIST'
      ? new Error('a file, or a link that leads to no folder, is there')
      : error
  }
}

export function isInDataDir(location: DatabaseLocation, { dataDir }: Config): boolean {
  const path = fileOf(location)
  return path !== null && dirname(path) === dataDir
}

function isDefaultFolderMissing({ dataDir, dataDirNamed, dataDirUsed }: Config): boolean {
  return dataDirUsed && !dataDirNamed && !isThere(dataDir)
}

/**
 * Creates a folder if it is missing. It is private, but the user of the services must be able to enter the folders
 * above it.
 *
 * @param setting variable that determines the folder
 */
export function createFolder(folder: string, config: Config, setting: string): void {
  try {
    createFolders(dirname(folder), 0o755)
    createFolders(folder, 0o700)
  } catch (error) {
    if (error instanceof Refusal || DISK_ERRORS.test(errorCode(error) ?? '')) throw error
    const why = messageOf(error)
    const advice = `choose another with ${config.dataDirNamed ? settingName(config, setting) : '--data-dir'}`
    throw badValue(config.originOf(setting), `the folder ${folder} cannot be created (${why}); ${advice}`)
  }
}

/** Refuses a folder that is in use and was named but does not exist, or is not a folder. */
function requireNamed(config: Config): void {
  const { dataDir, dataDirUsed, store, storeNamed } = config
  if (dataDirUsed && !isDefaultFolderMissing(config))
    requireFolder(dataDir, 'data folder', config, 'DASH_DATA_DIR')
  if (store.kind === 'file' && storeNamed)
    requireFolder(store.path, 'object store folder', config, 'DASH_STORE_URL')
}

function requireFolder(folder: string, what: string, config: Config, setting: string): void {
  const stat = statsOf(folder)
  if (stat?.isDirectory()) return
  const problem = stat ? 'is not a folder' : 'does not exist'
  const advice = `mount it, create it, or correct ${settingName(config, setting)}`
  throw badValue(config.originOf(setting), `the ${what} ${folder} ${problem}; ${advice}`)
}
