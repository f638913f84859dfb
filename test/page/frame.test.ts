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
  { name: 'narrow', viewport: NARROW },
  { name: 'wide', viewport: WIDE },
])('the page on a $name screen', ({ name, viewport }) => {
  test.each(['light', 'dark'] as const)(
    'is accessible in %s colours, fits, has no error and asks no other host',
    async (colorScheme) => {
      const { page, problems, hosts } = await visit(browser, demo.url, { viewport, colorScheme })
      await picture(page, `page-${name}-${colorScheme}`)
      expect(await seriousFindings(page)).toEqual([])
      expect(await fitsScreen(page)).toBe(true)
      expect(problems).toEqual([])
      expect([...hosts]).toEqual([new URL(demo.url).host])
    },
  )
})
