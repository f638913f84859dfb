import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { archiveFolder } from '../../../src/adapters/input.ts'
import { importArchive } from '../../../src/jobs/import-archive.ts'
import { askHistory, openApp } from '../../support/api-client.ts'
import { importPortsOf, importSample, recentArchive, SAMPLE_ARCHIVE } from '../../support/legacy-archive.ts'
import { AS_OF, openWorkspace, publishDays, RUN_AT, sampleSignals } from '../../support/workspace.ts'

/** What the bundled archive answers, by the time asked for. */
const ANSWERS: [at: string, file: string | null][] = [
  ['2024-01-02T00:04:59.999Z', null],
  ['2024-01-02T00:05:00Z', 'v1-plain'],
  ['2024-01-03T00:04:59.999Z', 'v1-plain'],
  ['2024-01-03T00:05:00Z', 'v1-number-escapes-newline'],
  // Both ledgers have a publication of this very millisecond.
  ['2024-01-04T00:05:00Z', 'v2-duplicate-keys'],
  ['2024-01-05T00:05:00.249Z', 'v2-duplicate-keys'],
  ['2024-01-05T00:05:00.25Z', 'v2-indented'],
  ['2024-01-07T00:05:00Z', 'v2-after-a-hole'],
  ['2026-03-01T00:00:00Z', 'v2-after-a-hole'],
]

test.each(ANSWERS)('both imported ledgers answer %s with the bytes of %s', async (at, file) => {
  const workspace = await openWorkspace()
  await importSample(workspace)
  const { status, bytes, headers } = await askHistory(openApp(workspace), `?sort=year&at=${at}`)
  if (file === null) {
    expect(status).toBe(404)
    return
  }
  const original = readFileSync(join(SAMPLE_ARCHIVE, 'objects', file))
  expect([status, headers.get('content-length')]).toEqual([200, String(original.length)])
  expect(bytes.equals(original)).toBe(true)
})

test('an imported publication is answered 304 for its ETag, and has its own Last-Modified', async () => {
  const workspace = await openWorkspace()
  await importSample(workspace)
  const app = openApp(workspace)
  const query = '?sort=year&at=2024-01-05T00:05:00.25Z'
  const { headers } = await askHistory(app, query)
  expect(headers.get('last-modified')).toBe('Fri, 05 Jan 2024 00:05:00 GMT')
  const etag = headers.get('etag') ?? ''
  expect((await askHistory(app, query, { headers: { 'if-none-match': etag } })).status).toBe(304)
})

test('own publications follow the imported ones, whose answers stay what they were', async () => {
  const workspace = await openWorkspace()
  await importArchive(importPortsOf(workspace, recentArchive()))
  const app = openApp(workspace, { clock: () => RUN_AT + 60_000 })
  const before = await askHistory(app, '?sort=year')
  await workspace.feed.importSignals(sampleSignals())
  await publishDays(workspace, [AS_OF])
  const { proved } = await workspace.year.read()
  const after = await askHistory(app, '?sort=year')
  expect(after.headers.get('etag')).toBe(`"${proved.timeline.at(-1)?.manifest.sha256}"`)
  const then = await askHistory(app, '?sort=year&at=2026-03-02T00:00:00Z')
  expect(then.bytes.equals(before.bytes)).toBe(true)
})

test('an import that was begun and not committed reads as an empty archive', async () => {
  const workspace = await openWorkspace()
  const cut = new Error('cut')
  const ports = importPortsOf(workspace, SAMPLE_ARCHIVE, {
    folder: archiveFolder(SAMPLE_ARCHIVE),
    ledger: { ...workspace.ledger, found: () => Promise.reject(cut) },
  })
  await expect(importArchive(ports)).rejects.toBe(cut)
  expect((await workspace.year.read()).head?.seq).toBe(3)
  const app = openApp(workspace)
  expect((await askHistory(app, '?sort=year')).error).toBe('year_history_not_found')
  await importSample(workspace)
  expect((await askHistory(app, '?sort=year')).status).toBe(200)
})

test('a legacy row or object that is damaged is refused, never skipped', async () => {
  const workspace = await openWorkspace()
  await importSample(workspace)
  const { proved } = await workspace.year.read()
  const [first] = proved.timeline
  const archive = { ...workspace.archive, get: () => Promise.resolve(null) }
  const app = openApp({ ...workspace, archive })
  const at = new Date(first?.manifest.publishedAt ?? 0).toISOString()
  expect((await askHistory(app, `?sort=year&at=${at}`)).error).toBe('year_history_archive_corrupt')
})
