import { messageOf } from '../../../domain/refusal.ts'
import { accessSync, constants, existsSync, readdirSync, realpathSync, statfsSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DatabaseLocation } from '../../../domain/refusal.ts'
import { fileOf } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { currentUser, ownerName } from '../../process-identity.ts'
import { settingName } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import type { GivenSettings } from '../../settings/read-config.ts'
import { SECRETS } from '../../settings/variables.ts'
import { shellWord } from '../../terminal.ts'
import { found, note, ok, problem, warning } from './check.ts'
import type { Check, Judgement } from './check.ts'

const PROGRAM = fileURLToPath(new URL('../../main.js', import.meta.url))

/** Checks which program the name `dash` starts on this host. */
export function checkName(path: string | undefined): Check[] {
  const folders = [...new Set((path ?? '').split(delimiter))].filter(isHostFolder)
  const candidates = folders.map((folder) => ({ folder, ...inspectPath(join(folder, 'dash')) }))
  const unreadable = candidates.filter(({ fault }) => fault !== null)
  return [
    ...found('name', judgeName(candidates.find(({ stat }) => stat?.isFile())?.path)),
    ...unreadable.flatMap(({ folder, fault }) =>
      found(
        'name.path',
        note(`the folder ${folder} in PATH cannot be read (${fault})`, `remove ${folder} from PATH`),
      ),
    ),
  ]
}

/** Returns false for the folders that npx and npm add to PATH only for the programs they start. */
function isHostFolder(folder: string): boolean {
  return !/[\\/]node_modules[\\/]\.bin[\\/]?$/.test(folder)
}

/** @param first path of the first `dash` in PATH */
function judgeName(first: string | undefined): Judgement {
  const command = `${shellWord(process.execPath)} ${shellWord(PROGRAM)}`
  if (existsSync('/bin/sh') && realpathSync('/bin/sh') === PROGRAM)
    return problem(
      `/bin/sh is this program: it replaced the system shell`,
      'reinstall the shell (apt-get install --reinstall dash), and never install this program globally',
      EXIT.failed,
    )
  if (first === undefined)
    return ok(`no other program is named dash on this machine; use ${command} in scripts`)
  if (realpathSync(first) === PROGRAM) return ok(`the command dash starts this program (${first})`)
  return note(
    `the command dash starts another program: ${first}, on many systems the shell`,
    `use ${command} in scripts and timers`,
  )
}

/** Checks who may read the files that hold secrets. */
export function checkSecretFiles({ values, dotenv }: GivenSettings, cwd: string): Check[] {
  const names = [...SECRETS.map((name) => `${name}_FILE`), 'DASH_LOG_KEY_FILE']
  const named = names.flatMap((name) => values[name] || [])
  const paths = [...(dotenv === null ? [] : [dotenv]), ...named.map((path) => resolve(cwd, path))]
  if (paths.length === 0) return []
  const results = paths.flatMap((path) => judgeSecretFile(inspectPath(path)))
  return found(
    'secrets.files',
    results.length > 0 ? results : ok('only their owner can read the files with secrets'),
  )
}

function judgeSecretFile({ path, stat, fault }: PathState): Judgement[] {
  if (fault !== null) return [cannotInspect(path, fault, EXIT.configuration, 'choose another file')]
  const mode = (stat?.mode ?? 0) & 0o777
  if ((mode & 0o077) === 0) return []
  const detail = `${path} is readable by other users (mode ${mode.toString(8).padStart(4, '0')})`
  return [warning(detail, `chmod 600 ${shellWord(path)}`)]
}

/** Checks the named folders: existence, owner, permissions and free space. */
export function checkFolders(config: Config): Check[] {
  const { dataDirUsed, stateInDataDir, dataDir, dataDirNamed, store, storeNamed } = config
  const hasData = dataDirUsed || stateInDataDir
  const dataName = settingName(config, 'DASH_DATA_DIR')
  const data = hasData ? checkFolder('data-folder', dataDir, dataDirNamed, dataName) : []
  if (store.kind !== 'file' || !storeNamed) return data
  return [...data, ...checkFolder('object-folder', store.path, true, settingName(config, 'DASH_STORE_URL'))]
}

function checkFolder(check: string, path: string, isNamed: boolean, setting: string): Check[] {
  const { stat, fault } = inspectPath(path)
  if (fault !== null) return found(check, cannotInspect(path, fault, EXIT.storage, `correct ${setting}`))
  if (stat === null && !isNamed)
    return found(check, note(`${path} does not exist yet`, 'dash collect and dash import create it'))
  if (!stat?.isDirectory()) {
    const detail = `${path} ${stat ? 'is not a folder' : 'does not exist'}`
    return found(check, problem(detail, `mount it, create it, or correct ${setting}`, EXIT.configuration))
  }
  return [...found(check, judgeAccess(path, stat)), ...checkFreeSpace(check, path)]
}

function judgeAccess(path: string, stat: Stats): Judgement[] {
  const { mode, uid } = stat
  if (!isWritable(path, stat)) return [notWritable(path, stat)]
  const inside = readdirSync(path).map((name) => inspectPath(join(path, name)))
  const shown = inside.find(({ stat: file }) => file?.isFile() && (file.mode & 0o077) !== 0)
  const foreign = inside.find(({ stat: file }) => file?.uid !== uid)
  const results: Judgement[] = []
  if ((mode & 0o002) !== 0)
    results.push(warning(`${path} is writable by every user`, `chmod o-w ${shellWord(path)}`))
  if (shown !== undefined && (mode & 0o077) !== 0)
    results.push(warning(`${shown.path} is readable by other users`, `chmod -R go= ${shellWord(path)}`))
  if (foreign !== undefined)
    results.push(
      warning(
        `${foreign.path} and its folder have different owners: jobs and server run as different users`,
        `run them all as one user, then chown -R ${uid} ${shellWord(path)}`,
      ),
    )
  return results.length > 0 ? results : [ok(`${path} is readable and writable`)]
}

const MIB = 1024 * 1024

/** Free space below the first limit is a problem, below the second a warning. */
const FREE_MIN_BYTES = 200 * MIB
const FREE_LOW_BYTES = 2048 * MIB

function checkFreeSpace(check: string, path: string): Check[] {
  const { bavail, bsize } = statfsSync(path)
  const free = bavail * bsize
  const shown = `${Math.floor(free / MIB)} MiB free at ${path}`
  const mend = 'free some space, or move the folder to a larger disk; a full disk loses no stored data'
  if (free < FREE_MIN_BYTES) return found(`${check}.room`, problem(shown, mend, EXIT.storage))
  return found(`${check}.room`, free < FREE_LOW_BYTES ? warning(shown, mend) : ok(shown))
}

/** Suffixes of a database file and of the files that SQLite keeps beside it. */
const DATABASE_SUFFIXES = ['', '-wal', '-shm', '-journal'] as const

/** Deepest level of folders in an object store. */
const FOLDER_DEPTH = 2

/** Checks whether the next job can write the existing databases and object folders. */
export function checkWritable({ ledger, feed, state, store, dataDir }: Config): Check[] {
  const databases = Object.entries({ ledger, feed, state })
  return [
    ...databases.flatMap(([name, location]) => checkDatabase(`${name}.files`, location, dataDir)),
    ...(store.kind === 'file'
      ? writableOf(
          'objects.folders',
          foldersBelow(store.path, FOLDER_DEPTH),
          `the folders in ${store.path} are`,
          store.path,
        )
      : []),
  ]
}

function checkDatabase(check: string, location: DatabaseLocation, dataDir: string): Check[] {
  const path = fileOf(location)
  if (path === null) return []
  const folder = dirname(path)
  // The data folder has its own check.
  const own = folder === dataDir ? [] : [folder]
  return [
    ...writableOf(check, [...own, ...DATABASE_SUFFIXES.map((suffix) => path + suffix)], `${path} is`),
    ...own.filter((each) => inspectPath(each).stat !== null).flatMap((each) => checkFreeSpace(check, each)),
  ]
}

/** Returns a folder and its readable subfolders, down to `depth` levels. */
function foldersBelow(folder: string, depth: number): string[] {
  const { stat } = inspectPath(folder)
  if (stat === null || depth === 0 || !stat.isDirectory() || !isWritable(folder, stat)) return [folder]
  const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return [folder, ...below.flatMap(({ name }) => foldersBelow(join(folder, name), depth - 1))]
}

/**
 * Reports the first existing path that cannot be written; returns nothing if no path exists.
 *
 * @param what all paths and their verb, for the message
 * @param owned path whose owner to change; default: the reported one. A folder has files that are not checked here
 */
function writableOf(check: string, paths: readonly string[], what: string, owned?: string): Check[] {
  const existing = paths.map(inspectPath).flatMap(({ path, stat }) => (stat === null ? [] : [{ path, stat }]))
  if (existing.length === 0) return []
  const unwritable = existing.find(({ path, stat }) => !isWritable(path, stat))
  return found(
    check,
    unwritable ? notWritable(unwritable.path, unwritable.stat, owned) : ok(`${what} writable`),
  )
}

/** State of a path for this user; `stat` and `fault` are both null if nothing exists there. */
type PathState =
  { path: string; stat: Stats | null; fault: null } | { path: string; stat: null; fault: string }

function inspectPath(path: string): PathState {
  try {
    return { path, stat: statSync(path, { throwIfNoEntry: false }) ?? null, fault: null }
  } catch (error) {
    return { path, stat: null, fault: messageOf(error) }
  }
}

function cannotInspect(path: string, fault: string, exitCode: number, otherwise: string): Judgement {
  const mend = `give this user access to its parent folders (chmod o+x), or ${otherwise}`
  return problem(`${path} cannot be accessed (${fault})`, mend, exitCode)
}

/** Returns true if this user may read and write a file, or read, enter and write a folder. Writes nothing. */
function isWritable(path: string, stat: Stats): boolean {
  const { R_OK, W_OK, X_OK } = constants
  try {
    accessSync(path, stat.isDirectory() ? R_OK | W_OK | X_OK : R_OK | W_OK)
    return true
  } catch {
    return false
  }
}

function notWritable(path: string, stat: Stats, owned = path): Judgement {
  const { uid, name } = currentUser()
  const rights = stat.isDirectory() ? 'u+rwx' : 'u+rw'
  const mend =
    stat.uid === uid
      ? `chmod ${rights} ${shellWord(path)}, and check that its disk is not mounted read-only`
      : `run as its owner, or chown -R ${ownerName(name)} ${shellWord(owned)}`
  return problem(`${path} belongs to user ${stat.uid} and cannot be written by ${name}`, mend, EXIT.storage)
}
