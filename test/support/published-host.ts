import type { H3 } from 'h3'
import type { PublishedAnswer } from '../../src/domain/year/published-ledger.ts'
import type { PublicHost } from '../../src/domain/ports.ts'
import { formatInstant } from '../../src/domain/time.ts'
import { seeBytes } from '../../src/domain/year/envelope.ts'
import {
  PUBLISHED_HEAD,
  PUBLISHED_LEDGER,
  PUBLISHED_LEGACY_LEDGER,
} from '../../src/domain/year/published-ledger.ts'

/** An answer with its whole body. */
type WholeAnswer = Omit<PublishedAnswer, 'bytes' | 'seen'> & { bytes: Uint8Array }

/** What a lying host makes of an honest answer. `at` is null for its ledgers and its head. */
export type Lie = (
  answer: WholeAnswer,
  question: { path: string; at: number | null; held: readonly string[] },
) => Omit<PublishedAnswer, 'seen'>

/** The public answers of an application without a socket, as an auditor asks for them. */
export function publishedBy(app: Pick<H3, 'request'>, lie: Lie = (answer) => answer): PublicHost['history'] {
  const ask = async (path: string, at: number | null, held: readonly string[]): Promise<PublishedAnswer> => {
    const ifNoneMatch = held.map((sha256) => `"${sha256}"`).join(', ')
    const response = await app.request(`http://dash.test${path}`, {
      headers: ifNoneMatch === '' ? {} : { 'if-none-match': ifNoneMatch },
    })
    const bytes = new Uint8Array(await response.arrayBuffer())
    const { error } = (
      response.status >= 400 ? JSON.parse(Buffer.from(bytes).toString()) : { error: null }
    ) as {
      error: string | null
    }
    const answer: WholeAnswer = {
      status: response.status,
      etag: response.headers.get('etag'),
      lastModified: response.headers.get('last-modified'),
      requestedAt: response.headers.get('x-year-history-requested-at'),
      error,
      bytes,
    }
    const told = lie(answer, { path, at, held })
    return { ...told, seen: seeBytes(told.bytes ?? new Uint8Array()) }
  }
  return {
    base: 'http://dash.test',
    ledger: () => ask(PUBLISHED_LEDGER, null, []),
    legacyLedger: () => ask(PUBLISHED_LEGACY_LEDGER, null, []),
    head: () => ask(PUBLISHED_HEAD, null, []),
    at: (instant, held) => ask(`/api/feed/history?sort=year&at=${formatInstant(instant)}`, instant, held),
  }
}

/** A refusal of a host, as it would send it. */
export function refusalAnswer(status: number, error: string | null): WholeAnswer {
  const bytes = new TextEncoder().encode(error === null ? 'oops' : JSON.stringify({ error }))
  return { status, etag: null, lastModified: null, requestedAt: null, error, bytes }
}
