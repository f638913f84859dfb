/**
 * An expected error: the product refuses a request for a reason that is part of its contract.
 *
 * `code` is public and belongs to one area's closed list; `detail` is for logs and terminals only and never reaches an
 * HTTP client.
 */
export class Refusal<Code extends string = string> extends Error {
  override readonly name = 'Refusal'
  readonly code: Code
  readonly detail: string | undefined
  /** Further members of the public response. */
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

/** True for a refusal with this code. @typeParam Code the closed list that the code is of, if one is named */
export function isRefusal<Code extends string>(error: unknown, code: Code): error is Refusal<Code> {
  return error instanceof Refusal && error.code === code
}

/** Location of a database: a file of this machine, or a libSQL server (docs/configuration.md). */
export interface DatabaseLocation {
  /** `file:` with an absolute path, `http:`, `https:` or `libsql:`. */
  url: string
  /** Bearer token of the server. */
  authToken: string | null
}

/** Location of the object store: a folder of this machine, or a bucket (docs/configuration.md). */
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
 * Refusals of stores; anything else an adapter throws is a fault.
 *
 * - `storage_unavailable`: not configured, missing, or impossible to open or reach
 *
 * - `storage_damaged`: reachable, but its content cannot be what was written
 */
export type StorageRefusal = 'storage_unavailable' | 'storage_damaged'

export function storageUnavailable(detail: string, cause?: unknown): Refusal<StorageRefusal> {
  return new Refusal('storage_unavailable', detail, { cause })
}

export function storageDamaged(detail: string, cause?: unknown): Refusal<StorageRefusal> {
  return new Refusal('storage_damaged', detail, { cause })
}

export function isDamaged(error: unknown): error is Refusal<'storage_damaged'> {
  return isRefusal(error, 'storage_damaged')
}

/** A reachable store failed: its response was an error, incomplete or missing. */
export class StorageFault extends Error {
  override readonly name = 'StorageFault'
}

/** Largest object that is read; real ones are far smaller, and a planted one must not fill the memory. */
export const OBJECT_MAX_BYTES = 64 * 1024 * 1024

/**
 * The innermost reason of a failed exchange, on one line. Clients wrap network errors; for a host with several
 * addresses they collect one error for each, and the first one is enough.
 */
export function networkReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.errors.length > 0) return networkReason(error.errors[0])
  // An abort error carries no reason; the error around it does.
  if (error.cause instanceof Error && error.cause.name !== 'AbortError') return networkReason(error.cause)
  // The text of OpenSSL: number, library, function, reason, file and line.
  const tlsReason = /:SSL routines:[^:]*:([^:]+):/.exec(error.message)?.[1]
  if (tlsReason !== undefined) return `TLS failed: ${tlsReason}; the port may speak http, not https`
  return error.message || (errorCode(error) ?? error.name)
}

/** The reason of an error on one line: a refusal's detail, or {@link networkReason} of a fault. */
export function messageOf(error: unknown): string {
  return error instanceof Refusal ? (error.detail ?? error.code) : networkReason(error)
}

/** The code of an error of the system, a driver or a client; null if it has none. */
export function errorCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
}

/** Advice for a server that cannot be reached. */
export const HOW_TO_REACH = 'check the address and the network, and try again'
