import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { fitsScreen, openBrowser, visit } from './browser.ts'

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

test('the reference of the history interface is rendered from this server alone, and can be tried there', async () => {
  const { page, problems, hosts } = await visit(browser, `${demo.url}/docs/api/top-year-history`)
  await page.getByText('/api/feed/history', { exact: true }).first().waitFor()
  expect(await page.getByText('year_history_archive_corrupt').count()).toBeGreaterThan(0)
  expect(await page.getByRole('note').textContent()).toContain('DEMO')
  await page.getByRole('button', { name: 'Try it out' }).first().click()
  await page.getByRole('button', { name: 'Execute' }).click()
  await page.getByText('"publicationId"').first().waitFor()
  expect(await fitsScreen(page)).toBe(true)
  expect(problems).toEqual([])
  expect([...hosts]).toEqual([new URL(demo.url).host])
})
