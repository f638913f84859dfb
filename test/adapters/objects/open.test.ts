import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { openArchive } from '../../../src/adapters/objects/open.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { archiveContract } from './archive-contract.ts'

archiveContract('files', async () => {
  const root = await temporaryFolder()
  return {
    archive: openArchive({ kind: 'file', path: root }),
    async plant(key, bytes) {
      const path = join(root, key)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, bytes)
    },
  }
})
