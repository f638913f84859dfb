import type { Clock } from '../../domain/ports.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import { unstorageObjects } from './objects.ts'
import type { OpenObjects } from './objects.ts'
import { immutableFiles, requireRoot, requireWritableRoot } from './file-driver.ts'
import { s3Objects } from './s3-driver.ts'

/**
 * Opens the object store at a location. The store is not accessed before its first use.
 *
 * @param isDurable false for a folder that is deleted when the process ends: a power cut can lose its files
 */
export function openObjects(location: StoreLocation, isDurable = true): OpenObjects {
  if (location.kind === 'file') return fileObjects(location.path, Date.now, isDurable)
  const { driver, prepare } = s3Objects(location)
  return unstorageObjects(driver, prepare)
}

/**
 * Opens the object store in a folder. The folder must exist at every use: an unmounted disk is refused, not read as
 * empty.
 *
 * @param root absolute path
 * @param fileClock the clock that sets the file system's timestamps
 * @param isDurable false for a folder that is deleted when the process ends: a power cut can lose its files
 */
export function fileObjects(root: string, fileClock: Clock = Date.now, isDurable = true): OpenObjects {
  const prepare = async (): Promise<void> => requireWritableRoot(root)
  const objects = unstorageObjects(immutableFiles({ root, fileClock, isDurable }), prepare)
  const ping = async (): Promise<void> => requireRoot(root)
  return {
    ...objects,
    ping: async (newest) => {
      await ping()
      await objects.ping(newest)
    },
    recommendations: { ...objects.recommendations, ping },
  }
}
