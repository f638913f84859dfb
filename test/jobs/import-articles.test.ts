import { expect, test } from 'vitest'
import type { LineSource } from '../../src/domain/ports.ts'
import { Refusal } from '../../src/domain/refusal.ts'
import { importArticles } from '../../src/jobs/import-lines.ts'
import type { LinesOptions, LinesReport } from '../../src/jobs/import-lines.ts'
import { lineSource } from '../support/line-source.ts'
import { signal } from '../support/signals.ts'
import { openWorkspace } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

const row = (key: string, changes: Record<string, unknown> = {}): string =>
  JSON.stringify({
    key,
    text: `text of ${key}`,
    fetchedAt: '2026-03-01T12:00:00Z',
    provenance: 'import:test',
    ...changes,
  })

function run(
  { feed }: Workspace,
  sources: readonly LineSource[],
  options: Partial<LinesOptions> = {},
): Promise<LinesReport> {
  const { signal: stopped } = new AbortController()
  return importArticles({ feed, onProgress: () => undefined }, sources, {
    onError: 'abort',
    signal: stopped,
    ...options,
  })
}

test('texts are stored by the item their key names, made plain', async () => {
  const workspace = await openWorkspace()
  const lines = [row('hn-1', { text: '<p>A  b</p><script>x</script>' }), row('hype-github-owner/a-b')]
  expect(await run(workspace, [lineSource('a', ...lines)])).toEqual({
    files: 1,
    rows: 2,
    inserted: 2,
    replaced: 0,
    unchanged: 0,
    skipped: 0,
    errors: [],
    errorCount: 0,
    failedFiles: 0,
  })
  const { feed } = workspace
  expect(await feed.article('hn', '1')).toMatchObject({ text: 'A b', provenance: 'import:test' })
  expect(await feed.article('hype:github', 'owner/a-b')).toMatchObject({
    text: 'text of hype-github-owner/a-b',
  })
})

test('a key that may name several items is that of the one that is stored', async () => {
  const workspace = await openWorkspace()
  const { feed } = workspace
  await feed.importSignals([signal({ source: 'hype:hf-papers', sourceId: '1' })])
  const rows = ['hype-hf-papers-1', 'hype-hf-papers-2', 'hn-1'].map((key) => row(key))
  expect(await run(workspace, [lineSource('a', ...rows)])).toMatchObject({ inserted: 3, errorCount: 0 })
  expect(await feed.article('hype:hf-papers', '1')).toMatchObject({ text: 'text of hype-hf-papers-1' })
  expect(await feed.article('hype:hf', 'papers-1')).toBeNull()
  expect(await feed.article('hype:hf', 'papers-2')).toMatchObject({ text: 'text of hype-hf-papers-2' })
})

test('the same rows again change nothing, and a later row replaces, an older time too', async () => {
  const workspace = await openWorkspace()
  const rows = Array.from({ length: 45 }, (_, index) => row(`hn-${index + 1}`))
  expect(await run(workspace, [lineSource('a', ...rows)])).toMatchObject({ inserted: 45 })
  expect(await run(workspace, [lineSource('a', ...rows)])).toMatchObject({ inserted: 0, unchanged: 45 })
  const changed = [row('hn-1', { text: 'x' }), row('hn-1', { fetchedAt: '2020-01-01T00:00:00Z' })]
  expect(await run(workspace, [lineSource('a', ...changed)])).toMatchObject({ replaced: 2 })
  expect((await workspace.feed.article('hn', '1'))?.fetchedAt).toBe(Date.UTC(2020, 0, 1))
})

test.each([
  ['abort', { inserted: 2, skipped: 0, failedFiles: 1 }, ['hn-1', 'hn-4']],
  ['skip', { inserted: 3, skipped: 1, failedFiles: 0 }, ['hn-1', 'hn-2', 'hn-4']],
] as const)('a bad row, under %s', async (onError, expected, kept) => {
  const workspace = await openWorkspace()
  const sources = [
    lineSource('a', row('hn-1')),
    lineSource('b', row('hn-2'), row('digg-3')),
    lineSource('c', row('hn-4')),
  ]
  const report = await run(workspace, sources, { onError })
  expect(report).toMatchObject({ files: 3, rows: 4, errorCount: 1, ...expected })
  expect(report.errors).toMatchObject([
    { file: 'b', line: 2, reason: expect.stringContaining('key: ') as string },
  ])
  const stored = []
  for (const id of ['1', '2', '4']) if (await workspace.feed.article('hn', id)) stored.push(`hn-${id}`)
  expect(stored).toEqual(kept)
})

test('a file that breaks off fails, and keeps under skip what came before', async () => {
  const workspace = await openWorkspace()
  const broken: LineSource = {
    name: 'broken',
    async *lines() {
      yield [{ number: 1, text: row('hn-1') }]
      throw new Refusal('input_unreadable', 'unexpected end of file')
    },
  }
  expect(await run(workspace, [broken], { onError: 'skip' })).toMatchObject({ inserted: 1, failedFiles: 1 })
})
