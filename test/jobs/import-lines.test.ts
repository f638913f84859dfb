import { describe, expect, test } from 'vitest'
import type { LineSource } from '../../src/domain/ports.ts'
import { Refusal } from '../../src/domain/refusal.ts'
import { windowEnding } from '../../src/domain/year/ledger.ts'
import { importSignals, importArticles } from '../../src/jobs/import-lines.ts'
import type { ImportOptions, ImportReport, LinesReport } from '../../src/jobs/import-lines.ts'
import { AS_OF, openWorkspace } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'
import { signal } from '../support/signals.ts'

/** A file of these lines. */
const file = (name: string, ...texts: string[]): LineSource => ({
  name,
  async *lines() {
    yield texts.map((text, index) => ({ number: index + 1, text }))
  },
})

const good = (id: string, changes: Record<string, unknown> = {}): string =>
  JSON.stringify({
    source: 'hn',
    sourceId: id,
    day: AS_OF,
    title: `title ${id}`,
    url: 'https://example.org/',
    points: 1,
    comments: null,
    publishedAt: `${AS_OF}T01:00:00Z`,
    extra: 'ignored',
    ...changes,
  })

const NEVER = new AbortController().signal

function run(
  { feed }: Workspace,
  sources: readonly LineSource[],
  options: Partial<ImportOptions> = {},
): Promise<ImportReport> {
  return importSignals({ feed, onProgress: () => undefined }, sources, {
    onError: 'abort',
    titleProvenance: null,
    signal: NEVER,
    ...options,
  })
}

async function storedIds({ feed }: Workspace): Promise<string[]> {
  return (await feed.readWindow(windowEnding(AS_OF))).events.map((event) => event.sourceId).sort()
}

describe('a file with a bad row', () => {
  const sources = [
    file('a', good('a1')),
    file('b', good('b1'), '{"source":"hn"', good('b2')),
    file('c', good('c1')),
  ]

  test('a file with a bad row is left out whole under abort; the files around it are imported', async () => {
    const workspace = await openWorkspace()
    const report = await run(workspace, sources)
    expect(await storedIds(workspace)).toEqual(['a1', 'c1'])
    const counts = { files: 3, rows: 5, inserted: 2, skipped: 0, errorCount: 1, failedFiles: 1 }
    expect(report).toMatchObject(counts)
    expect(report.errors).toMatchObject([{ file: 'b', line: 2, reason: expect.stringContaining('not JSON') }])
  })

  test('a file with a bad row gives its good rows under skip', async () => {
    const workspace = await openWorkspace()
    const report = await run(workspace, sources, { onError: 'skip' })
    expect(await storedIds(workspace)).toEqual(['a1', 'b1', 'b2', 'c1'])
    expect(report).toMatchObject({ rows: 5, inserted: 4, skipped: 1, errorCount: 1, failedFiles: 0 })
  })

  test('a file with bad rows is reported with the first hundred errors and the count of all', async () => {
    const report = await run(await openWorkspace(), [file('bad', ...Array.from({ length: 250 }, () => '[]'))])
    expect(report.errors).toHaveLength(100)
    expect(report).toMatchObject({ errorCount: 250, rows: 250 })
  })
})

test('a byte order mark before a row is ignored; arrays and objects over several lines are reported with the remedy', async () => {
  const files = [file('a', `\uFEFF${good('1')}`), file('b', ' [1,'), file('c', '\uFEFF{')]
  const report = await run(await openWorkspace(), files)
  const remedy = { reason: expect.stringContaining('; write one object per line, as jq -c') as string }
  expect(report).toMatchObject({ inserted: 1, errors: [remedy, remedy] })
})

test('rows of unknown sources are counted by name, outside the errors and the skipped', async () => {
  const workspace = await openWorkspace()
  const odd = ['digg', 'digg', '__proto__'].map((source) => good('x', { source }))
  const report = await run(workspace, [file('a', good('1'), ...odd)])
  expect(Object.entries(report.unknownSources)).toEqual([
    ['digg', 2],
    ['__proto__', 1],
  ])
  expect(report).toMatchObject({ rows: 4, inserted: 1, skipped: 0, errorCount: 0, failedFiles: 0 })
})

test('rows that lack what a Year needs are counted by what they lack, once, whatever becomes of their file', async () => {
  const image = { source: 'midjourney', publishedAt: null }
  const lines = [
    good('1'),
    good('2', { points: null, publishedAt: null }),
    good('3', image),
    good('4', { ...image, titleProvenance: 'midjourney:archive' }),
    good('5', { source: 'hype:github', points: 0 }),
  ]
  const lacking = { noPoints: 1, noPublicationTime: 3, noTitleProvenance: 2 }
  for (const onError of ['abort', 'skip'] as const) {
    const report = await run(await openWorkspace(), [file('a', ...lines), file('b', '[]')], { onError })
    expect(report.notForYear).toEqual(lacking)
  }
  const vouched = [file('a', good('5', { source: 'hype:github' }))]
  const titleProvenance = 'hype:github:search'
  expect((await run(await openWorkspace(), vouched, { titleProvenance })).notForYear).toEqual({})
})

test('long names and reasons are shortened in the report', async () => {
  const lines = [
    good('1', { source: 'x'.repeat(10_000) }),
    good('2', { titleProvenance: '\u0001'.repeat(250) }),
  ]
  const report = await run(await openWorkspace(), [file('a', ...lines)])
  expect(Object.keys(report.unknownSources).map((key) => key.length)).toEqual([401])
  expect(report.errors[0]?.reason.length).toBe(401)
})

test('a provenance for the whole file is counted, and refused for rows of another source', async () => {
  const workspace = await openWorkspace()
  const own = good('2', { titleProvenance: 'hn:own' })
  const report = await run(workspace, [file('a', good('1'), own, good('3', { source: 'lobsters' }))], {
    onError: 'skip',
    titleProvenance: 'hn:page-archive',
  })
  expect(report).toMatchObject({ vouched: 1, inserted: 2, skipped: 1 })
  const { events } = await workspace.feed.readWindow(windowEnding(AS_OF))
  expect(events.map((event) => event.titleProvenance).sort()).toEqual(['hn:own', 'hn:page-archive'])
})

test('a file that cannot be read to its end keeps the rows that skip had imported, and fails', async () => {
  const workspace = await openWorkspace()
  const broken = (name: string): LineSource => ({
    name,
    async *lines() {
      yield [{ number: 1, text: good(name) }]
      throw new Refusal('input_unreadable', 'unexpected end of file')
    },
  })
  const skipped = await run(workspace, [broken('s'), file('b', good('after'))], { onError: 'skip' })
  const aborted = await run(workspace, [broken('a')])
  expect(await storedIds(workspace)).toEqual(['after', 's'])
  expect(skipped).toMatchObject({ failedFiles: 1, errors: [{ file: 's', line: null }] })
  expect(aborted).toMatchObject({ failedFiles: 1, inserted: 0 })
})

test('a file that changes between its two reads is refused', async () => {
  const workspace = await openWorkspace()
  let readings = 0
  const changing: LineSource = {
    name: 'changing',
    async *lines() {
      readings += 1
      yield [{ number: 1, text: readings === 1 ? good('1') : 'garbage' }]
    },
  }
  const report = await run(workspace, [changing])
  const errors = [{ reason: expect.stringContaining('changed') as string }]
  expect(report).toMatchObject({ inserted: 0, failedFiles: 1, errors })
})

const row = (key: string, changes: Record<string, unknown> = {}): string =>
  JSON.stringify({
    key,
    text: `text of ${key}`,
    fetchedAt: '2026-03-01T12:00:00Z',
    provenance: 'import:test',
    ...changes,
  })

const runArticles = ({ feed }: Workspace, sources: readonly LineSource[]): Promise<LinesReport> =>
  importArticles({ feed, onProgress: () => undefined }, sources, { onError: 'abort', signal: NEVER })

test('texts are stored as plain text for the item of their key; one that may name several items is that of the stored one', async () => {
  const workspace = await openWorkspace()
  const { feed } = workspace
  await feed.importSignals([signal({ source: 'hype:hf-papers', sourceId: '1' })])
  const markup = row('hn-1', { text: 'A  b: <script>\u200B</script>\n' })
  const rows = ['hype-hf-papers-1', 'hype-hf-papers-2', 'hype-github-owner/a-b'].map((key) => row(key))
  const report = await runArticles(workspace, [file('a', markup, ...rows)])
  expect(report).toMatchObject({ rows: 4, inserted: 4, errorCount: 0 })
  const plain = { text: 'A  b: <script></script>', provenance: 'import:test' }
  expect(await feed.article('hn', '1')).toMatchObject(plain)
  for (const [source, id, key] of [
    ['hype:github', 'owner/a-b', 'hype-github-owner/a-b'],
    ['hype:hf-papers', '1', 'hype-hf-papers-1'],
    ['hype:hf', 'papers-2', 'hype-hf-papers-2'],
  ] as const)
    expect(await feed.article(source, id)).toMatchObject({ text: `text of ${key}` })
  expect(await feed.article('hype:hf', 'papers-1')).toBeNull()
})

test('repeated rows change nothing, and a later row replaces an earlier one, also with an older time', async () => {
  const workspace = await openWorkspace()
  const rows = Array.from({ length: 45 }, (_, index) => row(`hn-${index + 1}`))
  expect(await runArticles(workspace, [file('a', ...rows)])).toMatchObject({ inserted: 45 })
  expect(await runArticles(workspace, [file('a', ...rows)])).toMatchObject({ inserted: 0, unchanged: 45 })
  const changed = [row('hn-1', { text: 'x' }), row('hn-1', { fetchedAt: '2020-01-01T00:00:00Z' })]
  expect(await runArticles(workspace, [file('a', ...changed)])).toMatchObject({ replaced: 2 })
  expect((await workspace.feed.article('hn', '1'))?.fetchedAt).toBe(Date.UTC(2020, 0, 1))
})
