import { createStorage } from 'unstorage'
import type { Driver, Storage } from 'unstorage'
import { RANKING_VERSION } from '../../domain/models/schema.ts'
import { isSha256Hex, sha256Hex } from '../../domain/digest.ts'
import type { Clock } from '../../domain/ports.ts'
import type { ChangeToken, Objects, StaticTree } from '../../domain/year/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import { objectPath } from '../../domain/year/examine.ts'
import { formatHead, parseHead } from '../../domain/year/ledger.ts'
import type { Head } from '../../domain/year/ledger.ts'
import { logFileName, parseLogFileName } from '../../domain/year/log/log-history.ts'
import type { LogFile } from '../../domain/year/log/log-history.ts'
import { staticFileHeaders } from '../../domain/year/log/static-layout.ts'
import { immutableFiles, requireWritableRoot, replaceFile } from './file-driver.ts'
import { s3Objects } from './s3-driver.ts'
import type { S3Engine } from './s3-driver.ts'

/** An open object store, which may hold connections. The caller closes it. */
export type OpenObjects = Objects & { close(): Promise<void> }

/**
 * Creates the object store on an unstorage driver: objects under `sha256/<2 hex>/<64 hex>`, heads under `heads/<seq>`,
 * files of the signed log under `tlog/year/<name>` (docs/publishing.md). It uses raw reads and writes only:
 * unstorage's other methods parse JSON and change bytes. Keys are listed by the driver itself: unstorage would return
 * `heads/7?x` as `heads/7`.
 *
 * @param driver must write only where that is safe, and refuse to overwrite an object with other bytes, except for
 *   writes with `replace`, which must be atomic
 * @param prepare resolves when writes are safe
 */
export function unstorageObjects(driver: Driver, prepare: () => Promise<void>): OpenObjects {
  const storage = createStorage({ driver })
  const read = (key: string): Promise<Uint8Array | null> => storage.getItemRaw<Uint8Array>(key)

  const readHead = async (seq: number): Promise<Head | null> => {
    const bytes = await read(headKey(seq))
    if (bytes === null) return null
    const head = parseHead(bytes)
    if (head?.seq !== seq) throw storageDamaged(`head ${seq} is not a valid head file`)
    return head
  }

  const changeTokenOf = async (key: string): Promise<ChangeToken> => {
    const meta = (await storage.getMeta(key, { nativeOnly: true })) as { changeToken?: unknown }
    return typeof meta.changeToken === 'string' ? meta.changeToken : null
  }

  const keys = async (area: 'sha256' | 'heads'): Promise<string[]> => driver.getKeys(area, {})

  return {
    prepare,
    keys,
    logFiles: logFilesIn(storage, driver),
    recommendations: recommendationStore(storage, driver),
    close: async () => storage.dispose(),

    get: async (sha256) => read(objectKey(sha256)),

    headFile: async (seq) => read(headKey(seq)),

    async put(sha256, bytes) {
      if (sha256Hex(bytes) !== sha256)
        throw new Error(`the bytes for object ${sha256} have a different digest`)
      await storage.setItemRaw(objectKey(sha256), bytes)
      const stored = await read(objectKey(sha256))
      if (stored === null || sha256Hex(stored) !== sha256) {
        throw storageDamaged(`object ${sha256} changed while it was written`)
      }
    },

    async newestHead() {
      const names = await keys('heads')
      const seqs = names.flatMap((name) => /^heads\/([1-9]\d{0,14})$/.exec(name)?.[1] ?? []).map(Number)
      if (seqs.length === 0) return null
      return readHead(Math.max(...seqs))
    },

    async putHead(head) {
      const existing = await readHead(head.seq)
      if (existing?.leaf === head.leaf) return
      if (existing) throw storageDamaged(`head ${head.seq} exists with a different leaf`)
      const { seq, leaf } = head
      try {
        await storage.setItemRaw(headKey(seq), new TextEncoder().encode(formatHead(head)))
      } catch (error) {
        // Another run may have written the head of the same entry meanwhile, with another time.
        if ((await readHead(seq))?.leaf !== leaf) throw error
      }
    },

    objectChangeToken: async (sha256) => changeTokenOf(objectKey(sha256)),

    async headChangeToken(newest) {
      const folder = await changeTokenOf('heads')
      if (newest === null || folder === null) return folder
      const file = await changeTokenOf(headKey(newest.seq))
      return file === null ? null : `${folder}/${file}`
    },

    async ping(newest) {
      const isThere = await storage.hasItem(newest === undefined ? 'heads:1' : objectKey(newest))
      if (newest !== undefined && !isThere) throw storageDamaged(`object ${newest} is missing`)
    },
  }
}

/**
 * Returns the key of an object. The digest comes from the ledger or a request, so it is checked before it becomes a
 * path.
 */
function objectKey(sha256: string): string {
  if (!isSha256Hex(sha256))
    throw storageDamaged(`${JSON.stringify(sha256.slice(0, 80))} is not a SHA-256 digest`)
  return objectPath(sha256).replaceAll('/', ':')
}

function headKey(seq: number): string {
  return `heads:${seq}`
}

const LOG = 'tlog:year'

/** Creates the part of the store that holds files of the signed log, under `tlog/year/<name>`. */
function logFilesIn(storage: Storage, driver: Driver): Objects['logFiles'] {
  const keyOf = (file: LogFile): string => `${LOG}:${logFileName(file)}`
  return {
    async list() {
      const keys: string[] = await driver.getKeys(LOG, {})
      return keys.flatMap((key) => parseLogFileName(key.slice(LOG.length + 1)) ?? [])
    },

    get: (file) => storage.getItemRaw<Uint8Array>(keyOf(file)),

    put: (file, bytes) => storage.setItemRaw(keyOf(file), bytes),
  }
}

const CURRENT = 'free-llm:current'
const RUNS = 'free-llm:runs'

/**
 * Stores recommendations: every run under `free-llm/runs/<rankingVersion>`, and the newest also under
 * `free-llm/current`, the only object that is ever replaced (docs/free-models.md).
 */
function recommendationStore(storage: Storage, driver: Driver): Objects['recommendations'] {
  return {
    current: () => storage.getItemRaw<Uint8Array>(CURRENT),

    run: async (rankingVersion) => storage.getItemRaw<Uint8Array>(runKey(rankingVersion)),

    async versions() {
      const keys: string[] = await driver.getKeys(RUNS, {})
      return keys.flatMap((key) => {
        const version = key.slice(key.lastIndexOf('/') + 1)
        return RANKING_VERSION.test(version) && key.endsWith(`runs/${version}`) ? [version] : []
      })
    },

    async put(rankingVersion, bytes) {
      await storage.setItemRaw(runKey(rankingVersion), bytes)
      await storage.setItemRaw(CURRENT, bytes, { replace: true })
    },
  }
}

function runKey(rankingVersion: string): string {
  if (!RANKING_VERSION.test(rankingVersion))
    throw new Error(`${JSON.stringify(rankingVersion.slice(0, 80))} is not a ranking version`)
  return `${RUNS}:${rankingVersion}`
}

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
  return unstorageObjects(immutableFiles({ root, fileClock, isDurable }), async () =>
    requireWritableRoot(root),
  )
}

/**
 * Opens a tree of static files on the drivers of the object store. A folder must exist before it is used. Every user may
 * read new files; a bucket stores each file with the headers of {@link staticFileHeaders}.
 */
export function openStaticTree(location: StoreLocation): StaticTree & { close(): Promise<void> } {
  const { driver, replace } = location.kind === 'file' ? folderOf(location.path) : s3Objects(location)
  const keyOf = (path: string): string => path.replaceAll('/', ':')
  return {
    get: async (path) => (await driver.getItemRaw?.(keyOf(path), {})) as Uint8Array | null,
    async put(path, bytes) {
      await driver.setItemRaw?.(keyOf(path), bytes, { headers: staticFileHeaders(path) })
    },
    replace: (path, before, bytes) => replace(keyOf(path), before, bytes, staticFileHeaders(path)),
    close: async () => {
      await driver.dispose?.()
    },
  }
}

function folderOf(root: string): Pick<S3Engine, 'driver' | 'replace'> {
  return {
    driver: immutableFiles({ root, fileClock: Date.now, isPublic: true }),
    replace: async (key, before, bytes) => replaceFile(root, key, before, bytes),
  }
}
