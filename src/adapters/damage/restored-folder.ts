import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Remembers a small folder and puts it back as it was, file by file: much less work for the file system than a fresh
 * copy each time. What is there is compared by its bytes, because several changes may share one timestamp.
 *
 * @returns a function that undoes every change made since
 */
export function rememberFolder(folder: string): () => void {
  const remembered = new Map<string, Buffer>()
  for (const { path, isFile } of entriesOf(folder)) if (isFile) remembered.set(path, readFileSync(path))
  const folders = new Set([...remembered.keys()].flatMap((path) => foldersAbove(path, folder)))
  return () => {
    const left = new Set<string>()
    for (const { path, isFile, isFolder } of entriesOf(folder)) {
      const same = isFolder ? folders.has(path) : isFile && remembered.get(path)?.equals(readFileSync(path))
      if (same) left.add(path)
      else rmSync(path, { recursive: true, force: true })
    }
    for (const [path, bytes] of remembered) {
      if (left.has(path)) continue
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, bytes)
    }
  }
}

function entriesOf(folder: string): { path: string; isFile: boolean; isFolder: boolean }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => ({
    path: join(entry.parentPath, entry.name),
    isFile: entry.isFile(),
    isFolder: entry.isDirectory(),
  }))
}

function foldersAbove(path: string, top: string): string[] {
  const folder = dirname(path)
  return folder === top ? [] : [folder, ...foldersAbove(folder, top)]
}
