import { describe, expect, test } from 'vitest'
import { COLUMN_NAMES } from '../../../src/domain/feed/columns.ts'
import { addDays, formatInstant } from '../../../src/domain/time.ts'
import { yearEnvelopeSchema } from '../../../src/domain/year/schema.ts'
import { storageDamaged } from '../../../src/domain/refusal.ts'
import { openApp, silentLog } from '../../support/api-client.ts'
import { requestHistory } from '../contract-client.ts'
import { openSampleApp, sampleArchive } from '../../support/sample-archive.ts'
import { AS_OF, manifestsOf, openWorkspace, publishedWorkspace, RUN_AT } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

const SECOND_DAY = addDays(AS_OF, 1)

const published = (): Promise<Workspace> => publishedWorkspace([AS_OF, SECOND_DAY])

describe('an answer', () => {
  test('a response is the archived object of its ETag byte for byte, and names the normalized lookup time and the publication time', async () => {
    const workspace = await published()
    const query = '?sort=year&at=2026-03-02T12:00:00.5Z'
    const { headers, bytes } = await requestHistory(openApp(workspace), query)
    expect(bytes).toEqual(await workspace.objects.get((headers.get('etag') ?? '').replaceAll('"', '')))
    expect(headers.get('content-encoding')).toBeNull()
    expect(headers.get('x-year-history-requested-at')).toBe('2026-03-02T12:00:00.500Z')
    expect(headers.get('last-modified')).toBe(new Date(Math.floor(RUN_AT / 1000) * 1000).toUTCString())
  })

  test('a response as CSV has the items of every list of the same publication, with its times and links', async () => {
    const workspace = await published()
    const app = openApp(workspace)
    const [first] = await manifestsOf(workspace)
    const at = formatInstant(first?.publishedAt ?? 0)
    const json = await requestHistory(app, `?sort=year&at=${at}`)
    const csv = await requestHistory(app, `.csv?sort=year&at=${at}`)
    for (const name of ['last-modified', 'memento-datetime', 'cdn-cache-control'])
      expect([name, csv.headers.get(name)]).toEqual([name, json.headers.get(name)])
    expect(csv.headers.get('link')).toContain('</api/feed/history.csv?sort=year>; rel="original"')
    expect(csv.headers.get('content-disposition')).toBe(`attachment; filename="dash-year-${AS_OF}.csv"`)
    const { feed } = yearEnvelopeSchema.parse(JSON.parse(json.text))
    const rows = COLUMN_NAMES.flatMap((list) => feed[list].map(({ key }) => [list, key].join()))
    const lines = csv.text.trimEnd().split('\r\n').slice(1)
    expect(rows.length).toBeGreaterThan(5)
    expect(lines.map((line) => line.split(',').slice(0, 2).join())).toEqual(rows)
  })

  test('a publication of an older layout is refused as CSV', async () => {
    const app = openSampleApp(sampleArchive())
    expect((await requestHistory(app, '?sort=year')).status).toBe(200)
    expect((await requestHistory(app, '.csv?sort=year')).error).toBe('year_history_older_layout')
  })

  test('the time defaults to now, and may be at most five minutes ahead', async () => {
    const workspace = await published()
    const [first, second] = await manifestsOf(workspace)
    const publishedAt = second?.publishedAt ?? 0
    const app = openApp(workspace, { clock: () => publishedAt - 300_000 })
    const etagOf = async (query: string) => (await requestHistory(app, query)).headers.get('etag')
    expect(await etagOf('?sort=year')).toBe(`"${first?.sha256}"`)
    expect(await etagOf(`?sort=year&at=${formatInstant(publishedAt)}`)).toBe(`"${second?.sha256}"`)
  })
})

test('refusals have the documented order: method, sort, at, lookup', async () => {
  const app = openApp(await openWorkspace())
  expect((await requestHistory(app, '?at=x', { method: 'POST' })).error).toBe('method_not_allowed')
  expect((await requestHistory(app, '?at=x')).error).toBe('invalid_sort')
  expect((await requestHistory(app, '?sort=year')).error).toBe('year_history_not_found')
})

test('anything unexpected is year_history_lookup_failed, and logged once with the request id', async () => {
  const workspace = await openWorkspace()
  const lines: Record<string, unknown>[] = []
  const log = { ...silentLog, error: (fields: Record<string, unknown>) => void lines.push(fields) }
  const year = { read: () => Promise.reject(new Error('disk on fire')) }
  const app = openApp(workspace, { year, log })
  const request = { headers: { 'x-request-id': 'from-the-client' } }
  const { error, headers } = await requestHistory(app, '?sort=year', request)
  expect(error).toBe('year_history_lookup_failed')
  expect(headers.get('x-request-id')).toBe('from-the-client')
  expect(lines).toMatchObject([{ requestId: 'from-the-client', code: 'year_history_lookup_failed' }])
})

const NO_SORTS = ['', '?sort=', '?sort=year&sort=year', '?sort=Year', '?sort=day', '?sort=year%20']
/** A plus sign is a space in a query; the domain tests cover other invalid times. */
const NO_TIMES = ['', '2026-02-30T00:00:00Z', '2026-01-01T00:00:00+00:00', '2026-01-01T00:00:00Z&at=x']

test('a store is not read for a bad query, which is 400', async () => {
  const year = { read: () => Promise.reject(storageDamaged('the store holds something else')) }
  const app = openApp(await openWorkspace(), { year })
  for (const query of NO_SORTS)
    expect(await requestHistory(app, query), query).toMatchObject({ status: 400, error: 'invalid_sort' })
  const invalid = { status: 400, error: 'invalid_at' }
  for (const at of NO_TIMES)
    expect(await requestHistory(app, `?sort=year&at=${at}`), at).toMatchObject(invalid)
  const damaged = { status: 503, error: 'year_history_archive_corrupt' }
  expect(await requestHistory(app, '?sort=year')).toMatchObject(damaged)
})
