/**
 * The one error raised on purpose: the product declines, for a reason that is part of its contract.
 *
 * `code` is public and belongs to one area's closed list (see `domain/<area>/refusals.ts`); `detail` is for
 * logs and terminals only and never reaches an HTTP client.
 */
export class Refusal<Code extends string = string> extends Error {
  override readonly name = 'Refusal'
  readonly code: Code
  readonly detail: string | undefined
  /** What the public answer says beside the code. */
  readonly members: Readonly<Record<string, string | number>>

  constructor(
    code: Code,
    detail?: string,
    options?: { cause?: unknown; members?: Readonly<Record<string, string | number>> },
  ) {
    super(detail === undefined ? code : `${code}: ${detail}`, options)
    this.code = code
    this.detail = detail
    this.members = options?.members ?? {}
  }
}

/** Where a database is: a file of this machine, or a libSQL server (docs/configuration.md). */
export interface DatabaseLocation {
  /** `file:` with an absolute path, `http:`, `https:` or `libsql:`. */
  url: string
  /** Sent to a server as a bearer token. */
  authToken: string | null
}

/** Where the object store is: a folder of this machine, or a bucket (docs/configuration.md). */
export type StoreLocation =
  | { kind: 'file'; path: string }
  | {
      kind: 's3'
      bucket: string
      /** Without slashes at either end; empty for the whole bucket. */
      prefix: string
      /** Base URL, without a slash at its end. */
      endpoint: string
      region: string
      accessKeyId: string
      secretAccessKey: string
    }

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

/** A store that was reached and did not do what it was asked: an answer that failed, broke off or did not come. */
export class StorageFault extends Error {
  override readonly name = 'StorageFault'
}

/** No object is near this size; a damaged or planted one must not fill the memory. */
export const OBJECT_MAX_BYTES = 64 * 1024 * 1024

/**
 * The innermost reason of a failed exchange, on one line. Clients wrap what the network said; where a host has several
 * addresses they collect one failure for each, of which the first is enough.
 */
export function networkReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.errors.length > 0) return networkReason(error.errors[0])
  // An abort says nothing of its reason; the error around it does.
  if (error.cause instanceof Error && error.cause.name !== 'AbortError') return networkReason(error.cause)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  return error.message || code
}

/** Why something failed, on one line: a refusal's detail, or {@link networkReason} of a fault. */
export function messageOf(error: unknown): string {
  return error instanceof Refusal ? (error.detail ?? error.code) : networkReason(error)
}

/** What a person can do about a server that was not reached. */
export const HOW_TO_REACH = 'check the address and the network, and try again'
