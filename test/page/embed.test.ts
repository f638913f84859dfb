import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serveDemo } from '../support/dash.ts'
import { picture, accessibilityFindings, visit } from './browser.ts'

const LOADER_MAX_BYTES = 3_072

/** The frame has 640 pixels; everything else of the chat takes less than half. */
const CHAT_LOG_MIN_HEIGHT = 320

/** A site of its own origin, whose policy allows the scripts and frames of the chat's server and nothing else. */
async function startHost(): Promise<{ origin: string; serves: (chat: string) => void; close: () => void }> {
  let chat = ''
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.setHeader('content-security-policy', `default-src 'none'; script-src ${chat}; frame-src ${chat}`)
    response.end(`<!doctype html><html lang="en"><title>A site</title><main><h1>A site</h1><p>Its own text.</p></main>
      <script src="${chat}/embed/chat.js" data-theme="dark" data-label="Ask dash" async></script></html>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://localhost:${port}`,
    serves: (base) => void (chat = base),
    close: () => server.close(),
  }
}

let allowed: Awaited<ReturnType<typeof startHost>>
let foreign: Awaited<ReturnType<typeof startHost>>
let demo: Awaited<ReturnType<typeof serveDemo>>

beforeAll(async () => {
  allowed = await startHost()
  foreign = await startHost()
  demo = await serveDemo({ DASH_ALLOWED_ORIGINS: allowed.origin })
  allowed.serves(demo.url)
  foreign.serves(demo.url)
}, 120_000)

afterAll(async () => {
  allowed.close()
  foreign.close()
  await demo.close()
})

test('the button on the page of an allowed site opens the chat, which answers, and closes by key and button', async () => {
  const { page, problems } = await visit(allowed.origin, { viewport: { width: 1000, height: 800 } })
  const button = page.getByRole('button', { name: 'Ask dash' })
  expect(await button.getAttribute('aria-expanded')).toBe('false')
  await button.focus()
  await page.keyboard.press('Enter')
  expect(await button.getAttribute('aria-expanded')).toBe('true')
  const chat = page.frameLocator('iframe[title="Chat"]')
  await expect.poll(() => chat.locator('html').getAttribute('data-theme')).toBe('dark')
  expect(await chat.locator('header.site, footer').count()).toBe(0)
  // A message of another window than the frame's does not close the chat.
  await page.evaluate("postMessage('dash:close', '*')")
  await chat.locator('#chat-text').fill('What is trending?')
  await chat.locator('#chat-text').press('Enter')
  await chat.getByRole('button', { name: 'Copy' }).waitFor()
  expect(await chat.locator('#chat-log').textContent()).toContain('Top of the day')
  await picture(page, 'embedded-chat', false)
  expect(await chat.getByRole('heading', { name: 'Chat' }).count()).toBe(1)
  await chat.getByRole('button', { name: 'Copy' }).click()
  await expect.poll(() => chat.locator('#chat-status').textContent()).toBe('Copied.')
  expect((await chat.locator('#chat-log').boundingBox())?.height).toBeGreaterThan(CHAT_LOG_MIN_HEIGHT)
  expect(await accessibilityFindings(page)).toEqual([])
  await chat.getByRole('button', { name: 'Close' }).click()
  await expect.poll(() => button.getAttribute('aria-expanded')).toBe('false')
  expect(await button.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true)
  await button.click()
  await expect.poll(() => chat.locator('#chat-log').isVisible()).toBe(true)
  expect(await chat.locator('#chat-log').textContent()).toContain('Top of the day')
  await button.focus()
  await page.keyboard.press('Escape')
  expect(await button.getAttribute('aria-expanded')).toBe('false')
  await button.click()
  await chat.locator('#chat-text').press('Escape')
  await expect.poll(() => button.getAttribute('aria-expanded')).toBe('false')
  expect(problems).toEqual([])
})

test('in a frame on a phone an answer begins at its start, and what is around it takes a fifth', async () => {
  const { page } = await visit(allowed.origin, { viewport: { width: 375, height: 740 } })
  await page.getByRole('button', { name: 'Ask dash' }).click()
  const chat = page.frameLocator('iframe[title="Chat"]')
  for (const question of ['What is at the top of the year?', 'Top of the week?']) {
    await chat.locator('#chat-text').fill(question)
    await chat.locator('#chat-text').press('Enter')
    await chat.getByRole('button', { name: 'Retry' }).waitFor()
    await chat.locator('#chat-log[aria-busy="false"]').waitFor()
  }
  await picture(page, 'embedded-phone', false)
  const { height: frame = 0 } = (await page.locator('iframe').boundingBox()) ?? {}
  const log = await chat.locator('#chat-log').boundingBox()
  expect((log?.height ?? 0) / frame).toBeGreaterThanOrEqual(0.8)
  const turn = await chat.locator('.turn').last().boundingBox()
  expect(turn?.y).toBeGreaterThanOrEqual(log?.y ?? Infinity)
})

test.each([
  [416, 279],
  [288, 420],
])('no parts of the chat overlap in a frame of %i by %i pixels', async (width, height) => {
  const { page } = await visit(`${demo.url}/embed/chat`, { viewport: { width, height } })
  const below = async (upper: string, lower: string): Promise<boolean> => {
    const [one, other] = await Promise.all([upper, lower].map((part) => page.locator(part).boundingBox()))
    return (one?.y ?? Infinity) + (one?.height ?? 0) <= (other?.y ?? 0)
  }
  expect(await below('#chat-form', '#chat > p:visible')).toBe(true)
  await page.locator('#chat-text').fill('What is trending?')
  await page.locator('#chat-text').press('Enter')
  await page.getByRole('button', { name: 'Copy' }).waitFor()
  const [settings, start] = await Promise.all(
    ['.chat-settings summary', '[data-chat="new"]'].map((part) => page.locator(part).boundingBox()),
  )
  const isApart = (settings?.x ?? 0) + (settings?.width ?? 0) < (start?.x ?? 0)
  expect(isApart || (await below('[data-chat="new"]', '.chat-settings summary'))).toBe(true)
})

test('a frame with colours of its own keeps them when the browser goes back to it', async () => {
  const { page } = await visit(`${demo.url}/embed/chat?theme=dark`)
  await page.evaluate<void>(`(() => {
    localStorage.setItem('dash-theme', 'light')
    dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))
  })()`)
  expect(await page.locator('html').getAttribute('data-theme')).toBe('dark')
})

test('a site that is not allowed gets no frame, and neither does any other page of the server', async () => {
  const { page, problems } = await visit(foreign.origin)
  await page.getByRole('button', { name: 'Ask dash' }).click()
  await expect.poll(() => problems.some((problem) => problem.includes('frame-ancestors'))).toBe(true)
  expect(await page.frameLocator('iframe[title="Chat"]').locator('#chat-text').count()).toBe(0)
  const policyOf = async (path: string): Promise<string> =>
    (await fetch(demo.url + path)).headers.get('content-security-policy') ?? ''
  expect(await policyOf('/embed/chat')).toContain(`frame-ancestors ${allowed.origin}`)
  for (const path of ['/', '/chat', '/models', '/docs'])
    expect([path, (await policyOf(path)).includes("frame-ancestors 'none'")]).toEqual([path, true])
})

test('the script for other sites is small', () => {
  expect(readFileSync('assets/embed/chat.js').byteLength).toBeLessThanOrEqual(LOADER_MAX_BYTES)
})
