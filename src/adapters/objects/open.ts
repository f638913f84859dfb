import type { Objects, Auditors, Clock } from '../../domain/ports.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import { unstorageObjects } from './objects.ts'
import type { OpenObjects } from './objects.ts'
import { streamingAuditor } from './auditor.ts'
import { fileAuditor } from './file-auditor.ts'
import { immutableFiles, requireRoot, requireWritableRoot } from './file-driver.ts'
import { s3Objects } from './s3-driver.ts'

/**
 * The object store at a location. Nothing is asked of the store before its first use.
 *
 * @param fileClock the clock the file system stamps with
 */
export function openObjects(location: StoreLocation, fileClock: Clock = Date.now): OpenObjects {
  if (location.kind === 'file') return fileObjects(location.path, fileClock)
  const { driver, prepare } = s3Objects(location)
  return unstorageObjects(driver, prepare)
}

/**
 * The object store in a folder, which must exist whenever it is used: an unmounted disk is refused, not taken as empty.
 *
 * @param root absolute path
 * @param fileClock the clock the file system stamps with
 */
export function fileObjects(root: string, fileClock: Clock = Date.now): OpenObjects {
  const prepare = async (): Promise<void> => requireWritableRoot(root)
  const objects = unstorageObjects(immutableFiles({ root, fileClock }), prepare)
  const ping = async (): Promise<void> => requireRoot(root)
  return {
    ...objects,
    ping,
    recommendations: { ...objects.recommendations, ping },
  }
}

/** The auditor of an object store at a location. It writes nothing, and asks nothing of the store before its first use. */
export function openObjectsAuditor(location: StoreLocation, objects: Objects): Auditors['objects'] {
  return location.kind === 'file' ? fileAuditor(objects, location.path) : streamingAuditor(objects)
}
