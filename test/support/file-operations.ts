import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { dash, temporaryFolder } from './dash.ts'

/** One operation of a run on the files below a folder, as its main thread did it. */
export type FileOperation =
  | { do: 'create'; path: string }
  | { do: 'open'; path: string; descriptor: number; truncates: boolean }
  | { do: 'write'; descriptor: number; offset: number | null; bytes: Buffer }
  | { do: 'truncate'; descriptor: number; size: number }
  | { do: 'sync'; descriptor: number }
  | { do: 'close'; descriptor: number }
  | { do: 'link'; from: string; to: string }
  | { do: 'rename'; from: string; to: string }
  | { do: 'unlink'; path: string }
  | { do: 'mkdir'; path: string }
  /** Something was said on standard output. */
  | { do: 'say'; text: string }

const CALLS = (
  'openat close write writev pwrite64 pwritev ftruncate fallocate fsync fdatasync link unlink rename mkdir rmdir lseek ' +
  'copy_file_range sendfile linkat unlinkat renameat renameat2 mkdirat truncate sendto sendmsg'
).split(' ')

/**
 * Runs the program and gives the operations of its main thread on the files below a folder, in order, with every byte
 * that was written. Paths are relative to the folder.
 *
 * @throws Error when the run fails or does something this reading of the log does not know
 */
export async function recordOperations(args: readonly string[], folder: string): Promise<FileOperation[]> {
  const logFile = join(temporaryFolder(), 'strace.log')
  // Everything in hexadecimal, without limit: a log that left out bytes would replay another run.
  const trace = ['-qq', '-xx', '-y', '-s', '100000000', '-o', logFile, '-e', `trace=${CALLS.join(',')}`]
  const run = await dash(args, { under: ['strace', ...trace] })
  if (run.code !== 0) throw new Error(`the recorded run ended with ${run.code}: ${run.stderr}`)
  return readFileSync(logFile, 'utf8')
    .split('\n')
    .flatMap((line) => parseCall(line, folder))
}

function parseCall(line: string, folder: string): FileOperation[] {
  const [, call = '', argumentsText = '', resultText = ''] = /^(\w+)\((.*)\) += (-?\d+|\?)/.exec(line) ?? []
  const result = Number(resultText)
  // What failed changed nothing.
  if (call === '' || !(result >= 0)) return []
  const inside = [...argumentsText.matchAll(/[<"]((?:\\x[0-9a-f]{2})+)[>"]/g)]
    .map(([, hex = '']) => unhex(hex).toString())
    .filter((path) => path === folder || path.startsWith(`${folder}/`))
    .map((path) => path.slice(folder.length + 1))
  const [path = '', to = ''] = inside
  const descriptor = Number(/^\d+/.exec(argumentsText)?.[0] ?? -1)
  if (call === 'openat') return inside.length > 0 ? openings(argumentsText, inside.at(-1) ?? '', result) : []
  if (call === 'write' && descriptor === 1) return [{ do: 'say', text: bytesOf(argumentsText).toString() }]
  if (inside.length === 0) return []
  switch (call) {
    case 'close':
      return [{ do: 'close', descriptor }]
    case 'write':
    case 'pwrite64': {
      const bytes = bytesOf(argumentsText)
      if (bytes.length < result) throw new Error(`strace left out bytes of ${line.slice(0, 200)}`)
      const offset = call === 'write' ? null : Number(/, (\d+)$/.exec(argumentsText)?.[1])
      return [{ do: 'write', descriptor, offset, bytes: bytes.subarray(0, result) }]
    }
    case 'ftruncate':
      return [{ do: 'truncate', descriptor, size: Number(/, (\d+)$/.exec(argumentsText)?.[1]) }]
    case 'fsync':
    case 'fdatasync':
      return [{ do: 'sync', descriptor }]
    case 'link':
      return [{ do: 'link', from: path, to }]
    case 'rename':
      return [{ do: 'rename', from: path, to }]
    case 'unlink':
      return [{ do: 'unlink', path }]
    case 'mkdir':
      return [{ do: 'mkdir', path }]
    case 'lseek':
      return []
    default:
      throw new Error(`no reading of ${line.slice(0, 200)}`)
  }
}

/** A file that is made by being opened is two operations: its entry in the folder, and the descriptor. */
function openings(argumentsText: string, path: string, descriptor: number): FileOperation[] {
  const opened: FileOperation = {
    do: 'open',
    path,
    descriptor,
    truncates: argumentsText.includes('O_TRUNC'),
  }
  return argumentsText.includes('O_CREAT') ? [{ do: 'create', path }, opened] : [opened]
}

/** The bytes of the quoted argument of a write. */
function bytesOf(argumentsText: string): Buffer {
  return unhex(/"((?:\\x[0-9a-f]{2})*)"/.exec(argumentsText)?.[1] ?? '')
}

function unhex(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex')
}
