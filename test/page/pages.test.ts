import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { exitOf, serve } from '../support/dash.ts'

const CHROMIUM = '/usr/bin/chromium'

let browser: Browser

beforeAll(async () => {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is not installed`)
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--disable-background-networking',
      '--disable-sync',
    ],
  })
})

afterAll(() => browser.close())

interface Visit {
  page: Page
  problems: string[]
  hosts: Set<string>
}

/** Opens a page and notes every console error, policy violation, failed request and host asked. */
async function visit(url: string, javaScriptEnabled = true): Promise<Visit> {
  const context = await browser.newContext({ javaScriptEnabled, viewport: { width: 375, height: 800 } })
  const page = await context.newPage()
  const problems: string[] = []
  const hosts = new Set<string>()
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) hosts.add(new URL(request.url()).host)
  })
  page.on('requestfailed', (request) => problems.push(`failed: ${request.url()}`))
  await page.goto(url, { waitUntil: 'networkidle' })
  return { page, problems, hosts }
}

async function demoUrl(): Promise<string> {
  const { url, child } = await serve(['--demo'])
  // Asked to end, the demo removes its folder; killed, it could not.
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await exitOf(child)
  })
  return url
}

test('the reference of the history interface is rendered from this server alone, and can be tried there', async () => {
  const url = await demoUrl()
  const { page, problems, hosts } = await visit(`${url}/docs/api/top-year-history`)
  await page.getByText('/api/feed/history', { exact: true }).first().waitFor()
  expect(await page.getByText('year_history_archive_corrupt').count()).toBeGreaterThan(0)
  expect(await page.getByRole('note').textContent()).toContain('DEMO')
  await page.getByRole('button', { name: 'Try it out' }).first().click()
  await page.getByRole('button', { name: 'Execute' }).click()
  await page.getByText('"publicationId"').first().waitFor()
  expect(await page.locator('html').evaluate((html) => html.scrollWidth <= html.clientWidth)).toBe(true)
  expect(problems).toEqual([])
  expect([...hosts]).toEqual([new URL(url).host])
})

test('the start page reads without scripts and without sideways scrolling on a narrow screen', async () => {
  const { page, problems, hosts } = await visit(await demoUrl(), false)
  expect(await page.getByRole('heading', { name: 'Popular' }).count()).toBe(1)
  expect(await page.locator('ol > li').count()).toBe(80)
  expect(await page.getByRole('note').textContent()).toContain('DEMO')
  expect(await page.locator('html').evaluate((html) => html.scrollWidth <= html.clientWidth)).toBe(true)
  expect(problems).toEqual([])
  expect(hosts.size).toBe(1)
})
