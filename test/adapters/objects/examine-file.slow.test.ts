import fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fileReader } from '../../../src/adapters/objects/examine-file.ts'
import { spyOnFiles, temporaryFolder } from '../../support/temporary-folder.ts'

/** Initial size of a reader's buffer. */
const BUFFER_BYTES = 1024 * 1024

test.each([1, 2, 700_000])(
  'a file that grows by %i bytes during the read is never returned in part',
  async (more) => {
    const path = join(await temporaryFolder(), 'object')
    fs.writeFileSync(path, Buffer.alloc(BUFFER_BYTES - 1, 'a'))
    spyOnFiles('readSync').mockImplementationOnce((...args: Parameters<typeof fs.readSync>) => {
      fs.appendFileSync(path, Buffer.alloc(more, 'b'))
      return fs.readSync(...args)
    })
    const { found, ...details } = fileReader()(path)
    expect(found).toBe('something else')
    expect(details).toEqual({ why: 'read error: it grew while it was being read' })
  },
)
