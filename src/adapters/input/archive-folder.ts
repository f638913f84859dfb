import { constants } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { ArchiveFolder } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { MANIFESTS_FILE } from '../../domain/year/legacy-import.ts'
import { lineFile } from './line-files.ts'

/** The folder of an older archive on disk. Symbolic links may lead to other places of the folder, never out of it. */
export function archiveFolder(path: string): ArchiveFolder {
  return {
    manifests: lineFile(join(path, MANIFESTS_FILE)),
    async read(file, byteSize) {
      try {
        return await readWithin(path, file, byteSize)
      } catch (error) {
        throw unreadable(file, error)
      }
    },
  }
}

async function readWithin(folder: string, file: string, byteSize: number): Promise<Uint8Array> {
  const root = await realpath(folder)
  const path = await realpath(join(root, file))
  if (!path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`))
    throw new Error('it lies outside the folder')
  // Without O_NONBLOCK a pipe in the file's place would block for ever.
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) throw new Error('it is not a regular file')
    if (stat.size !== byteSize) throw new Error(`it has ${stat.size} bytes instead of ${byteSize}`)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}

function unreadable(file: string, error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const code = 'code' in error ? error.code : null
  const why = code === 'ENOENT' || code === 'ENOTDIR' ? 'there is no such file' : error.message
  return new Refusal('input_unreadable', `file ${JSON.stringify(file)}: ${why}`, { cause: error })
}
