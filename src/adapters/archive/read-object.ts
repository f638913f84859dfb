import type { Storage } from 'unstorage'

/** The bytes an engine keeps under a key, as it keeps them; null when it says that there are none. */
export async function readObject(storage: Storage, key: string): Promise<Uint8Array | null> {
  const value: unknown = await storage.getItemRaw(key)
  if (value === null || value === undefined) return null
  if (value instanceof Uint8Array) return value
  if (value instanceof ArrayBuffer) return new Uint8Array(value)
  // Drivers resolve with an Error object, or with a string, where bytes were asked for.
  throw value instanceof Error
    ? value
    : new Error(`the object store gave ${typeof value} instead of bytes for ${key}`)
}
