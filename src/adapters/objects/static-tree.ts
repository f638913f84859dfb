import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock, StaticTree } from '../../domain/ports.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import { staticFileHeaders } from '../../domain/year/log/static-layout.ts'
import {
  TEMPORARY_PREFIX,
  errorCode,
  immutableFiles,
  isFolder,
  replaceFile,
  requireWritableRoot,
  unlinkIfPresent,
} from './file-driver.ts'
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
    async removeUnfinished() {
      if (location.kind === 'file') removeUnfinished(location.path, fileClock())
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

/** The folders of an export, besides its root. Other folders in a target belong to others. */
const TREE_FOLDERS = ['objects', 'tlog', 'assets', 'year']

/** Age of a temporary file that no running writer has: writing one takes seconds. */
const UNFINISHED_MS = 3_600_000

/**
 * Removes the temporary files of killed writers: of processes that do not run here, or old ones. Their names begin with
 * the process id, and this process writes nothing yet.
 *
 * @param now by the clock that sets the file system's timestamps
 */
function removeUnfinished(root: string, now: number): void {
  for (const folder of ['', ...TREE_FOLDERS]) {
    const path = join(root, folder)
    if (!isFolder(path)) continue
    const entries = readdirSync(path, { recursive: folder !== '', withFileTypes: true })
    for (const { name, parentPath } of entries) {
      if (!name.startsWith(TEMPORARY_PREFIX)) continue
      const file = join(parentPath, name)
      const writer = Number.parseInt(name.slice(TEMPORARY_PREFIX.length), 10)
      const stat = lstatSync(file, { throwIfNoEntry: false })
      if (!stat?.isFile()) continue
      if (writer === process.pid || !isRunning(writer) || now - stat.mtimeMs > UNFINISHED_MS)
        unlinkIfPresent(file)
    }
  }
}

function isRunning(pid: number): boolean {
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) !== 'ESRCH'
  }
}
