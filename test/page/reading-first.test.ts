import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { VIEWS, dayBefore, picture, visit } from './browser.ts'

let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  demo = await serveDemo()
})

afterAll(() => demo.close())

const DESKTOP = { width: 1280, height: 800 }
const PHONE = { width: 375, height: 812 }
const SMALL_PHONE = { width: 320, height: 640 }

/** Height of the header, top of the first story, and height of the page, in pixels. */
interface Measures {
  header: number
  firstStory: number
  height: number
}

function measuresOf(page: Page): Promise<Measures> {
  return page.evaluate<Measures>(`({
    header: document.querySelector('header').getBoundingClientRect().height,
    firstStory: document.querySelector('.item').getBoundingClientRect().top,
    height: document.documentElement.scrollHeight,
  })`)
}

test.each([
  ['a desktop', DESKTOP, 56],
  ['a phone', PHONE, 88],
])(
  'the first story is on the first screen of %s under a low header, also for visitors of a month ago',
  async (name, viewport, highest) => {
    const { page } = await visit(demo.url, { viewport })
    await picture(page, `reading-${name.replace('a ', '')}`, false)
    const { header, firstStory, height } = await measuresOf(page)
    expect(header).toBeLessThanOrEqual(highest)
    expect(firstStory).toBeLessThanOrEqual(160)
    if (viewport === DESKTOP) expect(height).toBeLessThanOrEqual(2000)
    const response = await fetch(`${demo.url}/api/feed/history/index`)
    const { publications } = (await response.json()) as { publications: { seq: number; sha256: string }[] }
    const { seq, sha256 } = publications.at(-31) ?? {}
    const seen = { newest: `${seq}-${sha256}`, before: null }
    await page.evaluate<void>(`localStorage.setItem('dash-seen', '${JSON.stringify(seen)}')`)
    for (const path of ['/', '/?sort=year&column=popular', '/?sort=year']) {
      await page.goto(demo.url + path, { waitUntil: 'networkidle' })
      await page.locator('#since .since[data-base]').waitFor()
      expect((await measuresOf(page)).firstStory).toBeLessThanOrEqual(160)
    }
    if (viewport === PHONE) return
    await page.locator('.ask').click()
    await page.locator('#chat-sheet[open]').waitFor()
    expect((await measuresOf(page)).header).toBeLessThanOrEqual(highest)
  },
)

/** Rows whose second part is more than one line, begins with a separator, or in which anything but the host is cut off. */
const BROKEN_ROWS = `[...document.querySelectorAll('.item .about')]
  .filter((about) => {
    const box = about.getBoundingClientRect()
    const parts = [...about.children].filter((part) => part.checkVisibility())
    const isCut = (part) => !part.matches('.host') && part.scrollWidth > part.clientWidth + 1
    const { content, display } = getComputedStyle(parts[0], '::before')
    const isSeparated = !['none', 'normal'].includes(content) && display !== 'none'
    return box.height > 26 || isSeparated || parts.some((part) => part.getBoundingClientRect().right > box.right + 1 || isCut(part))
  })
  .map((about) => about.textContent.replace(/\\s+/g, ' '))`

test.each([DESKTOP, PHONE, SMALL_PHONE])(
  'a row is its title and one line about it, in which the host alone is cut off, on $width pixels',
  async (viewport) => {
    const { page } = await visit(demo.url, { viewport })
    for (const path of [
      '/',
      '/?sort=year',
      '/?sort=year&column=hackerNews',
      '/?sort=week&column=hackerNews',
      '/search?q=rust',
    ]) {
      await page.goto(demo.url + path)
      expect(await page.evaluate<string[]>(BROKEN_ROWS)).toEqual([])
    }
  },
)

test.each([320, 360, 375])('the count of new rows stands beside the filter on %i pixels', async (width) => {
  const { page } = await visit(demo.url, { viewport: { width, height: 640 } })
  const [line, filter] = await Promise.all(
    [page.locator('.news'), page.locator('.view-menu summary')].map((part) => part.boundingBox()),
  )
  expect((line?.x ?? 0) + (line?.width ?? Infinity)).toBeLessThan(filter?.x ?? 0)
  expect((await measuresOf(page)).firstStory).toBeLessThanOrEqual(170)
})

test.each([740, 800, 961, 1024])('the header is one row in a window of %i pixels', async (width) => {
  const { page } = await visit(demo.url, { viewport: { width, height: 600 } })
  expect((await measuresOf(page)).header).toBeLessThanOrEqual(56)
})

test.each<readonly [name: string, path: string, viewport: typeof PHONE]>([
  ...VIEWS.map(([name, path]) => [name, path, PHONE] as const),
  ['chat in a frame', '/embed/chat', { width: 375, height: 600 }],
  ['chat in a small frame', '/embed/chat', { width: 320, height: 480 }],
])('nothing moves while a page arrives over a slow line: %s', async (_name, path, viewport) => {
  const { page } = await visit(demo.url, { viewport })
  const devtools = await page.context().newCDPSession(page)
  const line = { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 100_000 }
  await devtools.send('Network.emulateNetworkConditions', line)
  await page.goto(demo.url + path, { waitUntil: 'networkidle' })
  expect(await page.evaluate<number>(LAYOUT_SHIFT)).toBeLessThan(0.05)
})

/** The sum of the layout shifts of the page so far. */
const LAYOUT_SHIFT = `(() => {
  const observer = new PerformanceObserver(() => {})
  observer.observe({ type: 'layout-shift', buffered: true })
  return observer.takeRecords().reduce((sum, { value }) => sum + value, 0)
})()`

test('a print names the site and that it is a demo, the address and the day, and has no buttons', async () => {
  const { page } = await visit(`${demo.url}/?sort=year`, { viewport: DESKTOP })
  await page.emulateMedia({ media: 'print' })
  expect(await page.locator('.printed:visible').textContent()).toBe(
    `DEMO: dash · ${demo.url}/?sort=year · ${dayBefore(0)}`,
  )
  for (const path of [
    '/?sort=year',
    '/models?model=orchard/quince-large:free',
    '/item?key=hn-26296339',
    '/search?q=rust',
  ]) {
    await page.goto(demo.url + path)
    const controls = page.locator('button:visible, input:visible, select:visible, .discuss:visible')
    expect([path, await controls.allTextContents()]).toEqual([path, []])
  }
})

test('in forced colours the symbol of comments and found words stay visible', async () => {
  const { page } = await visit(demo.url, { viewport: DESKTOP, forcedColors: 'active' })
  const [symbol, ground] = await page.evaluate<string[]>(`[
    getComputedStyle(document.querySelector('a.comments'), '::after').backgroundColor,
    getComputedStyle(document.body).backgroundColor,
  ]`)
  expect(symbol).not.toBe(ground)
  await page.goto(`${demo.url}/search?q=rust`)
  const [word, mark] = await page.evaluate<string[]>(`(() => {
    const { color, backgroundColor } = getComputedStyle(document.querySelector('mark'))
    return [color, backgroundColor]
  })()`)
  expect([word, mark]).toEqual(['rgb(0, 0, 0)', 'rgb(255, 255, 0)'])
})

test.each([
  ['mouse', DESKTOP],
  ['touch', PHONE],
])(
  'a row is hidden, seen and brought back by %s in its menu, and asked about there',
  async (by, viewport) => {
    const { page } = await visit(demo.url, { viewport, hasTouch: by === 'touch' })
    const press = (target: Locator): Promise<void> => (by === 'touch' ? target.tap() : target.click())
    const item = page.locator('#column-popular .item').nth(1)
    const title = (await item.locator('.title bdi').textContent()) ?? ''
    const menu = item.locator('.row-menu summary')
    await press(menu)
    await press(item.getByRole('button', { name: 'Hide' }))
    await expect.poll(() => item.isVisible()).toBe(false)
    await press(page.locator('#column-popular .hidden-count button'))
    expect(await item.isVisible()).toBe(true)
    await press(menu)
    await press(item.getByRole('button', { name: 'Show again' }))
    await page.reload()
    expect(await item.isVisible()).toBe(true)
    await menu.focus()
    await page.keyboard.press('Enter')
    await press(item.getByRole('link', { name: 'Ask' }))
    await expect.poll(() => page.locator('#chat-scope bdi').textContent()).toBe(title)
    // The menu is closed: its button has the focus again.
    await page.keyboard.press('Escape')
    expect(await menu.evaluate((button) => button === button.ownerDocument.activeElement)).toBe(true)
  },
)

test('rows that entered a live list since the last visit are marked NEW, and a line counts them and leads to the first', async () => {
  const { page } = await visit(demo.url, { viewport: PHONE })
  const entered = await page
    .locator('[data-entered]')
    .evaluateAll((marks) => marks.map((mark) => mark.getAttribute('data-entered') ?? ''))
  const before = entered.toSorted()[Math.floor(entered.length / 2)] ?? ''
  await page.evaluate<void>(
    `localStorage.setItem('dash-snapshot', JSON.stringify({ newest: '${before}', before: null }))`,
  )
  await page.reload({ waitUntil: 'networkidle' })
  const count = entered.filter((at) => at > before).length
  expect(count).toBeGreaterThan(0)
  expect(await page.locator('[data-entered].new').count()).toBe(count)
  const line = page.locator('.news a')
  const text = await line.textContent()
  expect(text).toContain(`${count} new since`)
  // The clock of the visitor does not matter.
  await page.clock.setFixedTime(Date.now() - 86_400_000)
  await page.reload({ waitUntil: 'networkidle' })
  expect(await line.textContent()).toBe(text)
  await line.click()
  expect(await page.locator(':target').getAttribute('data-entered')).toBe(entered.find((at) => at > before))
  // A hidden row is not counted, and nothing leads to it.
  const hidden = await page
    .locator(':target')
    .evaluate((mark) => mark.closest('.item')?.getAttribute('data-key'))
  await page.evaluate<void>(
    `localStorage.setItem('dash-hidden', JSON.stringify({ hidden: ['${hidden}'], read: [] }))`,
  )
  await page.goto(demo.url, { waitUntil: 'networkidle' })
  expect(await line.textContent()).toContain(`${count - 1} new since`)
  await line.click()
  expect(await page.locator(':target').isVisible()).toBe(true)
})

test('fields for text and choices have text of 16 pixels on a touch screen, so that no browser enlarges the page for them', async () => {
  const { page } = await visit(demo.url, { viewport: PHONE, hasTouch: true, isMobile: true })
  for (const path of ['/?q=rust', '/search?q=rust', '/chat', '/docs/page', '/models?needs=tools']) {
    await page.goto(demo.url + path, { waitUntil: 'networkidle' })
    expect([path, await page.evaluate<string[]>(SIZES_OF_FIELDS)]).toEqual([path, ['16px']])
  }
})

/** The different sizes of text in fields. */
const SIZES_OF_FIELDS = `[...new Set(
  [...document.querySelectorAll('input:is([type="search"], [type="text"], [type="number"]), select, textarea')]
    .map((field) => getComputedStyle(field).fontSize),
)]`

test('the days to compare with open within the width of a phone', async () => {
  const { page } = await visit(`${demo.url}/?sort=year`, { viewport: PHONE })
  await page.locator('.compare summary').click()
  await page.getByRole('button', { name: 'Compare', exact: true }).waitFor()
  expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(PHONE.width)
})

test('Escape leaves the search field, and j focuses a title', async () => {
  const { page } = await visit(demo.url, { viewport: DESKTOP })
  await page.keyboard.press('/')
  await page.keyboard.press('Escape')
  await page.keyboard.press('j')
  expect(await page.evaluate(`document.activeElement.matches('.title a')`)).toBe(true)
})
