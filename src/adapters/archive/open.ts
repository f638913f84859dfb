import { createStorage } from 'unstorage'
import type { Archive } from '../../domain/ports.ts'
import { unstorageArchive } from './archive.ts'
import { immutableFiles, requireRoot } from './file-driver.ts'

/**
 * The archive in a folder, which must exist whenever it is used: an unmounted disk is refused, not taken as empty.
 *
 * @param root absolute path
 */
export function fileArchive(root: string): Archive {
  const archive = unstorageArchive(createStorage({ driver: immutableFiles(root) }))
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
