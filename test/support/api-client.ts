import type { H3 } from 'h3'
import { expect } from 'vitest'
import { BASE_URL } from '../../src/domain/models/catalogue.ts'
import { HISTORY_REFUSALS } from '../../src/domain/year/history.ts'
import type { HistoryRefusal } from '../../src/domain/year/history.ts'
import { createApp } from '../../src/server/app.ts'
import type { ServerPorts } from '../../src/server/app.ts'
import type { Log } from '../../src/server/route.ts'
import { requestMeter } from '../../src/server/metrics/instruments.ts'
import { historyContract } from '../../src/server/year/history.ts'
import { NO_CHAT } from './no-chat.ts'
import type { Workspace } from './workspace.ts'

export const silentLog: Log = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** The whole application over a workspace, without a socket. */
export function openApp(workspace: Workspace, changes: Partial<ServerPorts> = {}): H3 {
  return createApp({
    ...workspace,
    trustedProxies: [],
    agent: NO_CHAT,
    mcp: null,
    widgetUrl: null,
    clock: Date.now,
    log: silentLog,
    checks: { ledger: () => workspace.ledger.ping(), archive: () => workspace.archive.ping() },
    isDraining: () => false,
    requests: requestMeter(),
    demo: false,
    publishedBaseUrl: BASE_URL,
    baseUrl: () => 'http://dash.test',
    ...changes,
  })
}

export interface HistoryAnswer {
  status: number
  headers: Headers
  bytes: Buffer
  /** The refusal code of a failure, else null. */
  error: HistoryRefusal | null
}

/** Asks the history endpoint and holds every answer to its contract: status, headers, body. */
export async function askHistory(
  app: Pick<H3, 'request'>,
  query: string,
  init: { method?: string; headers?: Record<string, string> } = {},
): Promise<HistoryAnswer> {
  const response = await app.request(`http://dash.test/api/feed/history${query}`, init)
  const bytes = Buffer.from(await response.arrayBuffer())
  const { status, headers } = response
  expect(headers.get('access-control-allow-origin')).toBe('*')
  expect(headers.get('x-request-id')).toMatch(/^[\w.:-]+$/)
  if (init.method === 'OPTIONS') return { status, headers, bytes, error: null }
  expect(headers.get('access-control-expose-headers')).toBe(
    'ETag, Last-Modified, Link, X-Year-History-Requested-At',
  )
  expect(headers.get('link')).toContain('rel="service-desc"')
  if (status === 200 || status === 304) {
    for (const name of ['etag', 'last-modified', 'x-year-history-requested-at', 'repr-digest']) {
      expect(headers.get(name), name).not.toBeNull()
    }
    expect(headers.get('cache-control')).toBe('public, max-age=300, stale-while-revalidate=3600')
    if (status === 304) expect(bytes).toHaveLength(0)
    return { status, headers, bytes, error: null }
  }
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('etag')).toBeNull()
  const body = JSON.parse(bytes.toString()) as { error: HistoryRefusal }
  expect(Object.keys(body)).toEqual(['error'])
  expect(HISTORY_REFUSALS).toContain(body.error)
  expect(historyContract.refusals[body.error].status).toBe(status)
  return { status, headers, bytes, error: body.error }
}
