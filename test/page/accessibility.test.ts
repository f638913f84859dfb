import { afterAll, beforeAll, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { VIEWS, accessibilityFindings, visit } from './browser.ts'

let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  demo = await serveDemo({ DASH_ALLOWED_ORIGINS: 'https://other.example' })
})

afterAll(() => demo.close())

const PAGES: readonly (readonly [name: string, path: string | (() => Promise<string>)])[] = [
  ...VIEWS,
  ['days of the Year', '/year/rows'],
  ['comparison', comparisonPath],
  ['embedded chat', '/embed/chat'],
  ['404', '/nothing'],
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
  'axe-core finds nothing, light and dark, at 1280, 375 and 320 pixels: %s',
  async (_name, path) => {
    const { page } = await visit(demo.url + (typeof path === 'string' ? path : await path()))
    const findings: string[] = []
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme: 'light' })
      const light = await accessibilityFindings(page)
      await page.emulateMedia({ colorScheme: 'dark' })
      const dark = await accessibilityFindings(page, CONTRAST)
      findings.push(...[...light, ...dark].map((finding) => `${width}: ${finding}`))
    }
    expect(findings).toEqual([])
  },
)
