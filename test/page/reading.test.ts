import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Page } from 'playwright-core'
import { serveDemo } from '../support/dash.ts'
import { NARROW, SCREENS, flawsOf, picture, visit } from './browser.ts'

let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  demo = await serveDemo()
}, 120_000)

afterAll(() => demo.close())

const WEEK = '/?sort=week'
const keyOfFocus = (page: Page): Promise<string | null> =>
  page.locator('.item:focus-within').getAttribute('data-key')
const keysOf = (page: Page): Promise<string[]> =>
  page
    .locator('.lead .item:visible')
    .evaluateAll((items) => items.map((item) => item.getAttribute('data-key') ?? ''))

test('the keys move through the stories, hide them, change the period and open the help, but not while typing or when they are turned off', async () => {
  const opened = await visit(demo.url + WEEK, { viewport: { width: 1280, height: 900 } })
  const { page } = opened
  const [first = '', second = '', third = ''] = await keysOf(page)
  for (const [key, expected] of [
    ['j', first],
    ['j', second],
    ['j', third],
    ['k', second],
  ] as const) {
    await page.keyboard.press(key)
    expect(await keyOfFocus(page)).toBe(expected)
  }
  await page.keyboard.press('x')
  expect(await keyOfFocus(page)).toBe(third)
  expect((await keysOf(page)).slice(0, 2)).toEqual([first, third])
  expect(await page.locator('.hidden-count').first().textContent()).toBe('1 hidden Show')
  await page.reload({ waitUntil: 'networkidle' })
  expect(await keysOf(page)).not.toContain(second)
  await page.locator('.hidden-count button').first().click()
  expect((await keysOf(page)).slice(0, 3)).toEqual([first, second, third])

  await page.keyboard.press('/')
  await page.keyboard.type('jx')
  expect(await page.locator('#q').inputValue()).toBe('jx')
  await page.keyboard.press('Tab')
  await page.keyboard.press(']')
  await page.waitForURL(/sort=month/)
  // As on a keyboard that has brackets on AltGr.
  const altGr = { ctrlKey: true, altKey: true, modifierAltGraph: true }
  await page.locator('body').dispatchEvent('keydown', { key: '[', ...altGr })
  await page.waitForURL(/sort=week/)
  await page.keyboard.press('?')
  await page.locator('dialog.help[open]').waitFor()
  expect(await flawsOf(opened)).toEqual([])
  await page.getByLabel('Use these keys').uncheck()
  await page.keyboard.press('Escape')
  expect(await page.locator('dialog.help[open]').count()).toBe(0)
  await page.reload({ waitUntil: 'networkidle' })
  await page.keyboard.press('j')
  expect(await page.locator('.item:focus-within').count()).toBe(0)
})

test('the keys move through the changes of a comparison, and hide them', async () => {
  const { page } = await visit(demo.url, { viewport: { width: 1280, height: 900 } })
  const comparison = await page.locator('.since a:text("Compare all lists")').getAttribute('href')
  await page.goto(demo.url + comparison, { waitUntil: 'networkidle' })
  // Rows in a closed part are none.
  const rows = page.locator('.compared:not(details:not([open]) *) tr[data-key]:visible')
  const keys = await rows.evaluateAll((all) => all.map((row) => row.getAttribute('data-key') ?? ''))
  const focused = page.locator('tr:focus-within')
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  expect(await focused.getAttribute('data-key')).toBe(keys[1])
  await page.keyboard.press('x')
  expect(await focused.getAttribute('data-key')).toBe(keys[2])
  expect(await page.locator('.hidden-count').first().textContent()).toBe('1 hidden Show')
  expect(await rows.count()).toBe(keys.length - 1)
  for (let at = 3; at < keys.length; at += 1) await page.keyboard.press('j')
  expect(await focused.getAttribute('data-key')).toBe(keys.at(-1))
})

test('a page that the browser kept takes the hidden stories and the theme of a later page', async () => {
  const { page } = await visit(demo.url + WEEK)
  const [first = '', second = '', third = ''] = await keysOf(page)
  await page.evaluate<void>(`(() => {
    localStorage.setItem('dash-hidden', JSON.stringify({ hidden: [${JSON.stringify(first)}] }))
    localStorage.setItem('dash-theme', 'dark')
    dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))
  })()`)
  expect((await keysOf(page))[0]).toBe(second)
  expect(await page.locator('html').getAttribute('data-theme')).toBe('dark')
  expect(await page.locator('#theme-dark').isChecked()).toBe(true)
  await page.keyboard.press('j')
  await page.keyboard.press('x')
  expect((await keysOf(page))[0]).toBe(third)
  await page.reload({ waitUntil: 'networkidle' })
  expect((await keysOf(page))[0]).toBe(third)
})

test('a hidden story is hidden on all its sources', async () => {
  const { page } = await visit(demo.url)
  const row = page.locator('.lead .item[data-others]').first()
  const key = (await row.getAttribute('data-key')) ?? ''
  const [other = ''] = ((await row.getAttribute('data-others')) ?? '').split(' ')
  await row.locator('.title a').focus()
  await page.keyboard.press('x')
  const stored = await page.evaluate<{ hidden: string[] }>(`JSON.parse(localStorage.getItem('dash-hidden'))`)
  expect(stored.hidden).toEqual([key, ...((await row.getAttribute('data-others')) ?? '').split(' ')])
  expect(other).not.toBe('')
})

test('the discussion and the article of a story open by key', async () => {
  const { page } = await visit(demo.url + WEEK)
  await page.route(/^https?:\/\/(?!127\.0\.0\.1|localhost)/, (route) => route.fulfill({ body: 'elsewhere' }))
  const comments = (await page.locator('.lead .item a.comments').first().getAttribute('href')) ?? ''
  await page.keyboard.press('j')
  await page.keyboard.press('c')
  await page.waitForURL(comments)
  expect(await page.locator('body').textContent()).toBe('elsewhere')
})

test('opened stories are hidden if the visitor wishes', async () => {
  const { page } = await visit(demo.url + WEEK)
  await page.locator('[data-help]').click()
  await page.locator('dialog.help [name="read"]').check()
  await page.keyboard.press('Escape')
  // A dialog reports that it was closed in a later task of the browser.
  await expect.poll(() => page.evaluate('localStorage.getItem("dash-hidden")')).toContain('"hidesRead":true')
  await page.route(/^https?:\/\/(?!127\.0\.0\.1|localhost)/, (route) => route.fulfill({ body: 'elsewhere' }))
  const [read = '', ...others] = await keysOf(page)
  // The menu of a link does not open it.
  await page.locator('.lead .title a').nth(1).dispatchEvent('auxclick', { button: 2 })
  await page.keyboard.press('j')
  await page.keyboard.press('o')
  await page.waitForURL((url) => !url.href.startsWith(demo.url))
  await page.goto(demo.url + WEEK, { waitUntil: 'networkidle' })
  expect(await keysOf(page)).toEqual(others)
  expect(read).not.toBe('')
  await page.locator('[data-help]').click()
  await page.getByRole('button', { name: 'Show all hidden stories' }).click()
  await expect.poll(() => keysOf(page)).toEqual([read, ...others])
  expect(await page.locator('#announcements').textContent()).toBe('Hidden stories are shown again.')
})

test('the cursor of the chart of an item names the numbers of its day', async () => {
  const { page, problems } = await visit(`${demo.url}/item?key=hn-26296339`)
  const day = page.locator('.over-time .day').last()
  await day.hover()
  const numbers = (await page.locator('.over-time text.cursor').textContent()) ?? ''
  expect(numbers).toMatch(/^\d{4}-\d\d-\d\d: #\d+ in Popular, .*, [\d,]+ points$/)
  expect(await day.textContent()).toBe(numbers)
  expect(problems).toEqual([])
})

test('the chat has a page of its own, which suggests questions, answers one, and shows the talk again after a reload', async () => {
  const opened = await visit(`${demo.url}/docs`, { viewport: NARROW })
  const { page } = opened
  await page.getByRole('link', { name: 'Ask', exact: true }).click()
  await page.waitForURL('**/chat')
  const questions = page.locator('.chat-suggestions button')
  await expect.poll(() => questions.count()).toBe(4)
  const question = (await questions.first().textContent()) ?? ''
  await questions.first().click()
  expect(await page.evaluate('document.activeElement.id')).toBe('chat-text')
  await page.locator('.turn .actions button:text("Retry")').waitFor()
  expect(await questions.first().isVisible()).toBe(false)
  // There is nothing to close on a page that is the chat.
  expect(await page.getByRole('button', { name: 'Close' }).count()).toBe(0)
  expect(await page.locator('.chat:modal').count()).toBe(0)
  await page.waitForTimeout(1_100)
  await page.keyboard.press('Escape')
  expect(await page.getByLabel('Message').isVisible()).toBe(true)
  const quota = await page.locator('#chat-quota').textContent()
  expect(quota).toMatch(/^19 of 20 messages left in this conversation, \d+ of \d+ today$/)
  const answer = await page.locator('.turn .answer').textContent()
  expect(answer?.trim()).not.toBe('')
  await page.reload({ waitUntil: 'networkidle' })
  expect(await page.locator('.turn .question').textContent()).toContain(question)
  await expect.poll(() => page.locator('.turn .answer').textContent()).toBe(answer)
  await expect.poll(() => page.locator('#chat-quota').textContent()).toBe(quota)
  expect(await page.getByRole('heading', { name: 'Chat', exact: true }).count()).toBe(1)
  await page.locator('[data-chat="new"]').click()
  await page.reload({ waitUntil: 'networkidle' })
  expect(await page.locator('.turn').count()).toBe(0)
  expect(await flawsOf(opened)).toEqual([])
})

test.each(SCREENS)('the opened box that shares a moment has no flaws: $name', async ({ name, ...screen }) => {
  for (const path of ['/?sort=year', '/item?key=hn-26296339']) {
    const opened = await visit(demo.url + path, screen)
    await opened.page.locator('details.share summary').click()
    expect(await opened.page.locator('#share-link').textContent()).toMatch(/[?&]at=\d{4}-/)
    await picture(opened.page, `share-${path.includes('item') ? 'item' : 'year'}-${name}`)
    expect(await flawsOf(opened)).toEqual([])
  }
})
