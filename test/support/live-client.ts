import { createHash } from 'node:crypto'
import type { H3 } from 'h3'
import { expect } from 'vitest'
import type { FeedEvent, LiveRefusal } from '../../src/domain/feed/columns.ts'
import type { ItemDetails } from '../../src/domain/feed/live-source.ts'
import { LIVE_REFUSALS } from '../../src/domain/feed/columns.ts'
import { rankLivePeriods, sealSnapshot } from '../../src/domain/feed/snapshot.ts'
import type { SealedSnapshot } from '../../src/domain/feed/snapshot.ts'
import type { FeedStore } from '../../src/domain/ports.ts'
import { liveContract } from '../../src/server/feed/live-routes.ts'
import { NOW } from './feed-events.ts'

/** Seals events, and what their sources say of them, as of an instant. */
export function sealEvents(
  events: readonly FeedEvent[],
  at = NOW,
  details: ReadonlyMap<string, ItemDetails> = new Map(),
): SealedSnapshot {
  return sealSnapshot(rankLivePeriods(events, at), details, at)
}

/** As {@link sealEvents}, and stores the snapshot. */
export async function keepSnapshot(
  feed: FeedStore,
  ...args: Parameters<typeof sealEvents>
): Promise<SealedSnapshot> {
  const sealed = sealEvents(...args)
  expect(await feed.saveSnapshot(sealed, { discardLater: false })).toMatchObject({ saved: true })
  return sealed
}

export interface LiveAnswer {
  status: number
  headers: Headers
  body: string
  /** The refusal code of a failure, else null. */
  error: LiveRefusal | null
}

/** Asks the live feed or one of its subscriptions and holds every answer to the contract: status, headers, body. */
export async function askLive(
  app: Pick<H3, 'request'>,
  path: string,
  init: { method?: string; headers?: Record<string, string> } = {},
): Promise<LiveAnswer> {
  const response = await app.request(`http://asked.test${path}`, init)
  const bytes = Buffer.from(await response.arrayBuffer())
  const body = bytes.toString()
  const { status, headers } = response
  expect(headers.get('access-control-allow-origin')).toBe('*')
  if (init.method === 'OPTIONS') return { status, headers, body, error: null }
  expect(headers.get('access-control-expose-headers')).toBe('ETag, Last-Modified, Link')
  expect(headers.get('link')).toContain('rel="service-desc"')
  if (status === 200 || status === 304) {
    expect(headers.get('cache-control')).toBe('public, max-age=60, stale-while-revalidate=300')
    expect(headers.get('last-modified')).not.toBeNull()
    if (status === 304) {
      expect([body, headers.get('content-length'), headers.get('content-type')]).toEqual(['', null, null])
    } else {
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      expect(headers.get('etag')).toBe(`"${sha256}"`)
      expect(headers.get('content-length')).toBe(String(bytes.length))
    }
    return { status, headers, body, error: null }
  }
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('etag')).toBeNull()
  const { error, ...members } = JSON.parse(body) as { error: LiveRefusal }
  expect(LIVE_REFUSALS).toContain(error)
  const contracted = liveContract.refusals[error]
  expect([contracted.status, contracted.members ?? {}]).toEqual([status, members])
  return { status, headers, body, error }
}
