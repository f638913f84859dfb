import { createStorage } from 'unstorage'
import type { Archive, Clock } from '../../domain/ports.ts'
import { unstorageArchive } from './archive.ts'
import { immutableFiles, requireRoot } from './file-driver.ts'

/**
 * The archive in a folder, which must exist whenever it is used: an unmounted disk is refused, not taken as empty.
 *
 * @param root absolute path
 * @param fileClock the clock the file system stamps with
 */
export function fileArchive(root: string, fileClock: Clock = Date.now): Archive {
  const archive = unstorageArchive(createStorage({ driver: immutableFiles({ root, fileClock }) }))
  return {
    ...archive,
    async ping() {
      requireRoot(root)
    },
    async newestHead() {
      requireRoot(root)
      return archive.newestHead()
    },
  }
}
