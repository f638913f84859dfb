import { describe, expect, test } from 'vitest'
import type { Signal } from '../../src/domain/feed/signal.ts'
import type { ArticleTexts, LiveSource } from '../../src/domain/ports.ts'
import { startOfDay } from '../../src/domain/time.ts'
import { collectArticles } from '../../src/jobs/collect.ts'
import { collectSources } from '../../src/jobs/collect-sources.ts'
import type { ArticlesOptions, ArticlesPorts, ArticlesReport } from '../../src/jobs/collect.ts'
import { localSource, unreachableUrl } from '../support/local-source.ts'
import { htmlSite, openTexts, pageHtml, site } from '../support/pages.ts'
import { signal } from '../support/signals.ts'
import { AS_OF, openWorkspace } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'
import { sourceClient } from '../support/source-client.ts'
import { shorten } from '../../src/domain/text.ts'

const NOW = startOfDay(AS_OF) + 3_600_000
const HOUR = 3_600_000

function run(
  { feed }: Workspace,
  texts: ArticleTexts,
  changes: Partial<ArticlesOptions & Pick<ArticlesPorts, 'clock' | 'onProgress'>> = {},
): Promise<ArticlesReport> {
  const { clock = () => NOW, onProgress = () => undefined, ...options } = changes
  return collectArticles(
    { feed, texts, clock, onProgress },
    {
      minPoints: { hn: 1, lobsters: 1, lesswrong: 1 },
      limit: 100,
      signal: new AbortController().signal,
      ...options,
    },
  )
}

const item = (sourceId: string, url: string | null, changes: Partial<Signal> = {}): Signal =>
  signal({ sourceId, url, day: AS_OF, ...changes })

/** The sources' own APIs on one local server, asked as the program asks them. */
async function sourceApis(): Promise<Parameters<typeof openTexts>[0]> {
  const { url } = await localSource(({ target, body }, response) => {
    const id = /([^/]+)\.json$/.exec(target)?.[1] ?? ''
    const answer = target.startsWith('/item/')
      ? { id: Number(id), text: `<p>Ask ${id}<p>More.` }
      : target.startsWith('/s/')
        ? { short_id: id, description: `<p>Story ${id}</p>` }
        : {
            data: {
              post: { result: { _id: /"id":"(\w+)"/.exec(body)?.[1], contents: { html: '<p>Post</p>' } } },
            },
          }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
  })
  const client = sourceClient()
  return {
    urls: { hn: url, lobsters: url, lesswrong: `${url}/graphql` },
    fetchJson: (request, stop) =>
      client.fetchJson<unknown>({ ...request, absent: null, read: (answer) => answer }, stop),
  }
}

test('a run stores the texts of sources and pages, with their origin and time', async () => {
  const workspace = await openWorkspace()
  const page = await htmlSite(pageHtml('The page'))
  await workspace.feed.importSignals([
    item('1', null),
    item('2', `${page.url}/a`),
    item('abc', null, { source: 'lobsters' }),
    item('x', 'https://www.lesswrong.com/posts/x', { source: 'lesswrong' }),
    item('low', null, { points: 0 }),
  ])
  const progress: string[] = []
  const report = await run(workspace, openTexts(await sourceApis()), {
    onProgress: (done, wanted) => progress.push(`${done}/${wanted}`),
  })
  expect(report).toEqual({ wanted: 4, stored: 4, skipped: {}, failed: [], failedCount: 0 })
  expect(progress).toEqual(['1/4', '2/4', '3/4', '4/4'])
  const { feed } = workspace
  expect(await feed.article('hn', '1')).toEqual({
    source: 'hn',
    sourceId: '1',
    text: 'Ask 1\n\nMore.',
    provenance: 'hn:item-text',
    fetchedAt: NOW,
  })
  expect(await feed.article('hn', '2')).toMatchObject({
    text: expect.stringContaining('The page, with') as string,
    provenance: `page:readability ${page.url}/a`,
  })
  expect((await feed.article('lobsters', 'abc'))?.text).toBe('Story abc')
  expect((await feed.article('lesswrong', 'x'))?.provenance).toBe('lesswrong:post-body')
  expect(await run(workspace, openTexts())).toMatchObject({ wanted: 0, stored: 0 })
})

test('a failing server does not affect the texts of other items', async () => {
  const workspace = await openWorkspace()
  const good = await htmlSite(pageHtml('A good page'))
  const reset = await site((_question, response) => response.socket?.resetAndDestroy())
  await workspace.feed.importSignals(
    [reset.url, await unreachableUrl(), 'http://10.0.0.1/', 'http://10.0.0.2/', good.url].map((url, index) =>
      item(String(index), url, { points: 100 - index }),
    ),
  )
  const report = await run(workspace, openTexts())
  expect(report).toMatchObject({ wanted: 5, stored: 1, skipped: { private: 2 }, failedCount: 2 })
  expect(report.failed.map(({ key }) => key).sort()).toEqual(['hn-0', 'hn-1'])
  for (const { reason } of report.failed) expect(reason).not.toBe('')
  expect((await workspace.feed.article('hn', '4'))?.text).toContain('A good page')
})

test('a report names the bad rows of a source, and each cause of its failures once', async () => {
  const { feed } = await openWorkspace()
  const failures = ['a: x', 'b: x', 'c: y', 'd: z', 'e: w'].map((reason) => ({ reason, retryAt: null }))
  const badRows = [
    { sourceId: '1', reason: 'bad' },
    { sourceId: null, reason: 'worse' },
  ]
  const batch = { signals: [], details: [], badRows, failures, requests: 1, notModified: 0, skews: [] }
  const source: LiveSource = {
    source: 'hn',
    missingSettings: [],
    async *read() {
      yield batch
    },
  }
  const ports = { feed, clock: () => NOW, onProgress: () => undefined }
  expect((await collectSources(ports, [source], new AbortController().signal)).sources.hn).toMatchObject({
    outcome: 'failed',
    badRows: 2,
    problems: ['1: bad', 'worse'],
    reason: 'a: x (and at 1 more address); c: y; d: z; and 1 more',
  })
})

test('a report has the first hundred failures, and the number of all', async () => {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(Array.from({ length: 101 }, (_, index) => item(`${index}`, null)))
  const failing: ArticleTexts = {
    read: () => Promise.resolve({ kind: 'failed', reason: 'the server is down', notBefore: null }),
  }
  const report = await run(workspace, failing, { limit: 101 })
  expect(report).toMatchObject({ wanted: 101, failedCount: 101 })
  expect(report.failed).toHaveLength(100)
})

describe('an item whose text could not be read', () => {
  test('an unreadable item waits for its next attempt, is tried a few times, and then no more', async () => {
    const workspace = await openWorkspace()
    const { url, requests } = await site((_question, response) => void response.writeHead(500).end())
    await workspace.feed.importSignals([item('1', url)])
    const at = (hours: number): Promise<ArticlesReport> =>
      run(workspace, openTexts(), { clock: () => NOW + hours * HOUR })
    const wanted: number[] = []
    for (const hours of [0, 5, 6, 29, 30, 125, 126, 160]) wanted.push((await at(hours)).wanted)
    expect(wanted).toEqual([1, 0, 1, 0, 1, 0, 1, 0])
    expect(requests.filter(({ target }) => target === '/')).toHaveLength(4)
  })

  test('an item is read when its server has recovered', async () => {
    const workspace = await openWorkspace()
    let broken = true
    const { url } = await site((_question, response) => {
      if (broken) response.writeHead(503, { 'retry-after': '36000' }).end()
      else response.writeHead(200, { 'content-type': 'text/html' }).end(pageHtml('Recovered'))
    })
    await workspace.feed.importSignals([item('1', url), item('2', url)])
    const first = await run(workspace, openTexts({ clock: () => NOW }))
    expect(first).toMatchObject({ wanted: 2, stored: 0, skipped: { busy: 1 }, failedCount: 1 })
    broken = false
    expect(await run(workspace, openTexts(), { clock: () => NOW + 9 * HOUR })).toMatchObject({ wanted: 0 })
    expect(await run(workspace, openTexts(), { clock: () => NOW + 10 * HOUR })).toMatchObject({ stored: 2 })
  })
})

test('a run reads no more items than its limit', async () => {
  const workspace = await openWorkspace()
  const { url } = await htmlSite(pageHtml('A page'))
  await workspace.feed.importSignals(
    [1, 2, 3].map((points) => item(String(points), `${url}/${points}`, { points })),
  )
  expect(await run(workspace, openTexts(), { limit: 2 })).toMatchObject({ wanted: 2, stored: 2 })
  expect(await workspace.feed.article('hn', '1')).toBeNull()
  expect(await run(workspace, openTexts(), { limit: 0 })).toMatchObject({ wanted: 0 })
})

test('an aborted run keeps what it has stored and rejects with the reason', async () => {
  const workspace = await openWorkspace()
  const good = await htmlSite(pageHtml('A page'))
  const endless = await site(
    (_question, response) => void response.writeHead(200, { 'content-type': 'text/html' }).write('x'),
  )
  await workspace.feed.importSignals([
    item('1', good.url, { points: 9 }),
    item('2', endless.url, { points: 8 }),
  ])
  const controller = new AbortController()
  const reason = new Error('the run was ended')
  const running = run(workspace, openTexts(), {
    signal: controller.signal,
    onProgress: () => controller.abort(reason),
  })
  await expect(running).rejects.toBe(reason)
  expect(await workspace.feed.article('hn', '1')).not.toBeNull()
  expect(await run(workspace, openTexts({ pageMs: 100 }))).toMatchObject({ wanted: 1 })
})

test('an error of the store ends the run, and no item is still running', async () => {
  const workspace = await openWorkspace()
  const { url } = await htmlSite(pageHtml('A page'))
  await workspace.feed.importSignals([item('1', url), item('2', `${url}/2`)])
  const fault = new Error('the disk is full')
  let reads = 0
  const texts: ArticleTexts = {
    async read(...args) {
      reads += 1
      return openTexts().read(...args)
    },
  }
  const feed = { ...workspace.feed, saveArticles: () => Promise.reject(fault) }
  await expect(run({ ...workspace, feed }, texts)).rejects.toBe(fault)
  expect(reads).toBe(1)
})

test.each([
  ['a text', 'a text'],
  ['two\r\n  lines', 'two lines'],
  ['😀'.repeat(400), '😀'.repeat(400)],
  ['😀'.repeat(401), `${'😀'.repeat(400)}…`],
  ['x'.repeat(5_000_000), `${'x'.repeat(400)}…`],
  [`a${' '.repeat(900)}b`, 'a …'],
])('a text of a report is one line of at most 400 characters', (text, short) => {
  expect(shorten(text)).toBe(short)
})
