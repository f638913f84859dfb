import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { NARROW, WIDE, accessibilityFindings, picture, visit } from './browser.ts'

let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  // An operator's own setting, which must not reach the demo.
  demo = await serveDemo({ DASH_FREE_LLM_BASE_URL: 'https://models.example/v1' })
})

afterAll(() => demo.close())

test('models are filtered as by the interface and can be chosen', async () => {
  const { page, problems } = await visit(`${demo.url}/models`, { viewport: WIDE })
  await page.locator('summary', { hasText: 'Filter' }).click()
  await page.getByLabel('tools', { exact: true }).check()
  await page.getByLabel('followed the format').check()
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.waitForURL(/models\?.*health=passed/)
  await page.getByText('2 of 4 models').waitFor()
  const response = await fetch(`${demo.url}/api/free-llm/top-models?needs=tools&health=passed`)
  const { models } = (await response.json()) as { models: { id: string; name: string }[] }
  const ids = page.locator('[data-model]')
  expect(await ids.evaluateAll((rows) => rows.map((row) => row.getAttribute('data-model')))).toEqual(
    models.map(({ id }) => id),
  )
  expect(await page.getByLabel('tools', { exact: true }).isChecked()).toBe(true)
  const [, second] = models
  const named = page.locator('.models').getByRole('link', { name: second?.name ?? '' })
  await named.click()
  await page.getByRole('heading', { name: `Call ${second?.name}` }).waitFor()
  expect(await page.locator('#snippet-curl').textContent()).toContain(`"model":"${second?.id}"`)
  await page.getByLabel('Python', { exact: true }).check()
  const isShown = (name: string): Promise<boolean> => page.locator(`#snippet-${name}`).isVisible()
  expect([await isShown('curl'), await isShown('python')]).toEqual([false, true])
  expect(problems).toEqual([])
})

test('a period opens at the top of the page with its title, and back and forward work', async () => {
  const { page, problems } = await visit(demo.url, { viewport: NARROW })
  const arrives = async (name: string): Promise<void> => {
    await page.locator('.tabs [aria-current]', { hasText: name }).waitFor()
    expect(await page.title()).toBe(`DEMO: ${name} · dash`)
  }
  await page.getByRole('link', { name: 'Month', exact: true }).click()
  await arrives('Month')
  expect(await page.evaluate('scrollY')).toBe(0)
  await page.getByRole('link', { name: 'Week', exact: true }).click()
  await arrives('Week')
  await page.goBack()
  await arrives('Month')
  await page.goBack()
  await arrives('Trending')
  await page.goForward()
  await arrives('Month')
  expect(problems).toEqual([])
})

test('a menu of the header closes by Escape, by a click elsewhere, and when another one opens', async () => {
  const { page } = await visit(demo.url)
  const [pill, theme] = [page.locator('.demo summary'), page.locator('.theme summary')]
  const note = page.getByRole('note')
  await pill.click()
  expect(await note.textContent()).toContain('Nothing here is current')
  await page.keyboard.press('Escape')
  expect(await note.isVisible()).toBe(false)
  expect(await page.evaluate('document.activeElement.textContent')).toContain('DEMO')
  await pill.click()
  await theme.click()
  expect(await note.isVisible()).toBe(false)
  expect(await page.getByLabel('auto').isVisible()).toBe(true)
  // The menu lies over the rest of the line.
  await page.locator('#column-popular-title').click({ position: { x: 4, y: 4 } })
  expect(await page.getByLabel('auto').isVisible()).toBe(false)
})

test('the menu of the header leads to the other pages on a phone', async () => {
  const { page } = await visit(demo.url, { viewport: NARROW })
  const pages = page.getByRole('navigation', { name: 'Pages', exact: true })
  expect(await pages.count()).toBe(0)
  await page.locator('.theme summary').click()
  await picture(page, 'page-menu', false)
  expect(await pages.getByRole('link').allTextContents()).toEqual(['Models', 'Status', 'Docs'])
  expect(await accessibilityFindings(page)).toEqual([])
  await pages.getByRole('link', { name: 'Models' }).click()
  await page.waitForURL('**/models')
})

test('a copied snippet, confirmed by a message, gets a response from the demo with any key', async () => {
  const { page } = await visit(`${demo.url}/models`, { permissions: ['clipboard-read', 'clipboard-write'] })
  expect(await page.locator('#models').textContent()).toContain('export OPENROUTER_API_KEY=demo')
  await page.locator('.recommendation strong a').click()
  await page.getByRole('button', { name: 'Copy the line for curl' }).click()
  await page.locator('#announcements', { hasText: 'Copied.' }).waitFor({ state: 'attached' })
  const copied = await page.evaluate<string>('navigator.clipboard.readText()')
  const env = { PATH: process.env['PATH'], OPENROUTER_API_KEY: 'demo' }
  const { stdout } = await promisify(execFile)('sh', ['-c', copied], { env })
  expect(stdout).toContain('a script answers here')
})

test('the keyboard reaches everything, shows the focus, and can skip to the content', async () => {
  const { page, problems } = await visit(demo.url, { viewport: WIDE })
  await page.keyboard.press('Tab')
  const skip = page.getByRole('link', { name: 'Skip to the content' })
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content')
  expect((await skip.boundingBox())?.y).toBeGreaterThanOrEqual(0)
  await page.keyboard.press('Enter')
  expect(await page.evaluate('document.activeElement.id')).toBe('main')
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.closest("section").id')).toBe('status')
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toContain('Top Year:')
  for (const next of ['Filter, subscribe', 'new since yesterday', 'What did I miss?']) {
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toContain(next)
  }
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('1: rank over time')
  await page.getByRole('link', { name: 'Day', exact: true }).focus()
  await page.keyboard.press('Enter')
  await page.locator('.tabs [aria-current]', { hasText: 'Day' }).waitFor()
  await page.goto(`${demo.url}/?sort=day`, { waitUntil: 'networkidle' })
  const seen = new Set<string>()
  for (let tabs = 0; tabs < 400; tabs += 1) {
    await page.keyboard.press('Tab')
    const at = await page.evaluate<{ what: string; outline: string } | null>(FOCUSED)
    if (at === null) break
    expect([at.what, at.outline]).toEqual([at.what, 'solid 2px'])
    seen.add(at.what)
  }
  const all = await page.evaluate<string[]>(FOCUSABLE)
  expect(all.length).toBeGreaterThan(100)
  expect(all.filter((what) => !seen.has(what))).toEqual([])
  expect(problems).toEqual([])
})

/** The focused element and its focus style; null if there is none. */
const FOCUSED = `(() => {
  const element = document.activeElement
  if (!element || element === document.body) return null
  const { outlineStyle, outlineWidth } = getComputedStyle(element)
  return { what: element.outerHTML, outline: outlineStyle + ' ' + outlineWidth }
})()`

/** Everything a keyboard should reach; of radio buttons the one that is checked. */
const FOCUSABLE = `[...document.querySelectorAll(
  'a[href]:not([tabindex="-1"]), button, select, input:not([type=hidden], [type=radio]), input[type=radio]:checked, summary, pre[tabindex="0"]'
)].filter((element) => element.checkVisibility()).map((element) => element.outerHTML)`

describe('colours', () => {
  const ground = (page: Page) => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
  const DARK = 'rgb(18, 20, 23)'
  const LIGHT = 'rgb(252, 251, 249)'

  test('colours can be switched without scripts', async () => {
    const { page } = await visit(demo.url, { javaScriptEnabled: false, colorScheme: 'light' })
    await page.locator('.theme summary').click()
    await page.getByLabel('dark').check()
    await picture(page, 'page-switched-dark')
    expect(await ground(page)).toBe(DARK)
    await page.getByLabel('light').check()
    expect(await ground(page)).toBe(LIGHT)
  })

  test('chosen colours are stored, and auto follows the system again', async () => {
    const { page } = await visit(demo.url, { colorScheme: 'light' })
    expect(await ground(page)).toBe(LIGHT)
    await page.locator('.theme summary').click()
    await page.getByLabel('dark').check()
    expect(await ground(page)).toBe(DARK)
    await page.goto(`${demo.url}/docs`)
    await page.locator('.theme summary').click()
    expect(await ground(page)).toBe(DARK)
    expect(await page.getByLabel('dark').isChecked()).toBe(true)
    await page.getByLabel('auto').check()
    expect(await ground(page)).toBe(LIGHT)
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await ground(page)).toBe(DARK)
  })
})

test('nothing moves with reduced motion', async () => {
  const { page } = await visit(demo.url, { reducedMotion: 'reduce' })
  expect(await page.evaluate('getComputedStyle(document.documentElement).scrollBehavior')).toBe('auto')
})
