import type { PublishedAnswer, PublishedHistory, PublishedRefusal } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { formatInstant } from '../../domain/time.ts'
import {
  PUBLISHED_HEAD,
  PUBLISHED_LEDGER,
  PUBLISHED_LEGACY_LEDGER,
} from '../../domain/year/published-ledger.ts'
import { openConnections } from '../connections.ts'
import type { Connections } from '../connections.ts'
import { networkReason } from '../../domain/network-reason.ts'

/** Names the product to the hosts it audits. */
const USER_AGENT = 'dash (audits published history)'

/** Time until a host begins to answer, and between two pieces of its answer. */
const SILENCE_TIMEOUT_MS = 20_000

/** Time for a whole answer, connection included. */
const ANSWER_TIMEOUT_MS = 60_000

/** No ledger and no publication is near this size. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024

/** A question that got no answer is asked once more: a dropped connection says nothing about an archive. */
const TRIES = 2

export interface PublishedHistoryOptions {
  answerTimeoutMs?: number
  answerMaxBytes?: number
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
  {
    answerTimeoutMs = ANSWER_TIMEOUT_MS,
    answerMaxBytes = ANSWER_MAX_BYTES,
    connections = 8,
  }: PublishedHistoryOptions = {},
): PublishedHistory & { close(): Promise<void> } {
  const root = base.replace(/\/+$/, '')
  const pool = openConnections({
    connect: { timeout: SILENCE_TIMEOUT_MS },
    headersTimeout: SILENCE_TIMEOUT_MS,
    bodyTimeout: SILENCE_TIMEOUT_MS,
    connections,
  })

  const askOnce = async (url: string, ifNoneMatch: string, signal: AbortSignal): Promise<PublishedAnswer> => {
    signal.throwIfAborted()
    // Node 20 collects `AbortSignal.timeout()` as garbage before it fires when only `AbortSignal.any()` knows it.
    const limit = new AbortController()
    const stop = (): void => limit.abort()
    const timer = setTimeout(stop, answerTimeoutMs)
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await answerOf(pool, url, ifNoneMatch, limit.signal, answerMaxBytes)
    } catch (error) {
      signal.throwIfAborted()
      const why = limit.signal.aborted ? `no whole answer within ${answerTimeoutMs} ms` : networkReason(error)
      throw new Refusal<PublishedRefusal>(
        'source_unavailable',
        `the host ${root} cannot be reached (${why})`,
        { cause: error },
      )
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
  }

  const ask = async (path: string, ifNoneMatch: string, signal: AbortSignal): Promise<PublishedAnswer> => {
    for (let tried = 1; ; tried += 1) {
      try {
        return await askOnce(`${root}${path}`, ifNoneMatch, signal)
      } catch (error) {
        if (signal.aborted || tried === TRIES) throw error
      }
    }
  }

  return {
    base: root,
    ledger: (signal) => ask(PUBLISHED_LEDGER, '', signal),
    legacyLedger: (signal) => ask(PUBLISHED_LEGACY_LEDGER, '', signal),
    head: (signal) => ask(PUBLISHED_HEAD, '', signal),
    at: (instant, held, signal) => {
      const path = `/api/feed/history?sort=year&at=${formatInstant(instant)}`
      return ask(path, held.map((sha256) => `"${sha256}"`).join(', '), signal)
    },
    close: () => pool.close(),
  }
}

async function answerOf(
  connections: Connections,
  url: string,
  ifNoneMatch: string,
  signal: AbortSignal,
  maxBytes: number,
): Promise<PublishedAnswer> {
  const { statusCode, headers, body } = await connections.request(url, {
    method: 'GET',
    signal,
    headers: {
      // A cache on the way may be a minute older than the host.
      'cache-control': 'no-cache',
      'accept-encoding': 'identity',
      'user-agent': USER_AGENT,
      ...(ifNoneMatch === '' ? {} : { 'if-none-match': ifNoneMatch }),
    },
  })
  const encoding = plain(headers['content-encoding'])
  const bytes = await readBytes(body, maxBytes)
  if (encoding !== null && encoding !== 'identity') {
    throw new Error(`its answer is compressed with ${encoding} although that was not asked for`)
  }
  return {
    status: statusCode,
    etag: plain(headers['etag']),
    lastModified: plain(headers['last-modified']),
    requestedAt: plain(headers['x-year-history-requested-at']),
    error: statusCode >= 400 ? refusalCode(bytes) : null,
    bytes,
  }
}

async function readBytes(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    if (size > maxBytes) throw new Error(`its answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
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
