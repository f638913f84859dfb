import { afterAll, beforeAll, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { flawsOf, NARROW, picture, visit } from './browser.ts'

let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  demo = await serveDemo()
})

afterAll(() => demo.close())

test.each([
  ['interface', '/docs/api/top-year-history'],
  ['readme', '/docs/readme'],
  ['tour', '/docs/tour'],
  ['results', '/docs?q=audit'],
  ['partial results', '/docs?q=zebrawood+DASH_MODEL_WEBHOOK_SECRET'],
  ['guide', '/docs/auditing'],
  ['questions', '/docs/faq'],
  ['decision', '/docs/decisions/0002-caching-verified-publications'],
  ['diagram', '/docs/proof'],
])(
  'the document is accessible, fits, works without scripts and contacts no other host: %s',
  async (what, path) => {
    const visited = await visit(`${demo.url}${path}`, { viewport: NARROW, colorScheme: 'dark' })
    const { page } = visited
    await picture(page, `docs-${what}-narrow-dark`)
    expect(await flawsOf(visited)).toEqual([])
    const text = await page.getByRole('article').textContent()
    const still = await visit(`${demo.url}${path}`, { viewport: NARROW, javaScriptEnabled: false })
    expect(await still.page.getByRole('article').textContent()).toBe(text)
    const link = page.getByRole('link', { name: 'Operations', exact: true })
    if (!path.startsWith('/docs?')) await page.getByText('Operators', { exact: true }).click()
    expect(await link.isVisible()).toBe(true)
    const themes = await page.locator('.in-light:visible, .in-dark:visible').count()
    expect(themes).toBe(['readme', 'tour'].includes(what) ? 1 : 0)
  },
)
