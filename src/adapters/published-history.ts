import { createHash } from 'node:crypto'
import type { PublicHost } from '../domain/ports.ts'
import type { PublishedResponse, PublishedRefusal } from '../domain/year/published-ledger.ts'
import { HOW_TO_REACH, OBJECT_MAX_BYTES, Refusal, networkReason } from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'
import { ENDS_BYTES, readIdentity, seeBytes } from '../domain/year/examine.ts'
import { PUBLISHED_HEAD, PUBLISHED_LEDGER, PUBLISHED_LEGACY_LEDGER } from '../domain/year/published-ledger.ts'
import { openConnections } from './http.ts'
import type { HttpResponse } from './http.ts'

/** Names the product to the hosts it audits. */
const USER_AGENT = 'dash (audits published history)'

/** Time until a host begins to answer, and between two pieces of its answer. */
const SILENCE_TIMEOUT_MS = 20_000

/** Time for a whole answer, connection included. */
const ANSWER_TIMEOUT_MS = 60_000

const KIB = 1024
const MIB = 1024 * KIB

/** The most bytes of a body, by what it is. A head is one short line; an entry takes some 400 bytes, a day has one. */
const MOST_BYTES = { head: KIB, ledger: 16 * MIB, publication: OBJECT_MAX_BYTES, refusal: 16 * KIB }

type BodyKind = Exclude<keyof typeof MOST_BYTES, 'refusal'>

/** A publication over this is hashed as it comes, and not kept: only unusual layouts need the whole text, once. */
const KEPT_MAX_BYTES = 4 * MIB

/** A question that got no answer is asked once more: a dropped connection says nothing about an archive. */
const TRIES = 2

export interface PublishedHistoryOptions {
  answerTimeoutMs?: number
  /** Connections at a time. */
  connections?: number
}

/**
 * The public answers of the host at `base`, over its own connections; `close` ends them. Redirects are not followed:
 * an auditor decides whom it asks.
 *
 * @param base absolute http(s) URL; a path in it comes before those of the interface
 */
export function openPublishedHistory(
  base: string,
  { answerTimeoutMs = ANSWER_TIMEOUT_MS, connections = 8 }: PublishedHistoryOptions = {},
): PublicHost['history'] & { close(): Promise<void> } {
  const root = base.replace(/\/+$/, '')
  const pool = openConnections({
    connect: { timeout: SILENCE_TIMEOUT_MS },
    headersTimeout: SILENCE_TIMEOUT_MS,
    bodyTimeout: SILENCE_TIMEOUT_MS,
    connections,
  })

  const ask = async (
    kind: BodyKind,
    path: string,
    ifNoneMatch: string,
    signal: AbortSignal,
  ): Promise<PublishedResponse> => {
    const asked = {
      url: `${root}${path}`,
      headers: headersOf(ifNoneMatch),
      timeoutMs: answerTimeoutMs,
      signal,
    }
    for (let tried = 1; ; tried += 1) {
      try {
        return await pool.exchange(asked, (response) => answerOf(response, kind))
      } catch (error) {
        signal.throwIfAborted()
        if (tried < TRIES) continue
        throw new Refusal<PublishedRefusal>(
          'source_unavailable',
          `the host ${root} cannot be reached (${networkReason(error)}); ${HOW_TO_REACH}`,
          { cause: error },
        )
      }
    }
  }

  return {
    base: root,
    ledger: (signal) => ask('ledger', PUBLISHED_LEDGER, '', signal),
    legacyLedger: (signal) => ask('ledger', PUBLISHED_LEGACY_LEDGER, '', signal),
    head: (signal) => ask('head', PUBLISHED_HEAD, '', signal),
    at: (instant, held, signal) => {
      const path = `/api/feed/history?sort=year&at=${formatInstant(instant)}`
      return ask('publication', path, held.map((sha256) => `"${sha256}"`).join(', '), signal)
    },
    close: () => pool.close(),
  }
}

function headersOf(ifNoneMatch: string): Record<string, string> {
  return {
    // A cache on the way may be a minute older than the host.
    'cache-control': 'no-cache',
    'accept-encoding': 'identity',
    'user-agent': USER_AGENT,
    ...(ifNoneMatch === '' ? {} : { 'if-none-match': ifNoneMatch }),
  }
}

async function answerOf(
  { statusCode, headers, body }: HttpResponse,
  kind: BodyKind,
): Promise<PublishedResponse> {
  const encoding = plain(headers['content-encoding'])
  const what = statusCode >= 400 ? 'refusal' : kind
  const read = await hashBody(body, what)
  if (encoding !== null && encoding !== 'identity') {
    throw new Error(`its answer is compressed with ${encoding} although that was not asked for`)
  }
  if (read === null && what !== 'refusal')
    throw new Error(`its answer is larger than ${MOST_BYTES[kind]} bytes`)
  const { bytes, seen } = read ?? { bytes: null, seen: seeBytes(new Uint8Array()) }
  return {
    status: statusCode,
    etag: plain(headers['etag']),
    lastModified: plain(headers['last-modified']),
    requestedAt: plain(headers['x-year-history-requested-at']),
    error: what === 'refusal' && bytes ? refusalCode(bytes) : null,
    bytes,
    seen,
  }
}

/**
 * A body in one buffer: a list of its pieces takes more than their bytes when they are short.
 *
 * @returns null when it is larger than its bound
 */
async function hashBody(
  body: AsyncIterable<Uint8Array>,
  what: BodyKind | 'refusal',
): Promise<Pick<PublishedResponse, 'bytes' | 'seen'> | null> {
  const maxBytes = MOST_BYTES[what]
  const keptMax = what === 'publication' ? KEPT_MAX_BYTES : maxBytes
  const hash = createHash('sha256')
  let kept = Buffer.alloc(Math.min(64 * KIB, keptMax))
  let last = Buffer.alloc(0)
  let size = 0
  for await (const chunk of body) {
    if (size + chunk.byteLength > maxBytes) return null
    hash.update(chunk)
    kept = keep(kept, chunk, size, keptMax)
    last = Buffer.concat([last, chunk.subarray(-ENDS_BYTES.last)]).subarray(-ENDS_BYTES.last)
    size += chunk.byteLength
  }
  const whole = kept.subarray(0, Math.min(size, kept.byteLength))
  const identity = readIdentity({ first: whole.subarray(0, ENDS_BYTES.first), last })
  const seen = { byteSize: size, sha256: hash.digest('hex'), identity }
  return { bytes: size <= keptMax ? whole : null, seen }
}

/** The buffer with a chunk at its place, as far as `most` bytes; larger when it must be. */
function keep(kept: Buffer<ArrayBuffer>, chunk: Uint8Array, at: number, most: number): Buffer<ArrayBuffer> {
  const end = Math.min(at + chunk.byteLength, most)
  if (at >= end) return kept
  const room =
    end <= kept.byteLength ? kept : Buffer.alloc(Math.min(Math.max(end, kept.byteLength * 2), most))
  if (room !== kept) kept.copy(room)
  room.set(chunk.subarray(0, end - at), at)
  return room
}

/** A header's value when a terminal can show it; a host may send anything. */
function plain(value: string | string[] | undefined): string | null {
  return typeof value === 'string' && /^[\x20-\x7e]{1,200}$/.test(value) ? value : null
}

function refusalCode(bytes: Uint8Array): string | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    const code = typeof value === 'object' && value !== null && 'error' in value ? value.error : null
    return typeof code === 'string' && /^[a-z_]{1,64}$/.test(code) ? code : null
  } catch {
    return null
  }
}
