import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fileChangeToken } from '../../src/adapters/change-token.ts'
import { temporaryFolder, fileSystemClockMovedOn, laterClock } from '../support/temporary-folder.ts'
const SETTLED_MS = 2_000

/** A time of access and of modification, in seconds. */
const SOME_TIME = 1_767_225_600

async function writtenFile(): Promise<{ folder: string; path: string }> {
  const folder = temporaryFolder()
  const path = join(folder, 'file')
  writeFileSync(path, 'the content')
  // Whole seconds can be restored exactly.
  utimesSync(path, SOME_TIME, SOME_TIME)
  return { folder, path }
}

/** The newer of a file's two change times, in whole milliseconds. */
function changedMs(path: string): number {
  const { mtimeMs, ctimeMs } = statSync(path)
  return Math.floor(Math.max(mtimeMs, ctimeMs))
}

/** Changes that keep the length of the content, or restore the times a program can set. */
const CHANGES: Record<string, (path: string) => void> = {
  'an edit of the same length with its times set back': (path) => {
    writeFileSync(path, 'The content')
    utimesSync(path, SOME_TIME, SOME_TIME)
  },
  'a replacement by a file of the same content and times': (path) => {
    writeFileSync(`${path}-new`, readFileSync(path))
    utimesSync(`${path}-new`, SOME_TIME, SOME_TIME)
    renameSync(`${path}-new`, path)
  },
  'its deletion': (path) => rmSync(path),
}

test('the change token is null until two seconds after the last change', async () => {
  const { path } = await writtenFile()
  const changed = changedMs(path)
  expect(fileChangeToken([path], () => changed + SETTLED_MS - 1)).toBeNull()
  expect(fileChangeToken([path], () => changed + SETTLED_MS)).not.toBeNull()
})

test('the change token is null while a file has a change time in the future', async () => {
  const { path } = await writtenFile()
  utimesSync(path, new Date(), new Date(Date.now() + 3_600_000))
  expect(fileChangeToken([path], laterClock)).toBeNull()
})

test.each(Object.entries(CHANGES))('the change token differs after %s', async (_what, change) => {
  const { path } = await writtenFile()
  const before = fileChangeToken([path], laterClock)
  await fileSystemClockMovedOn(path)
  change(path)
  expect(before).not.toBeNull()
  expect(fileChangeToken([path], laterClock)).not.toBe(before)
})

test('the change token of a folder differs after an entry comes', async () => {
  const { folder } = await writtenFile()
  const before = fileChangeToken([folder], laterClock)
  await fileSystemClockMovedOn(folder)
  mkdirSync(join(folder, 'sub'))
  expect(fileChangeToken([folder], laterClock)).not.toBe(before)
})

test('the change token of several files is null until every file has settled', async () => {
  const { folder, path } = await writtenFile()
  await fileSystemClockMovedOn(path)
  writeFileSync(join(folder, 'newer'), '')
  const between = (): number => changedMs(join(folder, 'newer')) + SETTLED_MS - 1
  expect(fileChangeToken([path, join(folder, 'newer')], between)).toBeNull()
})
