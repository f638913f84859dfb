import { Refusal } from './refusal.ts'

/**
 * What a store may decline with. Anything else an adapter throws is a fault.
 *
 * - `storage_unavailable`: not configured, not there, not openable or not reachable
 * - `storage_damaged`: reachable, but what it holds cannot be what was written
 */
export type StorageRefusal = 'storage_unavailable' | 'storage_damaged'

export function storageUnavailable(detail: string, cause?: unknown): Refusal<StorageRefusal> {
  return new Refusal('storage_unavailable', detail, { cause })
}

export function storageDamaged(detail: string, cause?: unknown): Refusal<StorageRefusal> {
  return new Refusal('storage_damaged', detail, { cause })
}
