import { afterAll, beforeAll, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { VIEWS, accessibilityFindings, flawsOf, picture, visit } from './browser.ts'

let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  demo = await serveDemo({ DASH_ALLOWED_ORIGINS: 'https://other.example' })
})

afterAll(() => demo.close())

/** Views of the demo: the refused ones with their status. */
const PAGES: [name: string, path: string | (() => Promise<string>), status: number][] = [
  ...VIEWS.map(([name, path]): [string, string, number] => [name, path, 200]),
  ['column', '/?sort=month&column=hackerNews', 200],
  ['filtered models', '/models?needs=tools&health=passed', 200],
  ['days of the Year', '/year/rows', 200],
  ['comparison', comparisonPath, 200],
  ['embedded chat', '/embed/chat', 200],
  ['refused', '/?sort=decade', 400],
  ['404', '/nothing', 404],
]

/** The newest Year beside the first one. */
async function comparisonPath(): Promise<string> {
  const response = await fetch(`${demo.url}/api/feed/history/index`)
  const { publications } = (await response.json()) as { publications: { publishedAt: string }[] }
  return `/?sort=year&with=${publications[0]?.publishedAt}`
}

const WIDTHS = [1280, 375, 320]

/** The rule that depends on the colours. */
const CONTRAST = { runOnly: ['color-contrast'] }

test.each(PAGES)(
  'a page is accessible, fits, has no error and asks no other host, light and dark, at 1280, 375 and 320 pixels: %s',
  async (name, path, status) => {
    const visited = await visit(demo.url + (typeof path === 'string' ? path : await path()))
    const { page } = visited
    const flaws: string[] = []
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme: 'light' })
      if (width === 1280) await picture(page, `page-${name}-wide-light`)
      const light = await flawsOf(visited, status)
      await page.emulateMedia({ colorScheme: 'dark' })
      if (width === 375) await picture(page, `page-${name}-narrow-dark`)
      const dark = await accessibilityFindings(page, CONTRAST)
      flaws.push(...[...light, ...dark].map((flaw) => `${width}: ${flaw}`))
    }
    expect(flaws).toEqual([])
  },
)
