import type { Clock, StaticTree } from '../../domain/ports.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import { staticFileHeaders } from '../../domain/year/log/static-layout.ts'
import { immutableFiles, replaceFile, requireWritableRoot } from './file-driver.ts'
import { s3Objects } from './s3-driver.ts'
import type { S3Engine } from './s3-driver.ts'

/**
 * Opens a tree of static files on the drivers of the object store. A folder must exist before it is used. Every user may
 * read new files; a bucket stores each file with the headers of {@link staticFileHeaders}.
 *
 * @param fileClock the clock that sets the file system's timestamps
 */
export function openStaticTree(
  location: StoreLocation,
  fileClock: Clock = Date.now,
): StaticTree & { close(): Promise<void> } {
  const { driver, prepare, replace } =
    location.kind === 'file' ? folderOf(location.path, fileClock) : s3Objects(location)
  const keyOf = (path: string): string => path.replaceAll('/', ':')
  return {
    get: async (path) => (await driver.getItemRaw?.(keyOf(path), {})) as Uint8Array | null,
    async put(path, bytes) {
      await prepare()
      await driver.setItemRaw?.(keyOf(path), bytes, { headers: staticFileHeaders(path) })
    },
    async replace(path, before, bytes) {
      await prepare()
      return replace(keyOf(path), before, bytes, staticFileHeaders(path))
    },
    close: async () => {
      await driver.dispose?.()
    },
  }
}

function folderOf(root: string, fileClock: Clock): Pick<S3Engine, 'driver' | 'prepare' | 'replace'> {
  return {
    driver: immutableFiles({ root, fileClock, isPublic: true }),
    prepare: async () => requireWritableRoot(root),
    replace: async (key, before, bytes) => replaceFile(root, key, before, bytes),
  }
}
