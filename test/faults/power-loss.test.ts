import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { preparedFolder } from './attack.ts'
import { dash, temporaryFolder } from '../support/dash.ts'
import { logSettings } from '../support/signed-log.ts'
import { storiesOf } from '../support/signals.ts'

/**
 * On a disk with only the guarantees of POSIX, written bytes are durable after a sync of their file, and a name is added
 * to or removed from a folder after a sync of that folder; until then a power loss may keep or drop each, in any order.
 * A run that syncs what it changed before it changes another file, and before it acknowledges, leaves to a power loss
 * nothing but what it leaves to a kill: then the crash points cover both.
 */

const CALLS =
  'openat close write writev pwrite64 ftruncate fallocate fsync fdatasync link linkat unlink unlinkat rename renameat ' +
  'renameat2 mkdir mkdirat rmdir'

/** Files that may be lost: records of runs, and what SQLite and a lock build again. */
const REPLACEABLE = /^state\.db|-shm$|\.lock$/

/** A database with its journals is one file, whose syncs SQLite orders; so is a file of a folder with the one it was written as. */
const fileOf = (path: string): string =>
  path.includes('/') ? dirname(path) : path.replace(/-(?:journal|wal)$/, '')

interface Change {
  path: string
  /** The path whose sync makes it durable: the file, or its folder. */
  durableBy: string
}

/** Runs the program and returns each change that was not durable when another file was changed or the run acknowledged. */
async function unsyncedChanges(args: readonly string[], folder: string): Promise<string[]> {
  const log = join(temporaryFolder(), 'strace.log')
  const names = new Set(readdirSync(folder, { recursive: true, encoding: 'utf8' }))
  const wrapper = ['strace', '-qq', '-y', '-s', '16', '-o', log, '-e', `trace=${CALLS.replaceAll(' ', ',')}`]
  const run = await dash(args, { env: logSettings(folder), wrapper })
  expect(run).toMatchObject({ code: 0 })
  let pending: Change[] = []
  const unsynced: string[] = []
  let [acknowledged, synced] = [false, 0]
  const demand = (event: string, isOther: (change: Change) => boolean): void => {
    for (const { path } of pending.filter(isOther)) unsynced.push(`${path} before ${event}`)
    pending = pending.filter((change) => !isOther(change))
  }
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    const [, call = '', text = '', result = ''] = /^(\w+)\((.*)\) += (-?\d+)/.exec(line) ?? []
    if (call === '' || Number(result) < 0) continue
    if (call === 'write' && text.startsWith('1<')) {
      demand('it was acknowledged', () => true)
      acknowledged = true
      continue
    }
    const paths = Array.from(text.matchAll(/[<"]([^<>"]+)[>"]/g), ([, path = '']) => path)
      .concat(/<([^<>]+)>$/.exec(line)?.[1] ?? [])
      .filter((path) => path === folder || path.startsWith(`${folder}/`))
      .map((path) => path.slice(folder.length + 1))
    const path = paths.at(-1)
    if (path === undefined) continue
    if (call.endsWith('sync')) {
      const rest = pending.filter((change) => change.durableBy !== path)
      synced += pending.length - rest.length
      pending = rest
      continue
    }
    if (call === 'close') continue
    if (call === 'openat' && (!text.includes('O_CREAT') || names.has(path))) continue
    if (call.startsWith('unlink')) names.delete(path)
    else names.add(path)
    const isName = !/write|truncate|fallocate/.test(call)
    if (REPLACEABLE.test(path)) continue
    demand(`${call} of ${path}`, (change) => fileOf(change.path) !== fileOf(path))
    const folderOf = dirname(path) === '.' ? '' : dirname(path)
    pending.push({ path, durableBy: isName ? folderOf : path })
  }
  expect(acknowledged).toBe(true)
  // Otherwise the trace would show nothing.
  expect(synced).toBeGreaterThan(5)
  return unsynced
}

test.each([
  ['on a new data folder', 0],
  ['after two earlier days', 2],
])(
  'a publish %s has synced each change before the next file, and all before it is acknowledged',
  async (_when, earlierDays) => {
    const { folder } = await preparedFolder(earlierDays, 20)
    expect(await unsyncedChanges(['publish-year', '--once', '--json', '--data-dir', folder], folder)).toEqual(
      [],
    )
  },
)

test('an import has synced each change before the next file, and all before it is acknowledged', async () => {
  const { folder, day } = await preparedFolder(0, 20)
  const file = join(temporaryFolder(), 'signals.ndjson')
  writeFileSync(file, storiesOf(day, 60))
  expect(await unsyncedChanges(['import', 'signals', file, '--json', '--data-dir', folder], folder)).toEqual(
    [],
  )
})
