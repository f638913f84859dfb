import type { Archive, ArchiveAuditor, Clock } from '../../domain/ports.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import { unstorageArchive, unstorageRecommendations } from './archive.ts'
import type { OpenArchive, OpenRecommendations } from './archive.ts'
import { streamingAuditor } from './auditor.ts'
import { fileAuditor } from './file-auditor.ts'
import { immutableFiles, requireRoot, requireWritableRoot } from './file-driver.ts'
import { s3Objects } from './s3-driver.ts'

/**
 * The archive at a location. Nothing is asked of the store before its first use.
 *
 * @param fileClock the clock the file system stamps with
 */
export function openArchive(location: StoreLocation, fileClock: Clock = Date.now): OpenArchive {
  if (location.kind === 'file') return fileArchive(location.path, fileClock)
  const { driver, prepare } = s3Objects(location)
  return unstorageArchive(driver, prepare)
}

/**
 * The archive in a folder, which must exist whenever it is used: an unmounted disk is refused, not taken as empty.
 *
 * @param root absolute path
 * @param fileClock the clock the file system stamps with
 */
export function fileArchive(root: string, fileClock: Clock = Date.now): OpenArchive {
  const prepare = async (): Promise<void> => requireWritableRoot(root)
  const archive = unstorageArchive(immutableFiles({ root, fileClock }), prepare)
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

/**
 * The recommendations in the object store at a location. Nothing is asked of the store before its first use; a folder
 * must exist whenever it is used.
 */
export function openRecommendations(location: StoreLocation): OpenRecommendations {
  if (location.kind === 's3') {
    const { driver, prepare } = s3Objects(location)
    return unstorageRecommendations(driver, prepare)
  }
  const root = location.path
  const prepare = async (): Promise<void> => requireWritableRoot(root)
  const store = unstorageRecommendations(immutableFiles({ root, fileClock: Date.now }), prepare)
  return {
    ...store,
    async ping() {
      requireRoot(root)
    },
  }
}

/** The auditor of an archive at a location. It writes nothing, and asks nothing of the store before its first use. */
export function openArchiveAuditor(location: StoreLocation, archive: Archive): ArchiveAuditor {
  return location.kind === 'file' ? fileAuditor(archive, location.path) : streamingAuditor(archive)
}
