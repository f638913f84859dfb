import type { Clock, StaticTree } from '../../domain/ports.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import { staticFileHeaders } from '../../domain/year/log/static-layout.ts'
import { immutableFiles, requireWritableRoot } from './file-driver.ts'
import { s3Objects } from './s3-driver.ts'

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
  const { driver, prepare } =
    location.kind === 'file'
      ? {
          driver: immutableFiles({ root: location.path, fileClock, isPublic: true }),
          prepare: async (): Promise<void> => requireWritableRoot(location.path),
        }
      : s3Objects(location)
  const keyOf = (path: string): string => path.replaceAll('/', ':')
  const write = async (path: string, bytes: Uint8Array, replace: boolean): Promise<void> => {
    await prepare()
    await driver.setItemRaw?.(keyOf(path), bytes, { replace, headers: staticFileHeaders(path) })
  }
  return {
    get: async (path) => (await driver.getItemRaw?.(keyOf(path), {})) as Uint8Array | null,
    put: (path, bytes) => write(path, bytes, false),
    replace: (path, bytes) => write(path, bytes, true),
    list: async (folder) => driver.getKeys(keyOf(folder), {}),
    close: async () => {
      await driver.dispose?.()
    },
  }
}
