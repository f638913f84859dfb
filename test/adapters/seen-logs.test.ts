import { chmodSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openSeenLogs } from '../../src/adapters/audited-hosts.ts'
import { sha256Hex } from '../../src/domain/digest.ts'
import { ledgerTree } from '../../src/domain/year/log/log-history.ts'
import type { SeenLog } from '../../src/domain/year/log/log-history.ts'
import { rootAt } from '../../src/domain/year/log/merkle-tree.ts'
import { DAMAGED } from '../support/refusals.ts'
import { sampleArchive } from '../support/sample-archive.ts'
import { LOG_NAME } from '../support/signed-log.ts'
import { HOST_POLICY, noteOf } from '../support/static-host.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const archive = sampleArchive(4)
const HOSTS = ['https://dash.example', 'http://127.0.0.1:3000/some/prefix']

function seenAt(size: number, hosts: readonly string[] = HOSTS): SeenLog {
  const tree = ledgerTree(archive.contents.rows.slice(0, size))
  const checkpoint = { origin: LOG_NAME, size, root: rootAt(tree, size) }
  return { note: noteOf(archive, size), hosts, policy: `# trusted\n\n${HOST_POLICY}`, checkpoint, tree }
}

test('a checkpoint is read as it was stored, from one file that begins with its note, and its hosts are known', async () => {
  const folder = temporaryFolder()
  const logs = openSeenLogs(folder)
  expect(await openSeenLogs(join(folder, 'missing')).read(LOG_NAME)).toBeNull()
  let before: SeenLog | null = null
  for (const size of [1, 2, 7]) {
    const seen = seenAt(size)
    expect(await logs.replace(before, seen)).toBe(true)
    expect(await logs.read(LOG_NAME)).toEqual(seen)
    before = seen
  }
  expect(await logs.read('another.example/log')).toBeNull()
  for (const host of HOSTS) expect(await logs.originOf(host)).toBe(LOG_NAME)
  expect(await logs.originOf('https://other.example')).toBeNull()
  expect(readdirSync(folder)).toEqual([`${sha256Hex(LOG_NAME)}.txt`])
  const text = readFileSync(join(folder, `${sha256Hex(LOG_NAME)}.txt`), 'utf8')
  expect(text.startsWith(`${noteOf(archive, 7)}\n`)).toBe(true)
})

test('of two processes that replace the same checkpoint, the second fails and changes nothing', async () => {
  const folder = temporaryFolder()
  const [one, two] = [openSeenLogs(folder), openSeenLogs(folder)]
  expect(await one.replace(null, seenAt(3))).toBe(true)
  expect(await two.replace(null, seenAt(4))).toBe(false)
  expect(await one.replace(seenAt(3), seenAt(5))).toBe(true)
  expect(await two.replace(seenAt(3), seenAt(4))).toBe(false)
  expect(await two.read(LOG_NAME)).toEqual(seenAt(5))
  expect(readdirSync(folder)).toEqual([`${sha256Hex(LOG_NAME)}.txt`])
})

test('two notes that contradict each other are kept as they are, beside the log', async () => {
  const folder = temporaryFolder()
  const logs = openSeenLogs(folder)
  await logs.replace(null, seenAt(3))
  const path = await logs.keepFork(noteOf(archive, 2))
  expect(path.startsWith(join(folder, 'forks'))).toBe(true)
  expect(readFileSync(path, 'utf8')).toBe(noteOf(archive, 2))
  expect(await logs.originOf('https://other.example')).toBeNull()
})

test('a file with any changed line is damaged, and so is a file of another log', async () => {
  const folder = temporaryFolder()
  const logs = openSeenLogs(folder)
  const path = join(folder, `${sha256Hex(LOG_NAME)}.txt`)
  await logs.replace(null, seenAt(3))
  const text = readFileSync(path, 'utf8')
  chmodSync(path, 0o644)
  const lines = text.split('\n')
  for (const [index, line] of lines.entries()) {
    if (line === '' || line.startsWith('host ') || line.startsWith('#')) continue
    for (const changed of [[], [`!${line.slice(1)}`]]) {
      writeFileSync(path, lines.toSpliced(index, 1, ...changed).join('\n'))
      const detail: unknown = expect.stringContaining('remove it to forget this log')
      await expect(logs.read(LOG_NAME), line).rejects.toMatchObject({ ...DAMAGED, detail })
    }
  }
  writeFileSync(path, text)
  writeFileSync(join(folder, `${sha256Hex('other')}.txt`), text)
  await expect(logs.read('other')).rejects.toMatchObject(DAMAGED)
})

test('a file in place of the folder is a refusal that names it', async () => {
  const folder = join(temporaryFolder(), 'file')
  writeFileSync(folder, '')
  chmodSync(folder, 0o444)
  const logs = openSeenLogs(folder)
  const refused = { code: 'storage_unavailable', detail: expect.stringContaining(folder) as string }
  await expect(logs.read(LOG_NAME)).rejects.toMatchObject(refused)
  await expect(logs.replace(null, seenAt(3))).rejects.toMatchObject(refused)
})
