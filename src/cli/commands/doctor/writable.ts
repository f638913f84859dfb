import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DatabaseLocation } from '../../../domain/storage.ts'
import type { Config } from '../../config.ts'
import { EXIT } from '../../exit-codes.ts'
import { ok, problem } from './finding.ts'
import type { Finding } from './finding.ts'
import { checkRoom } from './host.ts'
import { isWritable, notWritable, sightOf } from './sight.ts'

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
