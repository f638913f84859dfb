import type { H3 } from 'h3'
import { readResponse } from '../../../src/adapters/audited-hosts.ts'
import { formatInstant } from '../../../src/domain/time.ts'
import type { PublishedHistory } from '../../../src/domain/year/ports.ts'
import type { PublishedResponse } from '../../../src/domain/year/published-ledger.ts'

/** A response as a host sends it. */
export interface SentResponse {
  status: number
  etag: string | null
  lastModified: string | null
  requestedAt: string | null
  bytes: Uint8Array
}

/** Changes an honest response as a lying host would. `at` is null for the ledgers and the head. */
export type Lie = (
  honest: SentResponse,
  request: { path: string; at: number | null; held: readonly string[] },
) => SentResponse

const HEADERS = {
  etag: 'etag',
  lastModified: 'last-modified',
  requestedAt: 'x-year-history-requested-at',
} as const

/** The public history of an application without a socket, as an auditor reads it. */
export function publishedBy(app: Pick<H3, 'request'>, tamper: Lie = (honest) => honest): PublishedHistory {
  const request = async (
    path: string,
    at: number | null,
    held: readonly string[],
  ): Promise<PublishedResponse> => {
    const ifNoneMatch = held.map((sha256) => `"${sha256}"`).join(', ')
    const response = await app.request(`http://dash.test${path}`, {
      headers: ifNoneMatch === '' ? {} : { 'if-none-match': ifNoneMatch },
    })
    const [etag = null, lastModified = null, requestedAt = null] = Object.values(HEADERS).map((name) =>
      response.headers.get(name),
    )
    const bytes = new Uint8Array(await response.arrayBuffer())
    const {
      bytes: sent,
      status,
      ...values
    } = tamper({ status: response.status, etag, lastModified, requestedAt, bytes }, { path, at, held })
    const headers = Object.entries(HEADERS).flatMap(([key, name]) => {
      const value = values[key as keyof typeof HEADERS]
      return value === null ? [] : [[name, value]]
    })
    const body = (async function* () {
      yield sent
    })()
    return readResponse({ statusCode: status, headers: Object.fromEntries(headers), body }, Infinity)
  }
  return {
    base: 'http://dash.test',
    at: (instant, held) => request(`/api/feed/history?sort=year&at=${formatInstant(instant)}`, instant, held),
    file: (path) => request(path, null, []),
  }
}

/** A refusal of a host, as it would send it. */
export function refusalResponse(status: number, error: string | null): SentResponse {
  const bytes = new TextEncoder().encode(error === null ? 'oops' : JSON.stringify({ error }))
  return { status, etag: null, lastModified: null, requestedAt: null, bytes }
}
