import { describe, expect, test } from 'vitest'
import type { Signal } from '../../../src/domain/feed/signal.ts'
import type { SearchCaller } from '../../../src/domain/feed/search/search.ts'
import type { CallerSearch } from '../../../src/domain/ports.ts'
import { addDays } from '../../../src/domain/time.ts'
import { runCall } from '../../../src/server/agent/tools.ts'
import type { ToolRun, AgentSources } from '../../../src/server/agent/tools.ts'
import { settledWorkspace, sourcesOf } from './agent-reads.ts'
import { signal as signalOf } from '../../support/signals.ts'
import { AS_OF, LONG_MS, openWorkspace, publishDays, RUN_AT, sampleSignals } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

const never = new AbortController().signal

/** A clock that lies after the publication of the sample. */
const NOW = RUN_AT + 3_600_000

interface Answer {
  output: Record<string, unknown>
  items: Record<string, unknown>[]
  run: ToolRun
}

/** A call has long enough for a busy machine, but where its time is the matter. */
function toolsOn(sources: AgentSources, timeoutMs = LONG_MS) {
  const faults: unknown[] = []
  const onFault = (_: string, error: unknown): void => void faults.push(error)
  const options = { group: 'chat', onFault, timeoutMs } as const
  const ask = async (name: string, args: object): Promise<Answer> => {
    const run = await runCall({ name, arguments: JSON.stringify(args) }, sources, options, never)
    const output = JSON.parse(run.output) as Record<string, unknown>
    return { output, items: (output['items'] ?? []) as Record<string, unknown>[], run }
  }
  return { faults, ask }
}

const workspaceWith = (signals: readonly Signal[]): Promise<Workspace> => settledWorkspace(signals, NOW)

/** The sources of the tools, with the sample stored. */
const sampleSources = async (): Promise<AgentSources> => sourcesOf(await workspaceWith(sampleSignals()), NOW)

/** Calls of the tools that only some of their arguments matter to. */
const FEED = { sort: 'day', limit: 1 }
const SEARCH = { query: 'title', sources: null, from: null, to: null, limit: 1 }
const TOP = { period: 'month', list: 'hackerNews', limit: 50, at: null }
const TREND = { key: null, term: null, from: null, to: null }

describe('each tool', () => {
  test('search_items returns items, marked as untrusted, each with key, title, link, day and points', async () => {
    const { ask } = toolsOn(await sampleSources())
    const query = { query: 'lobsters title', sources: ['lobsters'], from: null, to: null, limit: 2 }
    const { output, items, run } = await ask('search_items', query)
    expect(output).toMatchObject({ untrusted: true, source: 'dash search_items', more: true })
    expect(items).toHaveLength(2)
    expect(items[0]).toEqual({
      key: 'lobsters-lobsters3',
      title: 'lobsters title 3',
      link: 'https://example.org/lobsters/3',
      source: 'lobsters',
      day: addDays(AS_OF, -1),
      points: 30,
      comments: 3,
      match: 'all',
    })
    expect(run).toMatchObject({ failed: false, cacheable: true })
    expect((await ask('search_items', query)).run.output).toBe(run.output)
  })

  test('get_period_top returns the newest snapshot, and the year from the archive', async () => {
    const workspace = await workspaceWith(sampleSignals())
    await publishDays(workspace, [addDays(AS_OF, -1), AS_OF])
    const { ask } = toolsOn(sourcesOf(workspace, Date.now()))
    const week = await ask('get_period_top', { ...TOP, period: 'week', limit: 2 })
    expect(week.output).toMatchObject({ period: 'week', list: 'hackerNews', sort: 'week' })
    expect(week.items.map(({ rank, key }) => `${String(rank)} ${String(key)}`)).toEqual([
      '1 hn-hn3',
      '2 hn-hn2',
    ])
    const yearAt = (at: string | null): Promise<Answer> =>
      ask('get_period_top', { period: 'year', list: null, limit: 1, at })
    const year = await yearAt(null)
    expect(year.output).toMatchObject({ publication: `top-year-v3-${AS_OF}`, asOfDay: AS_OF })
    expect(year.items).toHaveLength(1)
    expect(year.run.cacheable).toBe(false)
    expect((await yearAt('2001-01-01T00:00:00Z')).output).toMatchObject({ publication: null })
    expect((await yearAt('2999-01-01T00:00:00Z')).output).toEqual({ error: 'at: lies in the future' })
  })

  test('get_feed_snapshot returns the top of every list, and an error without a snapshot', async () => {
    const { ask } = toolsOn(await sampleSources())
    const { output } = await ask('get_feed_snapshot', { sort: 'month', limit: 2 })
    expect(output).toMatchObject({
      sort: 'month',
      hypeReplicate: [],
      hackerNews: [{ key: 'hn-hn3' }, { key: 'hn-hn2' }],
    })
    expect(output['popular']).toHaveLength(2)
    const empty = toolsOn(sourcesOf(await openWorkspace(), NOW))
    const none = await empty.ask('get_feed_snapshot', { sort: 'month', limit: 2 })
    expect(none.output).toEqual({ error: 'no snapshot of the feed has been taken yet' })
    expect(empty.faults).toEqual([])
  })

  test('read_article returns a text in consecutive parts, and a note without a text', async () => {
    const workspace = await workspaceWith(sampleSignals())
    const text = Array.from({ length: 3_000 }, (_, index) => `слово ${index} 👍 "q" \\`).join('\n')
    await workspace.feed.saveArticles([
      { source: 'hn', sourceId: 'hn1', text, provenance: 'test:test', fetchedAt: 1_000 },
    ])
    const sources = sourcesOf(workspace, NOW)
    let read = ''
    let offset: number | null = 0
    for (let turns = 0; offset !== null && turns < 40; turns += 1) {
      const { output, run } = await toolsOn(sources).ask('read_article', { key: 'hn-hn1', offset })
      expect(Buffer.byteLength(run.output)).toBeLessThanOrEqual(8_192)
      expect(output).toMatchObject({
        untrusted: true,
        found: true,
        item: { key: 'hn-hn1' },
        readAt: '1970-01-01T00:00:01.000Z',
      })
      read += String(output['text'])
      offset = output['next_offset'] as number | null
    }
    expect(read).toBe(text)
    const readFrom = async (key: string, from: number | null): Promise<unknown> =>
      (await toolsOn(sources).ask('read_article', { key, offset: from })).output
    expect(await readFrom('hn-hn2', null)).toMatchObject({ found: true, text: null })
    expect(await readFrom('hn-none', null)).toMatchObject({ found: false })
    expect(await readFrom('hn-hn1', 999_999)).toMatchObject({ text: '', next_offset: null })
  })

  test('find_similar_items returns similar items', async () => {
    const rows = [
      signalOf({ sourceId: 'a', title: 'Sharding Postgres at scale' }),
      signalOf({ sourceId: 'b', title: 'What sharding Postgres taught us' }),
      signalOf({ sourceId: 'c', title: 'Zebra' }),
    ]
    const { ask } = toolsOn(sourcesOf(await workspaceWith(rows), NOW))
    const { output, items } = await ask('find_similar_items', { key: 'hn-a', limit: 3 })
    expect(output).toMatchObject({ found: true, to: 'hn-a' })
    expect(items[0]).toMatchObject({ key: 'hn-b', reasons: expect.any(Array), score: expect.any(Number) })
    const none = await ask('find_similar_items', { key: 'hn-none', limit: 3 })
    expect(none.output).toMatchObject({ found: false })
  })

  test('get_trend_history returns the days of an item or a term, newest first', async () => {
    const days = [AS_OF, addDays(AS_OF, -1), addDays(AS_OF, -2)]
    const rows = days.map((day, index) =>
      signalOf({ sourceId: 'a', day, title: 'zebra', points: 30 - index }),
    )
    const { ask } = toolsOn(sourcesOf(await workspaceWith(rows), NOW))
    const trend = (changes: object): Promise<Answer> => ask('get_trend_history', { ...TREND, ...changes })
    const item = await trend({ key: 'hn-a', from: days[1] })
    expect(item.output).toMatchObject({
      found: true,
      item: { key: 'hn-a' },
      days: [
        { day: days[0], points: 30, rank: 1, of: 1 },
        { day: days[1], points: 29 },
      ],
    })
    const term = await trend({ term: 'zebra' })
    expect(term.output).toMatchObject({ term: 'zebra', mentions: 1, days: [{ mentions: 1 }] })
    expect((await trend({ key: 'hn-none' })).output).toMatchObject({ found: false })
  })
})

describe('the bounds of a call', () => {
  test('a result above the byte limit omits whole entries, and counts them', async () => {
    const long = Array.from({ length: 100 }, (_, index) =>
      signalOf({
        sourceId: `${index}`,
        title: `${'длинный "заголовок" '.repeat(20)}${index}`,
        url: `https://example.org/${'x'.repeat(200)}/${index}`,
        day: AS_OF,
        points: index,
      }),
    )
    const { ask } = toolsOn(sourcesOf(await workspaceWith(long), NOW))
    const { output, items, run } = await ask('get_period_top', TOP)
    expect(Buffer.byteLength(run.output)).toBeLessThanOrEqual(8_192)
    expect(items.length).toBeGreaterThan(3)
    expect(items.length + (output['leftOut'] as { items: number }).items).toBe(50)
  })

  test('a call that times out or fails becomes an error without details of the store', async () => {
    const sources = await sampleSources()
    const hanging = toolsOn({ ...sources, feed: () => new Promise(() => undefined) }, 5)
    const late = await hanging.ask('get_feed_snapshot', FEED)
    expect(late.output).toEqual({ error: 'the data could not be read' })
    expect(hanging.faults).toHaveLength(1)
    const failing = toolsOn({ ...sources, feed: () => Promise.reject(new Error('/secret/path')) })
    const failed = await failing.ask('get_feed_snapshot', FEED)
    expect(failed.run).toEqual({
      output: '{"error":"the data could not be read"}',
      failed: true,
      cacheable: false,
    })
    expect(failing.faults).toEqual([new Error('/secret/path')])
  })

  test('a call queries the search as the chat, for its caller, and only while its result is awaited', async () => {
    const sources = await sampleSources()
    const callers: SearchCaller[] = []
    const by = (caller: SearchCaller): CallerSearch => {
      callers.push(caller)
      return { ...sources.search.by(caller), search: () => new Promise(() => undefined) }
    }
    await toolsOn({ ...sources, search: { by } }, 5).ask('search_items', SEARCH)
    expect(callers).toMatchObject([{ group: 'chat', signal: { aborted: true } }])
  })
})
