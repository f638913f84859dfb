import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { dash, temporaryFolder } from './dash.ts'
import { logSettings } from './signed-log.ts'

/**
 * A disk with only the guarantees of POSIX. Written data is durable after an fsync of the file, and a name is added to or
 * removed from a folder after an fsync of that folder. Until then each write and each name may have reached the disk or
 * not, in any order; a write may have reached it in part.
 */

/** The possible states of an unsynced write. `zeroed`: the file has grown, but without its bytes. */
type Fate = 'kept' | 'dropped' | 'torn' | 'zeroed'

type PendingData = { do: 'write'; offset: number; bytes: Buffer } | { do: 'truncate'; size: number }

interface DiskFile {
  durable: Buffer
  pending: PendingData[]
}

interface DiskFolder {
  /** Each name's states that may be on the disk, oldest first; one alone is certain. null: not there. */
  histories: Map<string, (DiskNode | null)[]>
}

type DiskNode = { file: DiskFile } | { folder: DiskFolder }

/** Decides which changes reached the disk. */
interface Survival {
  fateOf: (pending: PendingData) => Fate
  /** Which state of a name, an index into its history. */
  ageOf: (history: (DiskNode | null)[]) => number
}

/** The files of a state after a power loss, by path; null is a folder. */
export type DiskState = Map<string, Buffer | null>

/** One possible state after a power loss, and the standard output before it. */
export interface PossibleState {
  /** Number of completed operations. */
  after: number
  how: string
  stdout: string
  state: DiskState
}

export class PowerLossDisk {
  readonly #root: DiskFolder
  readonly #open = new Map<number, { node: DiskNode; position: number }>()
  #stdout = ''

  /** @param folder the folder before the recorded run, completely synced */
  constructor(folder: string) {
    this.#root = readFolder(folder)
  }

  /** Does one operation of the recorded run, in memory. */
  apply(operation: FileOperation): void {
    switch (operation.do) {
      case 'say':
        this.#stdout += operation.text
        return
      case 'create':
        if (!this.#find(operation.path))
          this.#name(operation.path, { file: { durable: Buffer.alloc(0), pending: [] } })
        return
      case 'open': {
        const node = this.#require(operation.path)
        if (operation.truncates && 'file' in node) node.file.pending.push({ do: 'truncate', size: 0 })
        this.#open.set(operation.descriptor, { node, position: 0 })
        return
      }
      case 'close':
        this.#open.delete(operation.descriptor)
        return
      case 'write': {
        const { file, opened } = this.#openFile(operation.descriptor)
        const offset = operation.offset ?? opened.position
        file.pending.push({ do: 'write', offset, bytes: operation.bytes })
        if (operation.offset === null) opened.position += operation.bytes.length
        return
      }
      case 'truncate':
        this.#openFile(operation.descriptor).file.pending.push({ do: 'truncate', size: operation.size })
        return
      case 'sync':
        this.#sync(operation.descriptor)
        return
      case 'link':
        this.#name(operation.to, this.#require(operation.from))
        return
      case 'rename': {
        const node = this.#require(operation.from)
        this.#name(operation.from, null)
        this.#name(operation.to, node)
        return
      }
      case 'unlink':
        this.#name(operation.path, null)
        return
      case 'mkdir':
        this.#name(operation.path, { folder: { histories: new Map() } })
    }
  }

  /** The files as the running system sees them. */
  visible(): DiskState {
    return this.#survive(ALL)
  }

  /**
   * States a power loss at this moment could leave: nothing unsynced or everything; all but one thing, each in every
   * way it can fail; nothing but one thing; and random choices among everything.
   *
   * @param random numbers from 0 to below 1
   */
  *possibleStates(after: number, random: () => number, randomStates: number): Generator<PossibleState> {
    const state = (how: string, survival: Survival): PossibleState => ({
      after,
      how,
      stdout: this.#stdout,
      state: this.#survive(survival),
    })
    yield state('nothing unsynced survives', NONE)
    yield state('everything survives', ALL)
    yield state('names survive, data does not', { ...ALL, fateOf: NONE.fateOf })
    yield state('data survives, names do not', { ...NONE, fateOf: ALL.fateOf })
    const { data, histories } = this.#pending()
    for (const [place, only] of data) {
      for (const fate of ['dropped', 'torn', 'zeroed'] as const) {
        yield state(`${place} ${fate}`, { ...ALL, fateOf: (each) => (each === only ? fate : 'kept') })
      }
      yield state(`${place} alone`, { ...NONE, fateOf: (each) => (each === only ? 'kept' : 'dropped') })
    }
    for (const [place, only] of histories) {
      for (let age = 0; age < only.length - 1; age += 1) {
        const ageOf: Survival['ageOf'] = (each) => (each === only ? age : each.length - 1)
        yield state(`the name ${place} as it was ${only.length - 1 - age} changes ago`, { ...ALL, ageOf })
      }
      yield state(`the name ${place} alone`, {
        ...NONE,
        ageOf: (each) => (each === only ? each.length - 1 : 0),
      })
    }
    if (data.length + histories.length < 2) return
    for (let index = 0; index < randomStates; index += 1) yield state('a random choice', chance(random))
  }

  #pending(): { data: [string, PendingData][]; histories: [string, (DiskNode | null)[]][] } {
    const data: [string, PendingData][] = []
    const histories: [string, (DiskNode | null)[]][] = []
    const seen = new Set<DiskFile>()
    const visit = (folder: DiskFolder, path: string): void => {
      for (const [name, history] of folder.histories) {
        const place = join(path, name)
        if (history.length > 1) histories.push([place, history])
        for (const node of history) {
          if (node && 'folder' in node) visit(node.folder, place)
          if (!node || !('file' in node) || seen.has(node.file)) continue
          seen.add(node.file)
          node.file.pending.forEach((each, index) => data.push([`${each.do} ${index} of ${place}`, each]))
        }
      }
    }
    visit(this.#root, '')
    return { data, histories }
  }

  #survive({ fateOf, ageOf }: Survival): DiskState {
    const state: DiskState = new Map()
    const visit = (folder: DiskFolder, path: string): void => {
      for (const [name, history] of folder.histories) {
        const node = history[ageOf(history)]
        const place = join(path, name)
        if (!node) continue
        state.set(place, 'file' in node ? contentOf(node.file, fateOf) : null)
        if ('folder' in node) visit(node.folder, place)
      }
    }
    visit(this.#root, '')
    return state
  }

  #sync(descriptor: number): void {
    const node = this.#open.get(descriptor)?.node
    if (!node) throw new Error(`descriptor ${descriptor} was synced but never opened`)
    if ('file' in node) {
      node.file.durable = contentOf(node.file, () => 'kept')
      node.file.pending = []
      return
    }
    for (const [name, history] of node.folder.histories) {
      const last = history.at(-1) ?? null
      if (last) node.folder.histories.set(name, [last])
      else node.folder.histories.delete(name)
    }
  }

  #openFile(descriptor: number): { file: DiskFile; opened: { position: number } } {
    const opened = this.#open.get(descriptor)
    if (!opened || !('file' in opened.node)) throw new Error(`descriptor ${descriptor} is no open file`)
    return { file: opened.node.file, opened }
  }

  #find(path: string): DiskNode | null {
    let node: DiskNode = { folder: this.#root }
    for (const name of path.split('/').filter((part) => part !== '')) {
      const next: DiskNode | null | undefined =
        'folder' in node ? node.folder.histories.get(name)?.at(-1) : undefined
      if (!next) return null
      node = next
    }
    return node
  }

  #require(path: string): DiskNode {
    const node = this.#find(path)
    if (!node) throw new Error(`${path} is used but was never made`)
    return node
  }

  #name(path: string, node: DiskNode | null): void {
    const parent = this.#require(dirname(path) === '.' ? '' : dirname(path))
    if (!('folder' in parent)) throw new Error(`${dirname(path)} is no folder`)
    const { histories } = parent.folder
    const history = histories.get(basename(path)) ?? [null]
    histories.set(basename(path), [...history, node])
  }
}

const ALL: Survival = { fateOf: () => 'kept', ageOf: (history) => history.length - 1 }

const NONE: Survival = { fateOf: () => 'dropped', ageOf: () => 0 }

function chance(random: () => number): Survival {
  const fates = new Map<PendingData, Fate>()
  const ages = new Map<(DiskNode | null)[], number>()
  const fate = (): Fate =>
    (['kept', 'kept', 'kept', 'dropped', 'dropped', 'torn', 'zeroed'] as const)[Math.floor(random() * 7)] ??
    'kept'
  return {
    fateOf: (pending) => remember(fates, pending, fate),
    ageOf: (history) => remember(ages, history, () => Math.floor(random() * history.length)),
  }
}

function remember<Key, Value>(known: Map<Key, Value>, key: Key, make: () => Value): Value {
  const value = known.get(key) ?? make()
  known.set(key, value)
  return value
}

const SECTOR = 512

function contentOf({ durable, pending }: DiskFile, fateOf: Survival['fateOf']): Buffer {
  let content = Buffer.from(durable)
  const resize = (size: number): void => {
    const grown = Buffer.alloc(size)
    content.copy(grown)
    content = grown
  }
  for (const each of pending) {
    const fate = fateOf(each)
    if (fate === 'dropped') continue
    if (each.do === 'truncate') {
      resize(each.size)
      continue
    }
    const end = each.offset + each.bytes.length
    const grows = end > content.length
    if (grows) resize(end)
    if (fate === 'zeroed') {
      // A write that did not happen does not lose earlier bytes.
      continue
    }
    const whole = fate === 'kept' ? each.bytes.length : tornLength(each.bytes.length)
    each.bytes.copy(content, each.offset, 0, whole)
  }
  return content
}

/** Half of a write: whole sectors where it has several. */
function tornLength(length: number): number {
  const half = Math.floor(length / 2)
  return half >= SECTOR ? half - (half % SECTOR) : half
}

function readFolder(path: string): DiskFolder {
  const histories = new Map<string, (DiskNode | null)[]>()
  for (const name of readdirSync(path)) {
    const inner = join(path, name)
    const node: DiskNode = statSync(inner).isDirectory()
      ? { folder: readFolder(inner) }
      : { file: { durable: readFileSync(inner), pending: [] } }
    histories.set(name, [node])
  }
  return { histories }
}

/** The files of a real folder, as a state. */
export function stateOf(folder: string): DiskState {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return new Map(
    names.map((name) => {
      const path = join(folder, name)
      return [name, statSync(path).isDirectory() ? null : readFileSync(path)]
    }),
  )
}

/** Makes a state real in a folder that does not exist yet. */
export function materialise(state: DiskState, folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const [path, bytes] of state) {
    if (bytes === null) mkdirSync(join(folder, path))
    else writeFileSync(join(folder, path), bytes)
  }
}

/** Equal for equal states. */
export function fingerprintOf(state: DiskState): string {
  const hash = createHash('sha256')
  for (const [path, bytes] of [...state].sort(([left], [right]) => (left < right ? -1 : 1))) {
    hash.update(`${path}\0${bytes === null ? 'folder' : bytes.length}\0`)
    if (bytes !== null) hash.update(bytes)
  }
  return hash.digest('hex')
}

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
  /** Text was written to standard output. */
  | { do: 'say'; text: string }

const CALLS = (
  'openat close write writev pwrite64 pwritev ftruncate fallocate fsync fdatasync link unlink rename mkdir rmdir lseek ' +
  'copy_file_range sendfile linkat unlinkat renameat renameat2 mkdirat truncate sendto sendmsg'
).split(' ')

/**
 * Runs the program and gives the operations of its main thread on the files below a folder, in order, with every byte
 * that was written. Paths are relative to the folder.
 *
 * @throws Error if the run fails or makes a call that this parser does not know
 */
export async function recordOperations(args: readonly string[], folder: string): Promise<FileOperation[]> {
  const logFile = join(temporaryFolder(), 'strace.log')
  // Log everything in hexadecimal and without limit, so that the replay is exact.
  const trace = ['-qq', '-xx', '-y', '-s', '100000000', '-o', logFile, '-e', `trace=${CALLS.join(',')}`]
  const run = await dash(args, { env: logSettings(folder), wrapper: ['strace', ...trace] })
  if (run.code !== 0) throw new Error(`the recorded run ended with ${run.code}: ${run.stderr}`)
  return readFileSync(logFile, 'utf8')
    .split('\n')
    .flatMap((line) => parseCall(line, folder))
}

function parseCall(line: string, folder: string): FileOperation[] {
  const [, call = '', argumentsText = '', resultText = ''] = /^(\w+)\((.*)\) += (-?\d+|\?)/.exec(line) ?? []
  const result = Number(resultText)
  // A failed call changed nothing.
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

/** Creating a file by opening it is two operations: its entry in the folder, and the descriptor. */
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
