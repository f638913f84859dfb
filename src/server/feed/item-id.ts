import { hash } from 'node:crypto'

/** Name space of the product's item ids and of its elements in feeds; never to change (docs/feed-api.md). */
const NAMESPACE_UUID = 'e71b1b8e-93ca-4fd6-9c6c-1a3a6cbbb5a2'

/** URI of the product's own elements in RSS and Atom. */
export const DASH_NAMESPACE = `urn:uuid:${NAMESPACE_UUID}`

/** The permanent id of an item in every feed of every host: the UUID, version 5, of its save key. */
export function itemId(key: string): string {
  return `urn:uuid:${uuidV5(NAMESPACE_UUID, key)}`
}

/** RFC 9562, 5.5: SHA-1 of the name space's bytes and the name's. */
export function uuidV5(namespace: string, name: string): string {
  const space = Buffer.from(namespace.replaceAll('-', ''), 'hex')
  const bytes = hash('sha1', Buffer.concat([space, Buffer.from(name)]), 'buffer').subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
