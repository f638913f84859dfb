import { messageOf } from '../../../domain/refusal.ts'
import { accessSync, constants, existsSync, readdirSync, realpathSync, statfsSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DatabaseLocation } from '../../../domain/refusal.ts'
import { fileOf } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { currentUser, ownerName } from '../../process-identity.ts'
import type { Config } from '../../settings/config.ts'
import type { GivenSettings } from '../../settings/read-config.ts'
import { SECRETS } from '../../settings/variables.ts'
import { found, note, ok, problem, warning } from './check.ts'
import type { Check, Judgement } from './check.ts'

const PROGRAM = fileURLToPath(new URL('../../main.js', import.meta.url))

/** Which program the name `dash` starts here. */
export function checkName(path: string | undefined): Check[] {
  const folders = [...new Set((path ?? '').split(delimiter))].filter(isOfTheHost)
  const places = folders.map((folder) => ({ folder, ...inspectPath(join(folder, 'dash')) }))
  const closed = places.filter(({ fault }) => fault !== null)
  return [
    ...found('name', judgeName(places.find(({ stat }) => stat?.isFile())?.path)),
    ...closed.flatMap(({ folder, fault }) =>
      found(
        'name.path',
        note(`${folder} of PATH cannot be looked into (${fault})`, `take ${folder} out of PATH`),
      ),
    ),
  ]
}

/** False for the folders that npx and npm put before PATH for what they start: no script of this host has them. */
function isOfTheHost(folder: string): boolean {
  return !/[\\/]node_modules[\\/]\.bin[\\/]?$/.test(folder)
}

/** @param first the first program called dash */
function judgeName(first: string | undefined): Judgement {
  const command = `${process.execPath} ${PROGRAM}`
  if (existsSync('/bin/sh') && realpathSync('/bin/sh') === PROGRAM)
    return problem(
      `/bin/sh is this program: it was installed in place of the system's shell`,
      'install the shell again (apt-get install --reinstall dash), and never install this program globally',
      EXIT.failed,
    )
  if (first === undefined) return ok(`no other program is called dash here; use ${command} in scripts`)
  if (realpathSync(first) === PROGRAM) return ok(`dash is this program here (${first})`)
  return note(
    `dash is another program here: ${first}, on many systems the shell`,
    `write ${command} wherever a script or a timer runs it`,
  )
}

/** Who may read the files that hold secrets. */
export function checkSecretFiles({ values, dotenv }: GivenSettings, cwd: string): Check[] {
  const named = SECRETS.flatMap((name) => values[`${name}_FILE`] || [])
  const paths = [...(dotenv === null ? [] : [dotenv]), ...named.map((path) => resolve(cwd, path))]
  if (paths.length === 0) return []
  const judged = paths.flatMap((path) => judgeSecretFile(inspectPath(path)))
  return found(
    'secrets.files',
    judged.length > 0 ? judged : ok('files with secrets are readable by their owner alone'),
  )
}

function judgeSecretFile({ path, stat, fault }: PathState): Judgement[] {
  if (fault !== null) return [cannotInspect(path, fault, EXIT.configuration, 'name another file')]
  const mode = (stat?.mode ?? 0) & 0o777
  if ((mode & 0o077) === 0) return []
  const detail = `${path} may be read by others (mode ${mode.toString(8).padStart(4, '0')})`
  return [warning(detail, `chmod 600 ${path}`)]
}

/** Whether the named folders are there, whose they are, what they leave to others, and what room they have. */
export function checkFolders(config: Config): Check[] {
  const { dataDirUsed, stateInDataDir, dataDir, dataDirNamed, store, storeNamed } = config
  const hasData = dataDirUsed || stateInDataDir
  const data = hasData ? checkFolder('data-folder', dataDir, dataDirNamed, 'DASH_DATA_DIR') : []
  if (store.kind !== 'file' || !storeNamed) return data
  return [...data, ...checkFolder('object-folder', store.path, true, 'DASH_STORE_URL')]
}

function checkFolder(check: string, path: string, isNamed: boolean, setting: string): Check[] {
  const { stat, fault } = inspectPath(path)
  if (fault !== null) return found(check, cannotInspect(path, fault, EXIT.storage, `correct ${setting}`))
  if (stat === null && !isNamed)
    return found(check, note(`${path} is not there yet`, 'dash collect and dash import make it'))
  if (!stat?.isDirectory()) {
    const detail = `${path} ${stat ? 'is no folder' : 'is not there'}`
    return found(check, problem(detail, `mount it, create it, or correct ${setting}`, EXIT.configuration))
  }
  return [...found(check, judgeAccess(path, stat)), ...checkFreeSpace(check, path)]
}

function judgeAccess(path: string, stat: Stats): Judgement[] {
  const { mode, uid } = stat
  if (!isWritable(path, stat)) return [notWritable(path, stat)]
  const inside = readdirSync(path).map((name) => inspectPath(join(path, name)))
  const shown = inside.find(({ stat: file }) => file?.isFile() && (file.mode & 0o077) !== 0)
  const strange = inside.find(({ stat: file }) => file?.uid !== uid)
  const judged: Judgement[] = []
  if ((mode & 0o002) !== 0) judged.push(warning(`${path} may be written by everybody`, `chmod o-w ${path}`))
  if (shown !== undefined && (mode & 0o077) !== 0)
    judged.push(warning(`${shown.path} may be read by other users`, `chmod -R go= ${path}`))
  if (strange !== undefined)
    judged.push(
      warning(
        `${strange.path} belongs to another user than its folder: jobs and server run as different users`,
        `run all of them as one user, and chown -R ${uid} ${path}`,
      ),
    )
  return judged.length > 0 ? judged : [ok(`${path} can be read and written`)]
}

const MIB = 1024 * 1024

/** Less room than this does not do for a day. */
const FREE_MIN_BYTES = 200 * MIB
const FREE_LOW_BYTES = 2048 * MIB

function checkFreeSpace(check: string, path: string): Check[] {
  const { bavail, bsize, ffree, files } = statfsSync(path)
  const free = bavail * bsize
  const shown = `${Math.floor(free / MIB)} MiB are free at ${path}`
  const mend = 'make room, or move the folder to a larger disk; nothing that is stored is lost by a full one'
  const lacksFiles = files > 0 && ffree < 1000
  const detail = lacksFiles ? `${ffree} files can still be made at ${path}` : shown
  if (lacksFiles || free < FREE_MIN_BYTES) return found(`${check}.room`, problem(detail, mend, EXIT.storage))
  return found(`${check}.room`, free < FREE_LOW_BYTES ? warning(shown, mend) : ok(shown))
}

/** SQLite keeps these beside a database. */
const BESIDE = ['', '-wal', '-shm', '-journal'] as const

/** Folders below the root of an object store are at most that deep. */
const FOLDER_DEPTH = 2

/** Whether the next job could write the files that are there: databases, and the folders of the objects. */
export function checkWritable({ ledger, feed, state, store, dataDir }: Config): Check[] {
  const databases = Object.entries({ ledger, feed, state })
  return [
    ...databases.flatMap(([name, location]) => checkDatabase(`${name}.files`, location, dataDir)),
    ...(store.kind === 'file'
      ? writableOf('objects.folders', foldersBelow(store.path, FOLDER_DEPTH), `the folders in ${store.path}`)
      : []),
  ]
}

function checkDatabase(check: string, location: DatabaseLocation, dataDir: string): Check[] {
  const path = fileOf(location)
  if (path === null) return []
  const folder = dirname(path)
  // The data folder itself is another check.
  const own = folder === dataDir ? [] : [folder]
  return [
    ...writableOf(check, [...own, ...BESIDE.map((end) => path + end)], path),
    ...own.filter((each) => inspectPath(each).stat !== null).flatMap((each) => checkFreeSpace(check, each)),
  ]
}

/** A folder and those below it, as far as they can be seen. */
function foldersBelow(folder: string, depth: number): string[] {
  const { stat } = inspectPath(folder)
  if (stat === null || depth === 0 || !stat.isDirectory() || !isWritable(folder, stat)) return [folder]
  const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return [folder, ...below.flatMap(({ name }) => foldersBelow(join(folder, name), depth - 1))]
}

/**
 * The first of these paths that is there and cannot be written; no finding while none is there.
 *
 * @param what all of them, as a message names them
 */
function writableOf(check: string, paths: readonly string[], what: string): Check[] {
  const there = paths.map(inspectPath).flatMap(({ path, stat }) => (stat === null ? [] : [{ path, stat }]))
  if (there.length === 0) return []
  const closed = there.find(({ path, stat }) => !isWritable(path, stat))
  return found(check, closed ? notWritable(closed.path, closed.stat) : ok(`${what} can be written`))
}

/** The folder that jobs leave their metrics in, where one is set. */
export function checkTextfileDir({ monitoring: { textfileDir: path } }: Config): Check[] {
  if (path === null) return []
  const { stat, fault } = inspectPath(path)
  if (stat?.isDirectory()) return writableOf('metrics.textfile', [path], path)
  const why = fault === null ? (stat ? 'is no folder' : 'is not there') : `cannot be looked at (${fault})`
  const mend = 'create it, let this user look into the folders above it, or correct DASH_METRICS_TEXTFILE_DIR'
  return found('metrics.textfile', problem(`${path} ${why}`, mend, EXIT.configuration))
}

/** What this user sees at a path; both null: nothing is there. */
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
  const mend = `let this user look into the folders above it (chmod o+x), or ${otherwise}`
  return problem(`${path} cannot be looked at (${fault})`, mend, exitCode)
}

/** True when this user may read and write a file, or read, enter and write a folder; nothing is written to try it. */
function isWritable(path: string, stat: Stats): boolean {
  const { R_OK, W_OK, X_OK } = constants
  try {
    accessSync(path, stat.isDirectory() ? R_OK | W_OK | X_OK : R_OK | W_OK)
    return true
  } catch {
    return false
  }
}

function notWritable(path: string, stat: Stats): Judgement {
  const { uid, name } = currentUser()
  const rights = stat.isDirectory() ? 'u+rwx' : 'u+rw'
  const mend =
    stat.uid === uid
      ? `chmod ${rights} ${path}, and see that its disk is not mounted read-only`
      : `run as its owner, or chown -R ${ownerName(name)} ${path}`
  return problem(`${path} belongs to user ${stat.uid} and cannot be written by ${name}`, mend, EXIT.storage)
}
