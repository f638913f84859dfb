import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'

/** Everything below a folder: names, kinds, bytes and times; for a test that nothing of it was touched. */
export function stateOfFolder(folder: string): Record<string, string> {
  const state: Record<string, string> = {}
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
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
