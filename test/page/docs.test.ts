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
    ['guide', '/docs/auditing'],
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
      expect(
        await page.getByRole('navigation', { name: 'Documents' }).getByRole('link').count(),
      ).toBeGreaterThan(20)
    },
  )
})
