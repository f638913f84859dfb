import { defineDriver } from 'unstorage'
import type { Driver, TransactionOptions } from 'unstorage'
import { storageDamaged } from '../../domain/refusal.ts'
import { S3_PATIENCE, overwrites, parseListing, s3Client } from './s3-request.ts'
import type { S3Client, S3Location, S3Page, S3Patience } from './s3-request.ts'

/** Written once a bucket and never read: what is asked is whether it can be written twice. */
const PROBE_KEY = 'probe/conditional-write'
const PROBE_BYTES = new TextEncoder().encode('dash writes this twice, and the second time must be refused\n')

/** An unstorage driver over a bucket, and what must hold before it is written to. */
export interface S3Engine {
  driver: Driver
  /**
   * Resolves when the bucket is there and the server honours `If-None-Match: *`, which alone keeps objects from being
   * overwritten. Asked once; a write asks it first.
   *
   * @throws Refusal `storage_unavailable`
   */
  prepare: () => Promise<void>
}

/**
 * Objects in an S3 bucket (docs/decisions/0009-s3-object-store.md). unstorage's own driver takes a missing bucket for a
 * successful write, drops `If-None-Match` and lists at most 1,000 keys; an archive cannot stand on that.
 *
 * @param patience how long to wait and how often to ask again
 */
export function s3Objects(location: S3Location, patience: S3Patience = S3_PATIENCE): S3Engine {
  const client = s3Client(location, patience)
  const root = location.prefix === '' ? '' : `${location.prefix}/`
  const pathOf = (key: string): string => root + key.replaceAll(':', '/')

  const read = async (key: string): Promise<Buffer | null> => {
    const answer = await client.send({ method: 'GET', key })
    return typeof answer === 'string' ? null : answer
  }

  const prepare = once(async () => {
    await listPage(client, root, { 'max-keys': '1' })
    await probe(client, root + PROBE_KEY, location.endpoint)
  })

  const driver = defineDriver(() => ({
    name: 's3-objects',

    async getItem(): Promise<never> {
      throw new Error('objects are bytes: use getItemRaw')
    },

    /** By a listing, since only that tells a missing bucket from a missing object to a HEAD. */
    async hasItem(key: string): Promise<boolean> {
      const path = pathOf(key)
      const page = await listPage(client, path, { 'max-keys': '1' })
      return page.keys.includes(path)
    },

    /** The bytes, or null when S3 itself says that there is no such key. */
    getItemRaw: (key: string): Promise<Buffer | null> => read(pathOf(key)),

    /** With `replace` the server exchanges what is there in one step, as S3 does with every unconditional write. */
    async setItemRaw(
      key: string,
      value: Uint8Array,
      { replace = false }: TransactionOptions = {},
    ): Promise<void> {
      await prepare()
      const path = pathOf(key)
      if (replace) await client.send({ method: 'PUT', key: path, body: value })
      else await putUnlessThere(client, path, value)
      const stored = await read(path)
      if (stored === null || Buffer.compare(stored, value) !== 0)
        throw storageDamaged(
          `${location.bucket}/${path} holds ${stored === null ? 'nothing' : 'other bytes'} after it was written`,
        )
    },

    /** Every key below a base, as the bucket names it, without the prefix of the store. */
    async getKeys(base = ''): Promise<string[]> {
      const folder = pathOf(base.replace(/:+$/, ''))
      const keys = await listAll(client, folder === '' || folder.endsWith('/') ? folder : `${folder}/`)
      return keys.map((key) => key.slice(root.length))
    },

    /** Nothing short of reading an object tells that it is unchanged. */
    getMeta: (): { changeToken: null } => ({ changeToken: null }),

    dispose: () => client.close(),
  }))(undefined)
  return { driver, prepare }
}

/** Runs a check until it has succeeded, and not again; those who ask meanwhile wait for the same run. */
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

/** False when something is there already. */
async function putUnlessThere(client: S3Client, key: string, body: Uint8Array): Promise<boolean> {
  return (await client.send({ method: 'PUT', key, body, headers: { 'if-none-match': '*' } })) !== 'exists'
}

/** The probe of an earlier process answers for this one: the server refused to overwrite it. */
async function probe(client: S3Client, key: string, endpoint: string): Promise<void> {
  if (!(await putUnlessThere(client, key, PROBE_BYTES))) return
  if (!(await putUnlessThere(client, key, PROBE_BYTES))) return
  throw overwrites(endpoint)
}

async function listPage(client: S3Client, prefix: string, more: Record<string, string>): Promise<S3Page> {
  const query = { 'list-type': '2', 'encoding-type': 'url', prefix, ...more }
  const answer = await client.send({ method: 'GET', key: '', query })
  if (typeof answer === 'string')
    throw new Error('the object store answered a listing as it does for an absent key')
  const page = parseListing(answer)
  const stray = page.keys.find((key) => !key.startsWith(prefix))
  if (stray !== undefined)
    throw new Error(
      `the object store listed ${JSON.stringify(stray)} where keys below ${prefix} were asked for`,
    )
  return page
}

async function listAll(client: S3Client, prefix: string): Promise<string[]> {
  const keys = new Set<string>()
  const tokens = new Set<string>()
  let { keys: found, next } = await listPage(client, prefix, {})
  for (;;) {
    for (const key of found) {
      if (keys.has(key)) throw new Error(`the object store listed ${JSON.stringify(key)} twice`)
      keys.add(key)
    }
    if (next === null) return [...keys]
    // A server that forgets where a listing stood would make it endless.
    if (tokens.has(next))
      throw new Error(`the object store gave the token ${JSON.stringify(next)} for two pages`)
    tokens.add(next)
    ;({ keys: found, next } = await listPage(client, prefix, { 'continuation-token': next }))
  }
}
