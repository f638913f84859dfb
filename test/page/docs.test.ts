import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { flawsOf, NARROW, picture, visit, WIDE } from './browser.ts'

let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  demo = await serveDemo()
})

afterAll(() => demo.close())

describe.each([
  { name: 'narrow-dark', viewport: NARROW, colorScheme: 'dark' },
  { name: 'wide-light', viewport: WIDE, colorScheme: 'light' },
] as const)('on a $name screen', ({ name, viewport, colorScheme }) => {
  test.each([
    ['index', '/docs'],
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
      const visited = await visit(`${demo.url}${path}`, { viewport, colorScheme })
      const { page } = visited
      await picture(page, `docs-${what}-${name}`)
      expect(await flawsOf(visited)).toEqual([])
      const text = await page.getByRole('article').textContent()
      const still = await visit(`${demo.url}${path}`, { viewport, javaScriptEnabled: false })
      expect(await still.page.getByRole('article').textContent()).toBe(text)
      const link = page.getByRole('link', { name: 'Operations', exact: true })
      if (!path.startsWith('/docs?') && what !== 'index')
        await page.getByText('Operators', { exact: true }).click()
      expect(await link.isVisible()).toBe(true)
      const themes = await page.locator('.in-light:visible, .in-dark:visible').count()
      expect(themes).toBe(['readme', 'tour'].includes(what) ? 1 : 0)
    },
  )
})
