import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { startProvider } from '../support/provider.ts'
import { flawsOf, NARROW, picture, accessibilityFindings, visit, WIDE } from './browser.ts'
import { answers, ask, openChat, serveChat, startAnswering, startChat, status } from './chat-server.ts'

let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  // The tests of this file together send more messages in a minute than one address may.
  demo = await serveDemo({ DASH_CHAT_BURST_PER_MINUTE: '60', DASH_CHAT_MIN_GAP_MS: '0' })
})

afterAll(() => demo.close())

describe.each([
  { name: 'narrow-dark', sort: 'day', viewport: NARROW, colorScheme: 'dark' },
  { name: 'wide-light', sort: 'week', viewport: WIDE, colorScheme: 'light' },
] as const)('on a $name screen', ({ name, sort, viewport, colorScheme }) => {
  test('an answer shows tools, times and quota, is accessible and contacts no other host', async () => {
    const opened = await openChat(`${demo.url}/?sort=${sort}`, { viewport, colorScheme })
    const { page } = opened
    expect(await accessibilityFindings(page)).toEqual([])
    await ask(page, 'What is trending?')
    await picture(page, `chat-answer-${name}`, false)
    await expect.poll(() => status(page).textContent()).toBe('')
    expect((await answers(page).textContent())?.length).toBeGreaterThan(100)
    expect(await page.locator('.tools li').allTextContents()).toEqual([
      expect.stringMatching(/^Reading a top list \d+\.\d+ s$/),
    ])
    expect(await page.locator('#chat-quota').textContent()).toMatch(
      /^19 of 20 messages left in this conversation, \d+ of 60 today$/,
    )
    await page.getByText('Settings', { exact: true }).click()
    await picture(page, `chat-settings-${name}`, false)
    expect(await flawsOf(opened)).toEqual([])
  })

  test('an answer streams visibly, is announced politely, and can be stopped', async () => {
    const { page, problems, provider } = await startChat({ viewport, colorScheme })
    await ask(page, 'Tell me', false)
    await provider.arrived(1)
    provider.say('Three things **rise** now:\n\n1. [Chips](https://example.org/chips)\n2. Robots, and ')
    await page.locator('.answer strong', { hasText: 'rise' }).waitFor()
    expect(await page.getByRole('log').getAttribute('aria-busy')).toBe('true')
    expect(await page.locator('.reply').getAttribute('aria-busy')).toBe('true')
    expect(await status(page).textContent()).toBe('Answering …')
    expect(await status(page).getAttribute('role')).toBe('status')
    await picture(page, `chat-middle-${name}`, false)
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'Stop' }).click()
    await provider.idle()
    expect(await page.locator('.trouble').textContent()).toBe('Stopped. The part received is kept.')
    expect(await answers(page).textContent()).toContain('Robots, and')
    expect(await page.getByRole('log').getAttribute('aria-busy')).toBe('false')
    await page.getByRole('button', { name: 'Retry' }).click()
    await provider.arrived(2)
    provider.say('Everything.')
    provider.finish()
    await page.locator('.answer', { hasText: 'Everything.' }).waitFor()
    await expect.poll(() => status(page).textContent()).toBe('')
    expect(await page.locator('.turn').count()).toBe(1)
    expect(problems).toEqual([])
  })
})

test('a chat about an item shows its title, sends its key, and can return to the site, whose turns it is not mixed with', async () => {
  const { page, problems } = await visit(`${demo.url}/?sort=week`, { viewport: WIDE })
  const card = page.locator('#column-popular .item').first()
  const title = (await card.locator('.title bdi').textContent()) ?? ''
  const key = await card.getAttribute('data-key')
  await card.locator('.row-menu summary').click()
  await card.getByRole('link', { name: 'Ask' }).click()
  await page.getByRole('dialog', { name: 'Chat' }).waitFor()
  expect(await page.locator('#chat-scope bdi').textContent()).toBe(title)
  const sent = async (question: string): Promise<unknown> => {
    const request = page.waitForRequest(/agent\/chat$/)
    await ask(page, question)
    return (await request).postDataJSON()
  }
  expect(await sent('What is this about?')).toMatchObject({
    scope: { type: 'item', key },
    sort: 'week',
    messages: [{ role: 'user', content: 'What is this about?' }],
  })
  expect(await answers(page).textContent()).toContain(title.split(' ')[0])
  await picture(page, 'chat-item-wide', false)
  await page.getByRole('button', { name: 'Whole site' }).click()
  expect(await page.locator('#chat-scope bdi').textContent()).toBe('this site')
  const site = await sent('hello')
  expect(site).not.toHaveProperty('scope')
  // The turn about the item is not sent.
  expect(site).toMatchObject({ messages: [{ role: 'user', content: 'hello' }] })
  expect(problems).toEqual([])
})

test('Ask leads from the page of an item to the chat about it', async () => {
  const response = await fetch(`${demo.url}/api/feed?sort=week`)
  const { popular } = (await response.json()) as { popular: { key: string; title: string }[] }
  const { key = '', title = '' } = popular[0] ?? {}
  const opened = await visit(`${demo.url}/item?key=${encodeURIComponent(key)}`, { viewport: WIDE })
  const { page } = opened
  await page.locator(`[data-key="${key}"]`).getByRole('link', { name: 'Ask about it' }).click()
  await page.waitForURL(`${demo.url}/chat?key=${key}`)
  await expect.poll(() => page.locator('#chat-scope bdi').textContent()).toBe(title)
  expect(await flawsOf(opened)).toEqual([])
})

test('Ask opens the page of the chat in a new tab with the key for that', async () => {
  const { page } = await visit(demo.url, { viewport: WIDE })
  const opened = page.context().waitForEvent('page')
  await page.getByRole('link', { name: 'Ask', exact: true }).click({ modifiers: ['Control'] })
  await (await opened).waitForURL(/\/chat$/)
  expect(await page.getByRole('dialog').count()).toBe(0)
})

test('a new conversation during an answer removes the answer', async () => {
  const { page, problems, provider } = await startAnswering('Half of it', { viewport: WIDE })
  await page.evaluate(STATUSES)
  await page.getByRole('button', { name: 'New conversation' }).click()
  await provider.idle()
  expect(await page.locator('.turn').count()).toBe(0)
  await ask(page, 'And now?', false)
  await provider.arrived(2)
  provider.say('All of it.')
  await page.locator('.answer', { hasText: 'All of it.' }).waitFor()
  expect(await page.getByRole('button', { name: 'Stop' }).isVisible()).toBe(true)
  provider.finish()
  await expect.poll(() => status(page).textContent()).toBe('')
  expect(await page.evaluate('window.statuses')).toEqual([
    'New conversation started.',
    'Asking …',
    'Answering …',
    '',
  ])
  expect(problems).toEqual([])
})

/** Records the messages of the status line from now on. */
const STATUSES = `(() => {
  const line = document.getElementById('chat-status')
  window.statuses = []
  new MutationObserver(() => window.statuses.push(line.textContent)).observe(line, { childList: true })
})()`

test('the same question in a new conversation gets the cached answer, with a label', async () => {
  const { page } = await openChat(demo.url)
  await ask(page, 'What was at the top of the last month?')
  const first = await answers(page).textContent()
  await page.getByRole('button', { name: 'New conversation' }).click()
  expect(await page.locator('.turn').count()).toBe(0)
  await ask(page, 'What was at the top of the last month?')
  expect(await answers(page).textContent()).toBe(first)
  expect(await page.locator('.label').textContent()).toContain('cached')
})

test('the keyboard suffices to open, break a line, send, stop and close', async () => {
  const provider = await startProvider('silence after headers')
  const { url } = await serveChat(provider.url)
  const { page } = await visit(url, { viewport: WIDE })
  await page.getByRole('link', { name: 'Ask', exact: true }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Chat' }).waitFor()
  await page.keyboard.type('one')
  await page.keyboard.press('Shift+Enter')
  await page.keyboard.type('two')
  // Safari reports the key that ends a composition in this way.
  await page.locator('#chat-text').dispatchEvent('keydown', { key: 'Enter', keyCode: 229 })
  expect(await page.locator('.question').count()).toBe(0)
  await page.keyboard.press('Enter')
  await provider.arrived(1)
  expect(await page.locator('.question').textContent()).toBe('You: one\ntwo')
  provider.say('Half')
  await page.locator('.answer', { hasText: 'Half' }).waitFor()
  await page.keyboard.press('Escape')
  await provider.idle()
  expect(await page.locator('.trouble').textContent()).toBe('Stopped. The part received is kept.')
  expect(await page.getByRole('dialog').isVisible()).toBe(true)
  await page.keyboard.press('Escape')
  expect(await page.getByRole('dialog').count()).toBe(0)
  expect(await page.evaluate('document.activeElement.dataset.chat')).toBe('open')
  await page.keyboard.press('Enter')
  expect(await answers(page).textContent()).toContain('Half')
  // The sheet covers a part of the page; from there it is closed too, after an open menu.
  const menu = page.locator('.row-menu summary').first()
  await menu.focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Escape')
  expect(await page.getByRole('dialog').count()).toBe(1)
  await page.keyboard.press('Escape')
  expect(await page.getByRole('dialog').count()).toBe(0)
  expect(await menu.evaluate((button) => button === button.ownerDocument.activeElement)).toBe(true)
})

test('Escape in the search or in the help does not close the chat beside them', async () => {
  const { page } = await openChat(demo.url, { viewport: WIDE })
  const dialogs = page.getByRole('dialog')
  await page.locator('#q').press('Escape')
  expect(await dialogs.count()).toBe(1)
  await page.keyboard.press('?')
  expect(await dialogs.count()).toBe(2)
  await page.keyboard.press('Escape')
  await expect.poll(() => dialogs.count()).toBe(1)
  expect(await dialogs.getByRole('heading').first().textContent()).toBe('Chat')
  await page.keyboard.press('Escape')
  expect(await dialogs.count()).toBe(0)
})

test('the sheet on a narrow screen asks a suggested question, holds the focus, Escape stops before it closes, and nothing blinks with reduced motion', async () => {
  const { page, provider } = await startChat({ reducedMotion: 'reduce' })
  await page.locator('[data-question]').first().click()
  await provider.arrived(1)
  expect(await page.evaluate('document.activeElement.id')).toBe('chat-text')
  const caret = `getComputedStyle(document.querySelector('.answer'), '::after').animationName`
  expect(await page.evaluate(caret)).toBe('none')
  await page.keyboard.press('Escape')
  await provider.idle()
  expect(await page.getByRole('dialog').isVisible()).toBe(true)
  for (let tabs = 0; tabs < 20; tabs += 1) {
    await page.keyboard.press('Tab')
    expect(
      await page.evaluate(
        'document.activeElement === document.body || !!document.activeElement.closest("dialog")',
      ),
    ).toBe(true)
  }
  await page.locator('#chat-text').focus()
  await page.setViewportSize(WIDE)
  await page.locator('.chat:not(:modal)').waitFor()
  expect(await page.evaluate('document.activeElement.id')).toBe('chat-text')
  expect(await page.locator('.trouble').textContent()).toBe('Stopped.')
  // Not every browser focuses a clicked button; closing the sheet must still return the focus to its opener.
  await page.evaluate(`(() => {
    document.activeElement.blur()
    document.querySelector('[data-chat="close"]').click()
  })()`)
  expect(await page.evaluate('document.activeElement.dataset.chat')).toBe('open')
})

test('settings are sent, stored in this browser only, and deleted on demand', async () => {
  const { page } = await openChat(demo.url)
  await page.getByText('Settings', { exact: true }).click()
  await page.getByLabel('Language of answers').selectOption('ru')
  await page.getByLabel('Tone').selectOption('terse')
  await page.getByLabel('About you').fill('I build chips')
  await page.getByLabel('Interests').fill(`chips, , ${'x'.repeat(50)},${'a,'.repeat(12)}`)
  await page.getByLabel('Interests').blur()
  const request = page.waitForRequest(/agent\/chat$/)
  await ask(page, 'hello')
  const wanted = {
    preferredLanguage: 'ru',
    tone: 'terse',
    prePrompt: 'I build chips',
    interests: ['chips', 'x'.repeat(40), ...Array.from({ length: 8 }, () => 'a')],
  }
  expect((await request).postDataJSON()).toMatchObject({ settings: wanted })
  await page.evaluate(`sessionStorage.setItem('dash-chat-left', '{}')`)
  await page.reload({ waitUntil: 'networkidle' })
  expect(await page.context().cookies()).toEqual([])
  await page.getByRole('link', { name: 'Ask', exact: true }).click()
  await expect.poll(() => page.locator('.turn').count()).toBe(1)
  // Damaged numbers of messages left are not shown.
  await expect
    .poll(() => page.locator('#chat-quota').textContent())
    .toBe('20 messages a conversation, 60 a day')
  await page.getByText('Settings', { exact: true }).click()
  expect(await page.getByLabel('Language of answers').inputValue()).toBe('ru')
  await page.getByRole('button', { name: 'Clear' }).click()
  expect(await page.getByLabel('Language of answers').inputValue()).toBe('auto')
  expect(await page.evaluate('localStorage.getItem("dash-chat-settings")')).toBe(null)
})

test('an answer is copied as Markdown', async () => {
  const { page } = await openChat(demo.url, { permissions: ['clipboard-read', 'clipboard-write'] })
  await ask(page, 'hello')
  await page.getByRole('button', { name: 'Copy', exact: true }).click()
  await expect.poll(() => status(page).textContent()).toBe('Copied.')
  const copied = await page.evaluate<string>('navigator.clipboard.readText()')
  expect(copied.length).toBeGreaterThan(20)
})

test('the panel without scripts names its requirement and the alternatives', async () => {
  const { page } = await visit(demo.url, { javaScriptEnabled: false })
  expect(await page.getByRole('link', { name: 'Ask about' }).count()).toBe(0)
  expect(await page.locator('#status').textContent()).toContain('20 messages per session, 60 per day')
  await page.getByRole('link', { name: 'Ask', exact: true }).click()
  await page.waitForURL(/\/chat$/)
  const section = page.locator('#chat')
  expect(await section.textContent()).toContain('dash chat --url')
  expect(await section.getByRole('link', { name: 'the API' }).getAttribute('href')).toBe(
    '/docs/api/agent-chat',
  )
  expect(await page.getByRole('button', { name: 'Open the chat' }).isVisible()).toBe(false)
  expect(await page.locator('.row-menu:visible').count()).toBe(0)
})

test('Escape just after an answer does not close the sheet', async () => {
  const { page, provider } = await startAnswering('Everything.', { viewport: WIDE })
  await page.evaluate(ESCAPE_AT_THE_END)
  provider.finish()
  await page.evaluate('window.pressed')
  expect(await page.getByRole('dialog').isVisible()).toBe(true)
  await page.waitForTimeout(1_100)
  await page.keyboard.press('Escape')
  expect(await page.getByRole('dialog').count()).toBe(0)
})

/** Presses Escape as soon as the answer is complete, and resolves `window.pressed`. */
const ESCAPE_AT_THE_END = `(() => {
  const line = document.getElementById('chat-status')
  window.pressed = new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      if (line.textContent !== '') return
      observer.disconnect()
      line.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }))
      resolve()
    })
    observer.observe(line, { childList: true })
  })
})()`
