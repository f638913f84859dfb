import { defineDriver } from 'unstorage'
import type { Driver } from 'unstorage'
import { StorageFault, storageDamaged } from '../../domain/refusal.ts'
import { S3_RETRY_POLICY, conditionalWriteRefusal, parseListing, s3Client } from './s3-request.ts'
import type { S3Client, S3Location, S3Page, S3RetryPolicy } from './s3-request.ts'

/** Object that is written to each bucket and never read, to test whether the server refuses a second write. */
const PROBE_KEY = 'probe/conditional-write'
const PROBE_BYTES = new TextEncoder().encode('dash writes this twice, and the second time must be refused\n')

interface WriteOptions {
  replace?: boolean
  headers?: Record<string, string>
}

/** An unstorage driver for a bucket, and the check that writes require. */
export interface S3Engine {
  driver: Driver
  /**
   * Resolves when the bucket exists and the server honours `If-None-Match: *`, the only protection of objects
   * against overwriting. The check runs once, before the first write.
   *
   * @throws Refusal `storage_unavailable`
   */
  prepare: () => Promise<void>
  /**
   * Replaces an object if it still has the bytes that were read before; null if it was missing. Returns false if another
   * process changed it since. `headers` are stored with the object.
   *
   * @throws Refusal `storage_unavailable` if the server ignores `If-Match`
   */
  replace: (
    key: string,
    before: Uint8Array | null,
    bytes: Uint8Array,
    headers: Record<string, string>,
  ) => Promise<boolean>
}

/**
 * Stores objects in an S3 bucket (docs/decisions/0009-s3-object-store.md). unstorage's own driver treats a missing
 * bucket as a successful write, drops `If-None-Match` and lists at most 1,000 keys, which is unsafe for an archive.
 *
 * @param retryPolicy time limits and retries
 */
export function s3Objects(location: S3Location, retryPolicy: S3RetryPolicy = S3_RETRY_POLICY): S3Engine {
  const client = s3Client(location, retryPolicy)
  const root = location.prefix === '' ? '' : `${location.prefix}/`
  const pathOf = (key: string): string => root + key.replaceAll(':', '/')

  const read = async (key: string): Promise<Buffer | null> => {
    const result = await client.send({ method: 'GET', key })
    return typeof result === 'string' ? null : result.body
  }

  const prepare = once(async () => {
    await listPage(client, root, { 'max-keys': '1' })
    await probe(client, root + PROBE_KEY, location.endpoint)
  })

  /** Requires that the server refuses a write under an entity tag that the object does not have. */
  const prepareReplace = once(async () => {
    await prepare()
    if (await putIf(client, root + PROBE_KEY, PROBE_BYTES, {}, '"none"'))
      throw conditionalWriteRefusal(location.endpoint, 'If-Match')
  })

  const replace: S3Engine['replace'] = async (key, before, bytes, headers) => {
    await prepareReplace()
    const path = pathOf(key)
    const found = await client.send({ method: 'GET', key: path })
    const stored = typeof found === 'string' ? null : found
    if (before === null ? stored !== null : stored === null || Buffer.compare(stored.body, before) !== 0)
      return false
    if (stored?.etag === null)
      throw new StorageFault(`the object store sent no ETag with ${location.bucket}/${path}`)
    // Also read after a refusal: the response of a write that succeeded can be lost, and the repeated one is refused.
    await putIf(client, path, bytes, headers, stored?.etag)
    const after = await read(path)
    return after !== null && Buffer.compare(after, bytes) === 0
  }

  const driver = defineDriver(() => ({
    name: 's3-objects',

    async getItem(): Promise<never> {
      throw new Error('objects are bytes: use getItemRaw')
    },

    /** Uses a listing, because a HEAD request cannot tell a missing bucket from a missing object. */
    async hasItem(key: string): Promise<boolean> {
      const path = pathOf(key)
      const page = await listPage(client, path, { 'max-keys': '1' })
      return page.keys.includes(path)
    },

    /** Returns the bytes, or null if S3 itself responds that the key does not exist. */
    getItemRaw: (key: string): Promise<Buffer | null> => read(pathOf(key)),

    /**
     * With `replace` the server replaces the object atomically, as S3 does for every unconditional write.
     * `headers` are stored with the object, for readers of the bucket.
     */
    async setItemRaw(key: string, value: Uint8Array, options: WriteOptions = {}): Promise<void> {
      await prepare()
      const path = pathOf(key)
      const { headers = {} } = options
      if (options.replace) await client.send({ method: 'PUT', key: path, body: value, headers })
      else await putIf(client, path, value, headers)
      const stored = await read(path)
      if (stored === null || Buffer.compare(stored, value) !== 0)
        throw storageDamaged(
          `${location.bucket}/${path} has ${stored === null ? 'no content' : 'different content'} after it was written`,
        )
    },

    /** Returns every key below a base, without the prefix of the store. */
    async getKeys(base = ''): Promise<string[]> {
      const folder = pathOf(base.replace(/:+$/, ''))
      const below = folder === '' || folder.endsWith('/') ? folder : `${folder}/`
      const keys = await listAll(client, below)
      return keys.map((key) => key.slice(root.length))
    },

    /** There is no change token: only reading an object shows that it is unchanged. */
    getMeta: (): { changeToken: null } => ({ changeToken: null }),

    dispose: () => client.close(),
  }))(undefined)
  return { driver, prepare, replace }
}

/** Runs a check until it has succeeded once. Concurrent calls share one run. */
function once(check: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null
  return () => {
    running ??= check().catch((error: unknown) => {
      running = null
      throw error
    })
    return running
  }
}

/**
 * Writes an object that is missing or, with an entity tag, has that one.
 *
 * @returns false if the condition is not met
 */
async function putIf(
  client: S3Client,
  key: string,
  body: Uint8Array,
  headers: Record<string, string> = {},
  etag?: string,
): Promise<boolean> {
  const condition = etag === undefined ? { 'if-none-match': '*' } : { 'if-match': etag }
  return (
    (await client.send({ method: 'PUT', key, body, headers: { ...headers, ...condition } })) !== 'refused'
  )
}

/** Checks conditional writes. A probe object of an earlier process counts, if the server refuses to overwrite it. */
async function probe(client: S3Client, key: string, endpoint: string): Promise<void> {
  if (!(await putIf(client, key, PROBE_BYTES))) return
  if (!(await putIf(client, key, PROBE_BYTES))) return
  throw conditionalWriteRefusal(endpoint, 'If-None-Match: *')
}

async function listPage(client: S3Client, prefix: string, options: Record<string, string>): Promise<S3Page> {
  const query = { 'list-type': '2', 'encoding-type': 'url', prefix, ...options }
  const result = await client.send({ method: 'GET', key: '', query })
  if (typeof result === 'string')
    throw new StorageFault('the object store responded to a listing with NoSuchKey')
  const page = parseListing(result.body)
  const foreignKey = page.keys.find((key) => !key.startsWith(prefix))
  if (foreignKey !== undefined)
    throw new StorageFault(
      `the object store listed ${JSON.stringify(foreignKey)} in a listing of keys below ${prefix}`,
    )
  return page
}

async function listAll(client: S3Client, prefix: string): Promise<string[]> {
  const keys = new Set<string>()
  const tokens = new Set<string>()
  let { keys: pageKeys, next } = await listPage(client, prefix, {})
  for (;;) {
    for (const key of pageKeys) {
      if (keys.has(key)) throw new StorageFault(`the object store listed ${JSON.stringify(key)} twice`)
      keys.add(key)
    }
    if (next === null) return [...keys]
    // A server that repeats a page would make the listing endless.
    if (tokens.has(next))
      throw new StorageFault(`the object store returned the token ${JSON.stringify(next)} for two pages`)
    tokens.add(next)
    ;({ keys: pageKeys, next } = await listPage(client, prefix, { 'continuation-token': next }))
  }
}
