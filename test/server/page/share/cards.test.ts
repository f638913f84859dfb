import { Resvg } from '@resvg/resvg-js'
import { describe, expect, test, vi } from 'vitest'
import { formatInstant } from '../../../../src/domain/time.ts'
import { itemCard, listCard } from '../../../../src/server/page/share/card-svg.ts'
import { cardDrawer } from '../../../../src/server/page/share/png.ts'
import { openApp, openPage } from '../../../support/api-client.ts'
import { changedYear } from '../../../support/changed-year.ts'
import { requestRoute } from '../../../support/contract-client.ts'
import { keepSnapshot } from '../../../support/live-client.ts'
import { NOW, feedEvent, feedEvents, refresh } from '../../../support/signals.ts'
import { openWorkspace } from '../../../support/workspace.ts'

/** Width and height of a PNG picture, from its header. */
function sizeOf(picture: Buffer): number[] {
  expect(picture.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n')
  return [picture.readUInt32BE(16), picture.readUInt32BE(20)]
}

/** The right end of what a card shows besides its ground, its bar and its lines. */
function rightOfText(svg: string): number {
  const text = svg.replaceAll(/<(?:rect|path)[^>]*>/g, '')
  const fontFiles = ['Regular', 'Bold'].map((weight) => `assets/fonts/Roboto-${weight}.ttf`)
  const picture = new Resvg(text, {
    font: { fontFiles, loadSystemFonts: false, defaultFontFamily: 'Roboto' },
  })
  const { x = 0, width = 0 } = picture.getBBox() ?? {}
  return x + width
}

const FRAME = { name: 'dash', heading: 'Week', footer: 'dash.example' }

test('every card is a picture of 1200 by 630 pixels that other pages may show', async () => {
  const workspace = await changedYear()
  await keepSnapshot(workspace.feed, feedEvents('hn', 3))
  await refresh(workspace.search)
  const app = openApp(workspace)
  for (const target of ['/cards/feed.png?sort=week', '/cards/year.png', '/cards/item.png?key=hn-15']) {
    const { status, bytes, headers } = await requestRoute(app, target)
    expect([target, status, ...sizeOf(bytes)]).toEqual([target, 200, 1200, 630])
    expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  }
})

test('the card of the Year is that of the requested time', async () => {
  const workspace = await changedYear()
  const app = openApp(workspace)
  const [first, last] = (await workspace.year.read()).proved.timeline.map(({ manifest }) =>
    formatInstant(manifest.publishedAt),
  )
  const cardAt = async (query: string): Promise<string> =>
    (await requestRoute(app, `/cards/year.png${query}`)).headers.get('etag') ?? ''
  expect(await cardAt('')).toBe(await cardAt(`?at=${last}`))
  expect(await cardAt(`?at=${first}`)).not.toBe(await cardAt(`?at=${last}`))
})

test('a card of nothing, of an invalid time, key or period is refused', async () => {
  const app = openApp(await openWorkspace())
  for (const [target, status, code] of [
    ['/cards/year.png', 404, 'year_history_not_found'],
    ['/cards/year.png?at=yesterday', 400, 'invalid_at'],
    ['/cards/year.png?at=2999-01-01T00:00:00Z', 400, 'invalid_at'],
    ['/cards/feed.png', 404, 'no_snapshot'],
    ['/cards/feed.png?sort=year', 400, 'year_is_archived'],
    ['/cards/item.png', 400, 'invalid_key'],
    ['/cards/item.png?key=hn-404', 404, 'item_not_found'],
    ['/charts/item.svg', 400, 'invalid_key'],
  ] as const) {
    const refused = await requestRoute(app, target)
    expect([target, refused.status, refused.error]).toEqual([target, status, code])
  }
})

describe('a hostile title', () => {
  const HOSTILE = [
    '<script>alert(1)</script> & "quotes" ]]>',
    '😀'.repeat(1_000),
    'שלום עולם, مرحبا',
    `nothing but\u0000\u0007\u202E controls`,
    'x'.repeat(100_000),
    'W'.repeat(1_000),
    `A ${'Щ'.repeat(300)} word`,
    '   ',
    '漢字',
  ]

  test.each(HOSTILE)('is drawn within the card: %.20s', async (title) => {
    const draw = cardDrawer()
    for (const svg of [listCard(FRAME, [{ title, facts: 'HN' }]), itemCard(FRAME, title, ['HN'])]) {
      expect(svg.length).toBeLessThan(4_000)
      expect(svg).not.toMatch(/<script|\u202E|[^\P{Cc}\n]/u)
      expect(sizeOf((await draw(svg)).body)).toEqual([1200, 630])
      expect(rightOfText(svg)).toBeLessThanOrEqual(1200 - 72)
    }
  })

  test('without spaces is broken into lines on the card of an item', () => {
    const lines = itemCard(FRAME, 'x'.repeat(60), []).match(/x+(?=<\/text>)/g) ?? []
    expect(lines.length).toBeGreaterThan(1)
    expect(lines.join('')).toBe('x'.repeat(60))
  })

  test('in a script that the fonts lack is named instead of boxes', () => {
    expect(itemCard(FRAME, '漢字 😀', [])).toContain('A story in another script')
  })
})

test('a card is drawn once, and too many that wait are refused', async () => {
  const draw = cardDrawer()
  const cardOf = (number: number): string => itemCard(FRAME, `Story ${number}`, [])
  expect(await draw(cardOf(0))).toBe(await draw(cardOf(0)))
  const asked = Array.from({ length: 40 }, async (_, number) => draw(cardOf(number + 1)))
  const settled = await Promise.allSettled(asked)
  const refused = settled.filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(40 - 17)
  expect(refused[0]).toMatchObject({ reason: { code: 'card_busy' } })
  expect(sizeOf((await draw(cardOf(40))).body)).toEqual([1200, 630])
})

describe('the chart of an item', () => {
  test('has its ranks in its list and in Popular, broken by the gap', async () => {
    const app = openApp(await changedYear())
    const { text } = await requestRoute(app, '/charts/item.svg?key=hn-15')
    const lines = [...text.matchAll(/<path d="(M[^"]*)" fill="none"/g)].map(([, path = '']) => path)
    expect(lines.map((path) => path.match(/M/g)?.length)).toEqual([2, 2])
    expect(text).toContain('Story 15 &lt;b&gt;')
    expect(text).toContain('in Popular')
    expect(text).toContain('in Hacker News')
    expect(text).not.toMatch(/<script|<style|style=|href=/)
  })

  test('is refused for an item that no publication of the range lists', async () => {
    const workspace = await changedYear()
    const app = openApp(workspace)
    const [first] = (await workspace.year.read()).proved.timeline
    const at = formatInstant(first?.manifest.publishedAt ?? 0)
    expect((await requestRoute(app, '/charts/item.svg?key=hn-16')).status).toBe(200)
    expect((await requestRoute(app, `/charts/item.svg?key=hn-16&at=${at}`)).error).toBe('item_not_listed')
  })
})

describe('previews of a page', () => {
  /** Values of the meta elements by name. */
  const metaOf = (page: string): Record<string, string> =>
    Object.fromEntries(
      [...page.matchAll(/<meta (?:name|property)="([^"]*)" content="([^"]*)"/g)].map(
        ([, name = '', value = '']) => [name, value.replaceAll('&amp;', '&')],
      ),
    )

  test('describe the live period by its first stories', async () => {
    const workspace = await openWorkspace()
    await keepSnapshot(workspace.feed, [feedEvent({ title: '"Quoted" & <b>bold</b>', publishedAt: NOW - 1 })])
    const { page } = await openPage(workspace, '/?sort=week')
    expect(page).not.toContain('<b>bold')
    expect(metaOf(page)).toMatchObject({
      'og:url': 'http://dash.test/?sort=week',
      'og:image': 'http://dash.test/cards/feed.png?sort=week',
      'og:description': expect.stringContaining('Week, as of 2026-03-15: 1. &quot;Quoted&quot;'),
    })
  })

  test('of a filtered view name its stories and no card, which would show the whole list', async () => {
    const workspace = await changedYear()
    await keepSnapshot(workspace.feed, [
      feedEvent({ title: 'Rust' }),
      feedEvent({ sourceId: '2', title: 'Cooking' }),
    ])
    const live = metaOf((await openPage(workspace, '/?sort=week&q=rust')).page)
    expect(live).toMatchObject({
      'og:url': 'http://dash.test/?sort=week&q=rust',
      'og:description': expect.stringMatching(/: 1\. Rust$/),
    })
    const year = metaOf((await openPage(workspace, '/?sort=year&q=%2215%22')).page)
    expect(year).toMatchObject({
      'og:url': expect.stringMatching(/sort=year&at=.*&q=%2215%22$/),
      'og:description': expect.stringMatching(/"15": 1\. Story 15|&quot;15&quot;: 1\. Story 15/),
    })
    for (const preview of [live, year]) expect(preview).not.toHaveProperty(['og:image'])
  })

  test('of the Year and of an item name the moment, and the box offers the same', async () => {
    const workspace = await changedYear()
    await refresh(workspace.search)
    const { timeline } = (await workspace.year.read()).proved
    const at = encodeURIComponent(formatInstant(timeline.at(-1)?.manifest.publishedAt ?? 0))
    const year = await openPage(workspace, '/?sort=year')
    expect(metaOf(year.page)).toMatchObject({
      'og:url': `http://dash.test/?sort=year&at=${at}`,
      'og:image': `http://dash.test/cards/year.png?at=${at}`,
    })
    expect(year.page).toContain(`id="share-link">http://dash.test/?sort=year&amp;at=${at}<`)
    const item = await openPage(workspace, '/item?key=hn-15')
    expect(item.page.replaceAll(/<[^>]*>|\s+/g, ' ').replaceAll(/ +/g, ' ')).toContain(
      [
        'Popular: highest #1, 3 days, there since the first publication, of 1 March;',
        'Hacker News: highest #1, 3 days, there since the first publication, of 1 March.',
      ].join(' '),
    )
    expect(metaOf(item.page)).toMatchObject({
      'og:image': 'http://dash.test/cards/item.png?key=hn-15',
      description: expect.stringMatching(/^Hacker News · .* points .*Highest #1/),
    })
    expect(item.page).toContain(`http://dash.test/charts/item.svg?key=hn-15&amp;at=${at}&amp;theme=light`)
  })
})

test('no more than 32 requests for cards are open, and the next ones are refused with the time to wait', async () => {
  const workspace = await changedYear()
  await refresh(workspace.search)
  let isReading = false
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const search = {
    ...workspace.search,
    by: (caller: Parameters<typeof workspace.search.by>[0]) => ({
      ...workspace.search.by(caller),
      async itemTrend(key: string) {
        isReading = true
        await released
        return workspace.search.by(caller).itemTrend(key)
      },
    }),
  }
  const app = openApp({ ...workspace, search })
  const asked = Array.from({ length: 32 }, () => requestRoute(app, '/cards/item.png?key=hn-15'))
  await vi.waitUntil(() => isReading, { interval: 5, timeout: 60_000 })
  const refused = await requestRoute(app, '/cards/item.png?key=hn-15')
  expect([refused.status, refused.error, refused.headers.get('retry-after')]).toEqual([503, 'card_busy', '1'])
  release()
  for (const { status } of await Promise.all(asked)) expect(status).toBe(200)
})
