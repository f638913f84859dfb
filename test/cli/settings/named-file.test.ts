import { execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readNamedFile } from '../../../src/cli/settings/named-file.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

async function newPipe(): Promise<string> {
  const path = join(await temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  return path
}

describe('a named file', () => {
  test('a regular file is read whole', async () => {
    const path = join(await temporaryFolder(), 'file')
    const bytes = Buffer.alloc(200_000, 'x')
    writeFileSync(path, bytes)
    expect(readNamedFile(path).equals(bytes)).toBe(true)
  })

  test('a pipe is read until its writer closes it, however slow the writer is', async () => {
    const path = await newPipe()
    const writer = spawn('sh', ['-c', `{ printf one; sleep 0.2; printf two; } > '${path}'`])
    onTestFinished(() => void writer.kill())
    expect(readNamedFile(path).toString()).toBe('onetwo')
  })

  test('a pipe without a writer is refused instead of waited for', async () => {
    const path = await newPipe()
    expect(() => readNamedFile(path)).toThrow('nothing is written to the pipe')
  })

  test('a device without data is empty', () => {
    expect(readNamedFile('/dev/null').byteLength).toBe(0)
  })

  test('a missing file and a folder are errors of the system', async () => {
    const folder = await temporaryFolder()
    expect(() => readNamedFile(join(folder, 'missing'))).toThrow('ENOENT')
    expect(() => readNamedFile(folder)).toThrow('EISDIR')
  })
})
