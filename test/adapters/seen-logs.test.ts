import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openSeenLogs } from '../../src/adapters/seen-logs.ts'
import { sha256Hex } from '../../src/domain/digest.ts'
import { ledgerTree } from '../../src/domain/year/log/log-history.ts'
import type { SeenLog } from '../../src/domain/year/log/log-history.ts'
import { rootAt } from '../../src/domain/year/log/merkle-tree.ts'
import { sampleArchive } from '../support/sample-archive.ts'
import { LOG_NAME } from '../support/signed-log.ts'
import { HOST_POLICY, noteOf } from '../support/static-host.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const archive = sampleArchive(300)

function seenAt(size: number): Omit<SeenLog, 'version'> {
  const tree = ledgerTree(archive.contents.rows.slice(0, size))
  const checkpoint = { origin: LOG_NAME, size, root: rootAt(tree, size) }
  return { note: noteOf(archive, size), policy: HOST_POLICY, checkpoint, tree }
}

describe('seen logs', () => {
  test('a log that was not seen is null, also without the folder', async () => {
    const folder = await temporaryFolder()
    expect(await openSeenLogs(folder).read(LOG_NAME)).toBeNull()
    expect(await openSeenLogs(join(folder, 'missing')).read(LOG_NAME)).toBeNull()
  })

  test('a checkpoint is read as it was stored, with its tree', async () => {
    const logs = openSeenLogs(await temporaryFolder())
    for (const [version, size] of [3, 256, 257, 300].entries()) {
      expect(await logs.replace(version, seenAt(size))).toBe(true)
      expect(await logs.read(LOG_NAME)).toEqual({ ...seenAt(size), version: version + 1 })
    }
    expect(await logs.read('another.example/log')).toBeNull()
  })

  test('of two processes that replace the same version, the second fails and changes nothing', async () => {
    const folder = await temporaryFolder()
    const [one, two] = [openSeenLogs(folder), openSeenLogs(folder)]
    expect(await one.replace(0, seenAt(3))).toBe(true)
    expect(await two.replace(0, seenAt(4))).toBe(false)
    expect(await one.replace(1, seenAt(5))).toBe(true)
    expect(await two.replace(1, seenAt(4))).toBe(false)
    expect(await two.read(LOG_NAME)).toMatchObject({ version: 2, checkpoint: { size: 5 } })
    expect(readdirSync(join(folder, sha256Hex(LOG_NAME))).sort()).toEqual(['1', '2'])
  })

  test('a process that read a version long ago changes nothing, although its number is free again', async () => {
    const folder = await temporaryFolder()
    const [slow, other] = [openSeenLogs(folder), openSeenLogs(folder)]
    for (const version of [0, 1, 2, 3]) await other.replace(version, seenAt(3 + version))
    expect(readdirSync(join(folder, sha256Hex(LOG_NAME))).sort()).toEqual(['3', '4'])
    expect(await slow.replace(1, seenAt(9))).toBe(false)
    expect(readdirSync(join(folder, sha256Hex(LOG_NAME))).sort()).toEqual(['3', '4'])
    expect(await slow.read(LOG_NAME)).toMatchObject({ version: 4, checkpoint: { size: 6 } })
  })

  test('an unfinished version of a killed process is ignored, and old versions are removed', async () => {
    const folder = await temporaryFolder()
    const logs = openSeenLogs(folder)
    await logs.replace(0, seenAt(3))
    mkdirSync(join(folder, sha256Hex(LOG_NAME), '.writing-1-x'))
    writeFileSync(join(folder, sha256Hex(LOG_NAME), '.writing-1-x', 'latest'), 'half')
    for (const version of [1, 2, 3]) await logs.replace(version, seenAt(3 + version))
    expect(await logs.read(LOG_NAME)).toMatchObject({ version: 4, checkpoint: { size: 6 } })
    expect(readdirSync(join(folder, sha256Hex(LOG_NAME))).sort()).toEqual(['.writing-1-x', '3', '4'])
  })

  test('a file in place of the folder is a refusal that names it', async () => {
    const folder = join(await temporaryFolder(), 'file')
    writeFileSync(folder, '')
    chmodSync(folder, 0o444)
    const logs = openSeenLogs(folder)
    const refused = { code: 'storage_unavailable', detail: expect.stringContaining(folder) as string }
    await expect(logs.read(LOG_NAME)).rejects.toMatchObject(refused)
    await expect(logs.replace(0, seenAt(3))).rejects.toMatchObject(refused)
  })
})
