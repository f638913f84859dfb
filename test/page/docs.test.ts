import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { fitsScreen, NARROW, openBrowser, picture, seriousFindings, visit, WIDE } from './browser.ts'

let browser: Browser
let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  browser = await openBrowser()
  demo = await serveDemo()
})

afterAll(async () => {
  await browser.close()
  await demo.close()
})

describe.each([
  { name: 'narrow-dark', viewport: NARROW, colorScheme: 'dark' },
  { name: 'wide-light', viewport: WIDE, colorScheme: 'light' },
] as const)('on a $name screen', ({ name, viewport, colorScheme }) => {
  test.each([
    ['index', '/docs'],
    ['history', '/docs/api/top-year-history'],
    ['models', '/docs/api/free-llm'],
    ['guide', '/docs/auditing'],
    ['decision', '/docs/decisions/0002-caching-verified-publications'],
  ])(
    'the document is accessible, fits, reads without scripts and asks no other host: %s',
    async (what, path) => {
      const { page, problems, hosts } = await visit(browser, `${demo.url}${path}`, { viewport, colorScheme })
      await picture(page, `docs-${what}-${name}`)
      expect(await seriousFindings(page)).toEqual([])
      expect(await fitsScreen(page)).toBe(true)
      expect(problems).toEqual([])
      expect([...hosts]).toEqual([new URL(demo.url).host])
      const text = await page.getByRole('article').textContent()
      const still = await visit(browser, `${demo.url}${path}`, { viewport, javaScriptEnabled: false })
      expect(await still.page.getByRole('article').textContent()).toBe(text)
      expect(
        await page.getByRole('navigation', { name: 'Documents' }).getByRole('link').count(),
      ).toBeGreaterThan(20)
    },
  )
})
