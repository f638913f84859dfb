import { existsSync, readdirSync, realpathSync, statfsSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DatabaseLocation } from '../../../domain/refusal.ts'
import { EXIT } from '../../exit-codes.ts'
import type { Config } from '../../settings/config.ts'
import type { GivenSettings } from '../../settings/read-config.ts'
import { namedVariables } from '../../settings/variables.ts'
import { isWritable, notWritable, note, ok, problem, sightOf, warning } from './finding.ts'
import type { Finding } from './finding.ts'

const PROGRAM = fileURLToPath(new URL('../../main.js', import.meta.url))

/** What `dash` means where commands are looked for by their names. */
export function checkName(path: string | undefined): Finding[] {
  const places = [...new Set((path ?? '').split(delimiter))].filter(isOfTheHost).map((folder) => {
    const place = join(folder, 'dash')
    return { folder, place, ...sightOf(place) }
  })
  const closed = places.flatMap(({ folder, fault }) =>
    fault === null
      ? []
      : [
          note(
            'name.path',
            `${folder} of PATH cannot be looked into (${fault})`,
            `take ${folder} out of PATH`,
          ),
        ],
  )
  return [judgeName(places.find(({ stat }) => stat?.isFile())?.place), ...closed]
}

/** False for the folders that npx and npm put before PATH for what they start: no script of this host has them. */
function isOfTheHost(folder: string): boolean {
  return !/[\\/]node_modules[\\/]\.bin[\\/]?$/.test(folder)
}

/** @param found the first program called dash */
function judgeName(found: string | undefined): Finding {
  const command = `${process.execPath} ${PROGRAM}`
  if (existsSync('/bin/sh') && realpathSync('/bin/sh') === PROGRAM) {
    return problem(
      'name',
      `/bin/sh is this program: it was installed in place of the system's shell`,
      'install the shell again (apt-get install --reinstall dash), and never install this program globally',
      EXIT.failed,
    )
  }
  if (found === undefined)
    return ok('name', `no other program is called dash here; use ${command} in scripts`)
  if (realpathSync(found) === PROGRAM) return ok('name', `dash is this program here (${found})`)
  const mend = `write ${command} wherever a script or a timer runs it`
  return note('name', `dash is another program here: ${found}, on many systems the shell`, mend)
}

/** Who may read the files that hold secrets. */
export function checkSecretFiles({ values, dotenv }: GivenSettings, cwd: string): Finding[] {
  const named = namedVariables.flatMap(({ name, secret }) => (secret && values[`${name}_FILE`]) || [])
  const paths = [...(dotenv === null ? [] : [dotenv]), ...named.map((path) => resolve(cwd, path))]
  const open = paths.flatMap((path) => {
    const { stat, fault } = sightOf(path)
    if (fault !== null) {
      const mend = 'let this user look into the folders above it (chmod o+x), or name another file'
      return [problem('secrets.files', `${path} cannot be looked at (${fault})`, mend, EXIT.configuration)]
    }
    const mode = (stat?.mode ?? 0) & 0o777
    if ((mode & 0o077) === 0) return []
    const detail = `${path} may be read by others (mode ${mode.toString(8).padStart(4, '0')})`
    return [warning('secrets.files', detail, `chmod 600 ${path}`)]
  })
  if (open.length > 0) return open
  return paths.length === 0
    ? []
    : [ok('secrets.files', 'files with secrets are readable by their owner alone')]
}

/** Whether the folders are there, whose they are, and what they leave to others. */
export function checkFolders(config: Config): Finding[] {
  const folders = [
    ...(config.dataDirUsed || config.stateInDataDir
      ? [{ check: 'data-folder', path: config.dataDir, named: config.dataDirNamed, setting: 'DASH_DATA_DIR' }]
      : []),
    ...(config.store.kind === 'file' && config.storeNamed
      ? [{ check: 'object-folder', path: config.store.path, named: true, setting: 'DASH_STORE_URL' }]
      : []),
  ]
  return folders.flatMap(({ check, path, named, setting }) => {
    const { stat, fault } = sightOf(path)
    if (fault !== null) {
      const mend = `let this user look into the folders above it (chmod o+x), or correct ${setting}`
      return [problem(check, `${path} cannot be looked at (${fault})`, mend, EXIT.storage)]
    }
    if (stat === null && !named)
      return [note(check, `${path} is not there yet`, 'dash collect and dash import make it')]
    if (!stat?.isDirectory()) {
      const detail = `${path} ${stat ? 'is no folder' : 'is not there'}`
      return [problem(check, detail, `mount it, create it, or correct ${setting}`, EXIT.configuration)]
    }
    return [...checkAccess(check, path, stat), ...checkRoom(check, path)]
  })
}

function checkAccess(check: string, path: string, stat: Stats): Finding[] {
  const { mode, uid } = stat
  if (!isWritable(path, stat)) {
    const { detail, mend } = notWritable(path, stat)
    return [problem(check, detail, mend, EXIT.storage)]
  }
  const findings: Finding[] = []
  if ((mode & 0o002) !== 0)
    findings.push(warning(check, `${path} may be written by everybody`, `chmod o-w ${path}`))
  const names = readdirSync(path)
  const shown = names.find((name) => {
    const { stat: file } = sightOf(join(path, name))
    return file?.isFile() && (file.mode & 0o077) !== 0
  })
  if (shown !== undefined && (mode & 0o077) !== 0) {
    const detail = `${join(path, shown)} may be read by other users`
    findings.push(warning(check, detail, `chmod -R go= ${path}`))
  }
  const strange = names.find((name) => sightOf(join(path, name)).stat?.uid !== uid)
  if (strange !== undefined) {
    const detail = `${join(path, strange)} belongs to another user than its folder: jobs and server run as different users`
    findings.push(warning(check, detail, `run all of them as one user, and chown -R ${uid} ${path}`))
  }
  return findings.length > 0 ? findings : [ok(check, `${path} can be read and written`)]
}

const MIB = 1024 * 1024

/** Less room than this does not do for a day. */
const ROOM_MIN_BYTES = 200 * MIB
const ROOM_LOW_BYTES = 2048 * MIB

/** Whether the disk below a folder has room for what will be written. */
function checkRoom(check: string, path: string): Finding[] {
  const { bavail, bsize, ffree, files } = statfsSync(path)
  const free = bavail * bsize
  const shown = `${Math.floor(free / MIB)} MiB are free at ${path}`
  const name = `${check}.room`
  const mend = 'make room, or move the folder to a larger disk; nothing that is stored is lost by a full one'
  if (files > 0 && ffree < 1000)
    return [problem(name, `${ffree} files can still be made at ${path}`, mend, EXIT.storage)]
  if (free < ROOM_MIN_BYTES) return [problem(name, shown, mend, EXIT.storage)]
  return [free < ROOM_LOW_BYTES ? warning(name, shown, mend) : ok(name, shown)]
}

/** What SQLite keeps beside a database. */
const BESIDE = ['', '-wal', '-shm', '-journal'] as const

/** Folders below the root of an object store are at most that deep. */
const FOLDER_DEPTH = 2

/** Whether the next job could write the files that are there: databases, and the folders of the objects. */
export function checkWritable({ ledger, feed, state, store, dataDir }: Config): Finding[] {
  const databases = Object.entries({ ledger, feed, state })
  return [
    ...databases.flatMap(([name, location]) => checkDatabase(`${name}.files`, location, dataDir)),
    ...(store.kind === 'file' ? checkObjects('objects.folders', store.path) : []),
  ]
}

function checkDatabase(check: string, { url }: DatabaseLocation, dataDir: string): Finding[] {
  if (!url.startsWith('file:')) return []
  const path = fileURLToPath(url)
  const folder = dirname(path)
  // Of the data folder itself it is told elsewhere.
  const own = folder === dataDir ? [] : [folder]
  const findings = judged(check, [...own, ...BESIDE.map((end) => path + end)], `${path} can be written`)
  return [
    ...findings,
    ...own.filter((each) => sightOf(each).stat !== null).flatMap((each) => checkRoom(check, each)),
  ]
}

function checkObjects(check: string, root: string): Finding[] {
  return judged(check, foldersBelow(root, FOLDER_DEPTH), `the folders in ${root} can be written`)
}

/** A folder and those below it, as far as they can be seen. */
function foldersBelow(folder: string, depth: number): string[] {
  const { stat } = sightOf(folder)
  if (stat === null || depth === 0 || !stat.isDirectory() || !isWritable(folder, stat)) return [folder]
  const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return [folder, ...below.flatMap(({ name }) => foldersBelow(join(folder, name), depth - 1))]
}

/** The first of these that is there and cannot be written; nothing is told while none is there. */
function judged(check: string, paths: readonly string[], well: string): Finding[] {
  const there = paths.flatMap((path) => {
    const { stat } = sightOf(path)
    return stat === null ? [] : [{ path, stat }]
  })
  const closed = there.find(({ path, stat }) => !isWritable(path, stat))
  if (closed === undefined) return there.length === 0 ? [] : [ok(check, well)]
  const { detail, mend } = notWritable(closed.path, closed.stat)
  return [problem(check, detail, mend, EXIT.storage)]
}

/** The folder that jobs leave their metrics in, where one is set. */
export function checkTextfileDir({ monitoring: { textfileDir: path } }: Config): Finding[] {
  if (path === null) return []
  const check = 'metrics.textfile'
  const { stat, fault } = sightOf(path)
  if (!stat?.isDirectory()) {
    const why = fault === null ? (stat ? 'is no folder' : 'is not there') : `cannot be looked at (${fault})`
    const mend =
      'create it, let this user look into the folders above it, or correct DASH_METRICS_TEXTFILE_DIR'
    return [problem(check, `${path} ${why}`, mend, EXIT.configuration)]
  }
  return judged(check, [path], `${path} can be written`)
}
