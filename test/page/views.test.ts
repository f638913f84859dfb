import { afterAll, beforeAll, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { VIEWS, accessibilityFindings, fitsScreen, flawsOf, picture, visit } from './browser.ts'

let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  demo = await serveDemo({ DASH_ALLOWED_ORIGINS: 'https://other.example' })
})

afterAll(() => demo.close())

/** Every view of the demo, with its status if it is refused. */
const PAGES: { name: string; path: string; status?: number }[] = [
  ...VIEWS.map(([name, path]) => ({ name, path })),
  { name: 'column', path: '/?sort=month&column=hackerNews' },
  { name: 'filtered', path: '/?sort=month&minPoints=500' },
  { name: 'filtered models', path: '/models?needs=tools&health=passed' },
  { name: 'days of the Year', path: '/year/rows' },
  { name: 'results of the docs', path: '/docs?q=audit' },
  { name: 'interface', path: '/docs/api/top-year-history' },
  { name: 'embedded chat', path: '/embed/chat' },
  { name: 'refused', path: '/?sort=decade', status: 400 },
  { name: 'before the first Year', path: '/?at=2020-01-01T00:00:00Z', status: 404 },
  { name: '404', path: '/nothing', status: 404 },
]

/** Targets smaller than 24 pixels. The target of a field in a label is the label. */
const SMALL_TARGETS = `[...document.querySelectorAll('a[href], button, summary, select, input:not([type=hidden])')]
  .filter((element) => element.checkVisibility() && !element.matches('.skip'))
  .map((element) => element.closest('label:not(.unseen)') ?? element)
  .filter((element) => {
    const { width, height } = element.getBoundingClientRect()
    return width < 24 || height < 24
  })
  .map((element) => element.outerHTML)`

/** Pairs of visible texts that lie over each other. */
const OVERPRINTS = `(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const lines = []
  while (walker.nextNode()) {
    const text = walker.currentNode
    const element = text.parentElement
    if (text.data.trim() === '' || !element.checkVisibility({ opacityProperty: true })) continue
    const box = element.getBoundingClientRect()
    const isCut = getComputedStyle(element).overflow !== 'visible'
    if (box.width <= 1 || element.closest('.unseen, .roomy, .skip')) continue
    const range = document.createRange()
    range.selectNodeContents(text)
    // What a scrolled table or a shortened title hides is not shown.
    const frame = element.closest('.rows, .title')?.getBoundingClientRect()
    for (const { left, right, top, bottom } of range.getClientRects())
      if (!frame || (top >= frame.top && bottom <= frame.bottom))
      lines.push({ text: text.data.trim(), element, left, right: isCut ? Math.min(right, box.right) : right, top, bottom })
  }
  lines.sort((a, b) => a.top - b.top)
  const overlap = (one, other) =>
    one.element !== other.element &&
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2 &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 6
  return lines.flatMap((one, index) =>
    lines.slice(index + 1, index + 40).filter((other) => overlap(one, other)).map((other) => one.text + ' / ' + other.text),
  )
})()`

/** The rule that depends on the colours. */
const CONTRAST = { runOnly: ['color-contrast'] }

test.each(PAGES)(
  'a view is accessible, fits, has no error, asks no other host and has no small or overprinted part, light and dark, at 1280, 375 and 320 pixels: $name',
  async ({ name, path, status = 200 }) => {
    const visited = await visit(demo.url + path, { viewport: { width: 1280, height: 800 } })
    const { page } = visited
    for (const width of [1280, 320, 375]) {
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme: 'light' })
      if (width === 1280) await picture(page, `view-${name}-wide-light`)
      expect([width, await flawsOf(visited, status)]).toEqual([width, []])
      await page.emulateMedia({ colorScheme: 'dark' })
      if (width === 375) await picture(page, `view-${name}-narrow-dark`)
      expect([width, await accessibilityFindings(page, CONTRAST)]).toEqual([width, []])
      if (width === 1280) continue
      expect(await page.evaluate<string[]>(SMALL_TARGETS)).toEqual([])
      expect(await page.evaluate<string[]>(OVERPRINTS)).toEqual([])
    }
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('Page.setFontSizes', { fontSizes: { standard: 32 } })
    expect(await page.evaluate(`getComputedStyle(document.documentElement).fontSize`)).toBe('32px')
    expect(await fitsScreen(page)).toBe(true)
  },
)

test.each([
  ['readme', '/docs/readme'],
  ['diagram', '/docs/proof'],
])(
  'a page is accessible, fits, has no error and asks no other host on a dark phone: %s',
  async (name, path) => {
    const visited = await visit(demo.url + path, { colorScheme: 'dark' })
    await picture(visited.page, `view-${name}-narrow-dark`)
    expect(await flawsOf(visited)).toEqual([])
  },
)
