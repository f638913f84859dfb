import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { addDays, formatInstant } from '../../../src/domain/time.ts'
import { openApp } from '../../support/api-client.ts'
import { LATER, changedYear } from '../../support/changed-year.ts'
import { requestRoute } from '../contract-client.ts'
import { openSampleApp, sampleArchive } from '../../support/sample-archive.ts'
import { AS_OF, manifestsOf, objectFile, openWorkspace } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

const RANKS = '/api/feed/history/ranks'
const CHART = '/charts/year.svg'
const GAP = addDays(AS_OF, 1)

interface Ranks {
  publications: { asOfDay: string; sha256: string; entered: number | null; popular: number[][] | null }[]
  gaps: unknown[]
  items: { key: string; title: string }[]
}

async function ranksOf(app: ReturnType<typeof openApp>, query = ''): Promise<Ranks> {
  return JSON.parse((await requestRoute(app, RANKS + query)).text) as Ranks
}

test('the ranks list Popular of each publication as it was published, each item once, with the gaps', async () => {
  const workspace = await changedYear()
  const app = openApp(workspace)
  const { publications, gaps, items } = await ranksOf(app)
  expect(gaps).toEqual([{ firstDay: GAP, lastDay: GAP }])
  expect(publications.map(({ asOfDay, entered }) => [asOfDay, entered])).toEqual([
    [AS_OF, null],
    [LATER, 1],
  ])
  expect(items).toHaveLength(16)
  for (const [index, { publishedAt }] of (await manifestsOf(workspace)).entries()) {
    const { text } = await requestRoute(app, `/api/feed/history?sort=year&at=${formatInstant(publishedAt)}`)
    const { feed } = JSON.parse(text) as {
      feed: { popular: { key: string; points: number; comments: number }[] }
    }
    const listed = publications[index]?.popular?.map(([item = -1, points, comments]) => [
      items[item]?.key,
      points,
      comments,
    ])
    expect(listed).toEqual(feed.popular.map(({ key, points, comments }) => [key, points, comments]))
  }
})

test('the ranks end at the requested time and have the requested number of publications', async () => {
  const workspace = await changedYear()
  const app = openApp(workspace)
  const [first] = await manifestsOf(workspace)
  const early = await ranksOf(app, `?at=${formatInstant(first?.publishedAt ?? 0)}`)
  expect(early.publications.map(({ asOfDay }) => asOfDay)).toEqual([AS_OF])
  const one = await ranksOf(app, '?count=1')
  expect(one.publications.map(({ asOfDay, entered }) => [asOfDay, entered])).toEqual([[LATER, 1]])
  expect(one.gaps).toEqual([])
})

test('the routes refuse an invalid number of publications, an invalid time and an archive without a publication', async () => {
  const empty = openApp(await openWorkspace())
  const changes = ['rss', 'atom', 'feed.json'].map((name) => `/api/feed/history/${name}`)
  for (const path of [RANKS, CHART, ...changes])
    expect(await requestRoute(empty, path)).toMatchObject({ status: 404, error: 'year_history_not_found' })
  const app = openApp(await changedYear())
  for (const [query, code] of [
    [`${CHART}?theme=blue`, 'invalid_theme'],
    ['/charts/item.svg', 'invalid_key'],
    ...[RANKS, CHART].flatMap((path) => [
      [`${path}?count=0`, 'invalid_count'],
      [`${path}?count=91`, 'invalid_count'],
      [`${path}?count=5&count=5`, 'invalid_count'],
      [`${path}?at=yesterday`, 'invalid_at'],
      [`${path}?at=2999-01-01T00:00:00Z`, 'invalid_at'],
    ]),
  ] as [string, string][])
    expect(await requestRoute(app, query), query).toMatchObject({ status: 400, error: code })
})

/** The number of parts of each line of a chart: a move begins a part. */
const partsOf = (svg: string): number[] =>
  [...svg.matchAll(/<path d="(M[^"]*)" fill="none"/g)].map(([, path = '']) => path.split('M').length - 1)

describe('the bump chart', () => {
  test('draws one broken line for each item of the newest publication, and hatches the gap', async () => {
    const { text, headers } = await requestRoute(openApp(await changedYear()), CHART)
    expect(headers.get('content-security-policy')).toBe("default-src 'none'")
    // Fourteen items of both publications, broken by the gap, and one that entered.
    expect(partsOf(text).sort()).toEqual([1, ...Array<number>(14).fill(2)])
    expect(text).not.toMatch(/<path d="M[^"]*L[^"]*" fill="none"/)
    expect(text).toContain(`Gap: nothing was published for ${GAP}`)
    expect(text).toContain('Story 15 &lt;b&gt;&amp;&lt;/b&gt;')
    expect(text).not.toMatch(/<script|<style|style=|href=/)
  })

  test('has other colours and the same lines in the dark', async () => {
    const app = openApp(await changedYear())
    const [light, dark] = await Promise.all(
      ['light', 'dark'].map(async (theme) => (await requestRoute(app, `${CHART}?theme=${theme}`)).text),
    )
    const withoutColours = (text = ''): string => text.replaceAll(/#[0-9a-f]{6}/g, '')
    expect(light).not.toBe(dark)
    expect(withoutColours(light)).toBe(withoutColours(dark))
  })

  test('names older layouts without lines', async () => {
    const archive = sampleArchive(95)
    const clock = () => (archive.contents.rows.at(-1)?.publishedAt ?? 0) + 1
    const app = openSampleApp(archive, { clock })
    const { status, text } = await requestRoute(app, `${CHART}?count=90`)
    expect([status, text.includes('fill="none"')]).toEqual([200, false])
    const { publications } = await ranksOf(app, '?count=90')
    expect(publications).toHaveLength(90)
    expect(publications.every(({ popular }) => popular === null)).toBe(true)
  })
})

describe('the chart of an item', () => {
  test('has its ranks in its list and in Popular and its points, broken by the gap', async () => {
    const { text } = await requestRoute(openApp(await changedYear()), '/charts/item.svg?key=hn-15')
    expect(partsOf(text)).toEqual([2, 2, 2])
    for (const label of ['>points<', 'Story 15 &lt;b&gt;', 'in Popular', 'in Hacker News'])
      expect(text).toContain(label)
    expect(text).not.toMatch(/<script|<style|style=|href=/)
  })

  test('is refused for an item that no publication of the range lists', async () => {
    const workspace = await changedYear()
    const app = openApp(workspace)
    const [first] = await manifestsOf(workspace)
    const at = formatInstant(first?.publishedAt ?? 0)
    expect((await requestRoute(app, '/charts/item.svg?key=hn-16')).status).toBe(200)
    expect((await requestRoute(app, `/charts/item.svg?key=hn-16&at=${at}`)).error).toBe('item_not_listed')
  })
})

test('a changed object of any publication in the range refuses ranks, chart and changes, and its return mends them', async () => {
  const routes = [RANKS, CHART, '/api/feed/history/atom']
  const workspace = await changedYear(() => Date.now() + 60_000)
  const app = openApp(workspace)
  const [first] = await manifestsOf(workspace)
  const path = objectFile(workspace, first?.sha256)
  const bytes = readFileSync(path)
  const before = await Promise.all(routes.map((each) => requestRoute(app, each)))
  writeFileSync(path, bytes.toString().replace('Story 1 ', 'Story X '))
  for (const each of routes) {
    const refused = await requestRoute(app, each)
    expect([refused.status, refused.error]).toEqual([503, 'year_history_archive_corrupt'])
  }
  writeFileSync(path, bytes)
  for (const [index, each] of routes.entries())
    expect((await requestRoute(app, each)).text).toBe(before[index]?.text)
})

test('requests beyond the waiting ones are refused with a time to wait, but not for published bytes', async () => {
  const workspace = await changedYear()
  const objects: Workspace['objects'] = {
    ...workspace.objects,
    get: () => new Promise<never>(() => undefined),
    objectChangeToken: async () => null,
  }
  const app = openApp({ ...workspace, objects })
  const refused = await Promise.race(Array.from({ length: 33 }, () => requestRoute(app, RANKS)))
  expect([refused.status, refused.error, refused.headers.get('retry-after')]).toEqual([429, 'busy', '1'])
  expect((await requestRoute(app, '/api/feed/history/ledger')).status).toBe(200)
})
