import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { addDays, DAY_MS, dayOf } from '../../../src/domain/time.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import type { CollectReport } from '../../../src/jobs/collect.ts'
import { storeAt } from '../../adapters/feed/open-feed.ts'
import { dash, run, startDash, temporaryFolder } from '../../support/dash.ts'
import { htmlSite, pageHtml } from '../../adapters/articles/pages.ts'
import { replay } from '../../support/replay/live-world.ts'
import { storiesOf } from '../../support/signals.ts'
import { IDS_OF } from '../../support/replay/responses.ts'
import type { Replay } from '../../support/replay/replay-server.ts'

const EVERY_ID = Object.values(IDS_OF).flat().length

function data(): string {
  return join(temporaryFolder(), 'data')
}

/** Returns the IDs of a source in the feed of a data folder, of all events up to tomorrow. */
async function storedIds(folder: string, source: string): Promise<string[]> {
  const { feed, close } = storeAt(pathToFileURL(join(folder, 'feed.db')).href)
  onTestFinished(close)
  const { events } = await feed.readWindow(windowEnding(addDays(dayOf(Date.now()), 1)))
  return events.flatMap((event) => (event.source === source ? [event.sourceId] : [])).sort()
}

/** Links of replayed items lead nowhere: only tests about texts read them. */
const NO_TEXTS = { DASH_ARTICLE_MAX_PER_RUN: '0' }

async function collectJson(
  folder: string,
  { env }: Replay,
  args: string[] = [],
  changes = {},
  start: typeof run | typeof dash = run,
) {
  const finished = await start(['collect', '--json', '--data-dir', folder, ...args], {
    env: { ...env, ...NO_TEXTS, ...changes },
  })
  return { ...finished, report: JSON.parse(finished.stdout) as CollectReport }
}

describe('collect', () => {
  test('a collection creates the named data folder, stores every source and prints one line', async () => {
    const env = { ...(await replay()).env, ...NO_TEXTS }
    const folder = data()
    const counts = `${EVERY_ID} items: ${EVERY_ID} inserted, 0 replaced, 0 unchanged`
    const stdout = `${dayOf(Date.now())}: 7 of 7 sources collected, ${counts}\n`
    expect(await run(['collect', '--data-dir', folder], { env })).toEqual({ code: 0, stdout, stderr: '' })
    expect(await storedIds(folder, 'lobsters')).toEqual(IDS_OF['lobsters'])
    const again = await run(['collect', '--data-dir', folder, '--quiet'], { env })
    expect(again).toEqual({ code: 0, stdout: '', stderr: '' })
    const { stderr: shown } = await run(['collect', '--data-dir', folder], { env, isTTY: true })
    expect(shown).toContain(`lobsters ${IDS_OF['lobsters']?.length}`)
  })

  test('a clock that differs from the sources is told, and stops publications until a collect finds it right', async () => {
    const world = await replay()
    const folder = data()
    const stdin = storiesOf(addDays(dayOf(Date.now()), -1), 3)
    await run(['import', 'signals', '-', '--data-dir', folder], { stdin })
    const news = ['hn', 'hn-search', 'lobsters', 'lesswrong'] as const
    // Beyond midnight the run's day would be wrong too.
    const isEarly = Date.now() % DAY_MS < 900_000
    const side = isEarly ? 'behind' : 'ahead of'
    for (const source of news) world.setClock(source, isEarly ? 600_000 : -600_000)
    // One wrong clock among the sources is not the median.
    world.setClock('lesswrong', DAY_MS)
    const args = ['--data-dir', folder, '--source', 'hn,lobsters,lesswrong', '--quiet']
    const collect = () => run(['collect', ...args], { env: { ...world.env, ...NO_TEXTS } })
    const told = `^error: the clock is (9|10) minutes ${side} 3 sources; .* nothing is published before\n$`
    const stderr: unknown = expect.stringMatching(new RegExp(told))
    expect(await collect()).toMatchObject({ code: 0, stderr })
    const refused = await run(['publish-year', '--once', '--record-gaps', '0', '--data-dir', folder])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/^error: the clock was .* 3 sources at the last dash collect, /)
    for (const source of news) world.setClock(source, 0)
    expect(await collect()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect((await run(['publish-year', '--once', '--data-dir', folder])).code).toBe(0)
  })

  test('only the named sources receive requests, and every request names the program and its address', async () => {
    const world = await replay()
    const flags = ['--source', 'lesswrong,lobsters', '--source', 'hype:github']
    const { report } = await collectJson(data(), world, flags, { DASH_BASE_URL: 'https://däsh.example/' })
    expect(Object.keys(report.sources)).toEqual(['lobsters', 'lesswrong', 'hype:github'])
    const requested = new Set(world.requests.map(({ source }) => source))
    expect(requested).toEqual(new Set(['lobsters', 'lesswrong', 'github']))
    const agents = new Set(world.requests.map(({ headers }) => headers['user-agent']))
    expect([...agents]).toEqual([
      expect.stringMatching(/^dash\/\d+\.\d+\.\d+ \(\+https:\/\/xn--dsh-qla\.example\)$/),
    ])
  })

  test('failed, invalid and skipped sources are reported, the others are stored, and the exit code is 69', async () => {
    const world = await replay()
    world.fault('lobsters', 'html', /newest/)
    world.fault('lesswrong', 'failing')
    world.change('hn', /item\/41000003/, () => ({ id: 41_000_004, type: 'story', title: 'Another' }))
    const folder = data()
    const sources = ['--source', 'hn,lobsters,lesswrong,hype:replicate']
    const { code, stderr, report } = await collectJson(folder, world, sources, { REPLICATE_API_TOKEN: '' })
    expect([code, report.outcome]).toEqual([69, 'partial'])
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(
        /^hn: 1 row skipped, first problem: 41000003: .* the response is about the item 41000004$/,
      ),
      expect.stringMatching(
        /^error: lobsters was only partly read: .*newest\.json: the response is a web page/,
      ),
      expect.stringMatching(/^error: lesswrong failed: .*: responded with 500$/),
      'error: hype:replicate was skipped: missing setting: REPLICATE_API_TOKEN',
    ])
  })

  test('a collection takes a snapshot, indexes new items, and reads texts of sources and pages', async () => {
    const page = await htmlSite(pageHtml('On quokkas'))
    const world = await replay()
    world.change('hn', /item\/41000003/, (story) => ({
      ...(story as object),
      score: 1_000,
      url: `${page.url}/quokkas`,
    }))
    world.change('hn', /item\/41000004/, (story) => ({
      ...(story as object),
      score: 1_000,
      url: 'http://127.0.0.1:1/',
    }))
    const folder = data()
    const env = {
      DASH_ARTICLE_MAX_PER_RUN: '5',
      DASH_ARTICLE_MIN_POINTS: 'hn=1000',
      DASH_ARTICLE_ALLOW_PRIVATE: '127.0.0.1',
    }
    const { code, stderr, report } = await collectJson(folder, world, ['--source', 'hn'], env, dash)
    expect(code).toBe(0)
    expect(stderr).toMatch(/^1 text could not be read, first problem: hn-41000004: .*ECONNREFUSED.*\n$/)
    expect(report.snapshot).toMatchObject({ outcome: 'taken' })
    expect(report.articles).toMatchObject({ wanted: 2, stored: 1, skipped: {}, failedCount: 1 })
    const found = await dash(['search', 'quokkas', '--json', '--data-dir', folder])
    expect(JSON.parse(found.stdout)).toMatchObject({ items: [{ key: 'hn-41000003' }] })
  })

  test('no snapshot is taken if no source returned anything', async () => {
    const world = await replay()
    world.fault('lesswrong', 'failing')
    const { code, report } = await collectJson(data(), world, ['--source', 'lesswrong'])
    expect([code, report.snapshot, report.articles]).toEqual([69, null, null])
  })
})

test('a collection ended by a signal exits with its code at once and keeps stored items', async () => {
  const world = await replay()
  world.fault('hn', 'slow', /item\/41000020/)
  const folder = data()
  const { output, end } = startDash(['collect', '--json', '--data-dir', folder], { env: world.env })
  const isWaiting = (): boolean => world.requests.some(({ target }) => target === '/item/41000020.json')
  await vi.waitUntil(isWaiting, { interval: 5, timeout: 20_000 })
  expect(await end('SIGTERM')).toBe(143)
  const ended = { reason: 'stopped by a signal', error: 'stopped by a signal', exitCode: 143 }
  expect(JSON.parse(output.stdout)).toEqual({ job: 'collect', outcome: 'failed', ...ended })
  expect(await storedIds(folder, 'hn')).toHaveLength(40)
})
