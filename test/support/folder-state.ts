import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'

/**
 * Everything below a folder: names, kinds, bytes and times; for a test that nothing of it was touched.
 *
 * @param isLeftOut names of files that are not even opened: whoever closes a file gives up every lock its process holds on
 *   it, so that a database which is open here would be taken for one that nobody reads
 */
export function stateOfFolder(
  folder: string,
  isLeftOut: (name: string) => boolean = () => false,
): Record<string, string> {
  const state: Record<string, string> = {}
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (isLeftOut(entry.name)) continue
    const path = join(entry.parentPath, entry.name)
    const { ino, mode, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    const bytes = entry.isFile() ? readFileSync(path).toString('base64') : ''
    state[relative(folder, path)] = [ino, mode, mtimeNs, ctimeNs, bytes].join(' ')
  }
  return state
}

/** Every file below a folder with its bytes. */
export function filesOfFolder(folder: string): Record<string, string> {
  const files: Record<string, string> = {}
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) files[relative(folder, path)] = readFileSync(path).toString('base64')
  }
  return files
}
