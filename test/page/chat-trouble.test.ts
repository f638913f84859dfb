import type { Page, Route } from 'playwright-core'
import { expect, test } from 'vitest'
import { saveKey } from '../../src/domain/feed/source.ts'
import { beginSession, SESSION_ID_BYTES, sessionSigner } from '../../src/domain/agent/credentials.ts'
import type { Behaviour } from '../support/provider.ts'
import { picture, visit, WIDE } from './browser.ts'
import { answers, ask, serveChat, startAnswering, startChat, troubles } from './chat-server.ts'

/** Base URL of a provider on a port without a listener. */
const NOBODY = 'http://127.0.0.1:9/v1'

test('a limit is explained with the time on the clock, its actions stay visible, and a new conversation goes on', async () => {
  const env = { DASH_CHAT_MESSAGES_PER_SESSION: '1' }
  const { page, url } = await startChat({ behaviour: 'answer', env })
  await ask(page, 'one '.repeat(60))
  // Its own page has a low log, of which an error takes several rows.
  await page.goto(`${url}/chat`, { waitUntil: 'networkidle' })
  await ask(page, 'two')
  expect(await troubles(page).last().textContent()).toMatch(
    /^All messages of this session are used.* Try again at (\d+ \w+,? )?\d\d:\d\d(:\d\d)?\.$/,
  )
  expect(await page.locator('.question').last().textContent()).toBe('You: two')
  expect(await page.getByRole('button', { name: 'Retry' }).count()).toBe(1)
  // The next actions stay visible, however many rows the status line takes.
  const [log, retry] = await Promise.all(
    [page.getByRole('log'), page.getByRole('button', { name: 'Retry' })].map((part) => part.boundingBox()),
  )
  expect((retry?.y ?? 0) + (retry?.height ?? 0)).toBeLessThanOrEqual((log?.y ?? 0) + (log?.height ?? 0))
  await picture(page, 'chat-429', false)
  await page.getByRole('button', { name: 'New conversation' }).click()
  await ask(page, 'three')
  expect(await answers(page).textContent()).toContain('Hello')
})

test.each([
  ['of a failing model', 'failed', 'The model failed (upstream_error, failed). This message counted.'],
  ['without its terminal event', 'answer', 'The connection broke before the answer ended.'],
] as const)('an answer %s stays, with an error', async (_what, behaviour, problem) => {
  const { page } = await startChat({ behaviour })
  await changeStream(page, (text) => text.replace(/event: done.*/s, ''))
  await ask(page, 'one')
  expect(await troubles(page).textContent()).toBe(`${problem} The part received is kept.`)
  expect(await answers(page).textContent()).toContain('Hello')
})

test('an answer is shown as text when its renderer cannot be loaded', async () => {
  const { page, provider } = await startChat()
  await page.route('**/chat-markdown.js', (route) => route.abort())
  await ask(page, 'one', false)
  await provider.arrived(1)
  provider.say('These **rise** now.')
  await expect.poll(() => answers(page).textContent()).toBe('These **rise** now.')
})

test('a retried answer stays until the new one starts, also within the minimum gap', async () => {
  const { page, provider } = await startChat({ env: { DASH_CHAT_MIN_GAP_MS: '3000' } })
  await ask(page, 'one', false)
  await provider.arrived(1)
  provider.say('Old')
  await expect.poll(() => answers(page).textContent()).toContain('Old')
  // A stopped turn is not sent with the next one.
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('button', { name: 'Retry' }).click()
  await provider.arrived(2)
  expect(await answers(page).first().textContent()).toContain('Old')
  expect(await page.locator('.question:visible').count()).toBe(1)
  provider.say('New')
  await expect.poll(() => answers(page).allTextContents()).toEqual([expect.stringContaining('New')])
  expect(await page.locator('.question:visible').count()).toBe(1)
  provider.finish()
  await page.getByRole('button', { name: 'Retry' }).waitFor()
  expect(await troubles(page).allTextContents()).toEqual([''])
})

test('an answer whose retry is refused stays, with its actions', async () => {
  const { page } = await startChat({ behaviour: 'answer', env: { DASH_CHAT_MIN_GAP_MS: '600000' } })
  await ask(page, 'one')
  const answer = await answers(page).textContent()
  await page.getByRole('button', { name: 'Retry' }).click()
  await expect.poll(() => troubles(page).textContent()).toMatch(/^Too soon .* The previous answer is kept\.$/)
  expect(await answers(page).allTextContents()).toEqual([answer])
  for (const name of ['Copy', 'Retry'])
    expect(await page.getByRole('button', { name, exact: true }).count()).toBe(1)
})

test.each([
  ['no tools', '', 'no tools were used'],
  [
    'tools that ran',
    'event: tool\ndata: {"name":"search_items","status":"start"}\n\n',
    'the answer ends without tools and their results',
  ],
])('a degraded answer with %s says what it lacks', async (what, tools, lack) => {
  const { page } = await startChat({ behaviour: 'answer' })
  await changeStream(page, (text) =>
    text.replace('event: delta', `${tools}event: delta`).replace('{"usage"', '{"degraded":true,"usage"'),
  )
  await ask(page, 'one')
  expect(await page.locator('.label').textContent()).toBe(
    `degraded: the budget or the share of this address is nearly used up, so ${lack}`,
  )
  await picture(page, `chat-degraded-${what}`, false)
})

test('a reload during an answer keeps the question and the part received, with Retry', async () => {
  const { page, provider } = await startChat({ env: { DASH_CHAT_BURST_PER_MINUTE: '100' } })
  const reload = async (): Promise<void> => {
    await page.reload({ waitUntil: 'networkidle' })
    await page.getByRole('link', { name: 'Ask', exact: true }).click()
    await page.locator('.turn').last().waitFor()
  }
  const actions = () => page.locator('.actions').allTextContents()
  const left = 'The page was left before the answer ended.'
  await ask(page, 'one', false)
  await provider.arrived(1)
  await reload()
  expect([await troubles(page).allTextContents(), await actions()]).toEqual([[left], ['Retry']])
  await page.getByRole('button', { name: 'Retry' }).click()
  await provider.arrived(2)
  provider.say('Half')
  await page.locator('.answer', { hasText: 'Half' }).waitFor()
  await reload()
  expect(await answers(page).allTextContents()).toEqual(['Half\n'])
  expect([await troubles(page).allTextContents(), await actions()]).toEqual([[left], ['CopyRetry']])
  await ask(page, 'two', false)
  await provider.arrived(3)
  provider.say('Whole')
  provider.finish()
  await page.locator('.chat-log[aria-busy="false"]').waitFor()
  await reload()
  expect([await troubles(page).allTextContents(), await actions()]).toEqual([
    [left, ''],
    ['Copy', 'CopyRetry'],
  ])
})

test('a page that the browser kept shows the turns that a later page stored, and stops its own', async () => {
  const { page, provider } = await startAnswering('Half')
  await page.evaluate(`dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))`)
  await provider.idle()
  await page.evaluate(`(() => {
    const turns = JSON.parse(sessionStorage.getItem('dash-chat'))
    turns.push({ item: null, question: 'Later', answer: 'Hello' })
    sessionStorage.setItem('dash-chat', JSON.stringify(turns))
    dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))
  })()`)
  await page.locator('.answer', { hasText: 'Hello' }).waitFor()
  expect(await page.locator('.question').allTextContents()).toEqual(['You: Tell me', 'You: Later'])
  expect(await page.getByRole('button', { name: 'Send' }).isVisible()).toBe(true)
  await page.getByRole('button', { name: 'Retry' }).click()
  await provider.arrived(2)
  provider.say('Again')
  provider.finish()
  const kept = () => page.evaluate<{ answer: string }[]>(`JSON.parse(sessionStorage.getItem('dash-chat'))`)
  await expect.poll(async () => (await kept()).map(({ answer }) => answer)).toEqual(['Half', 'Again'])
})

/** Changes each answer between the server and the page. */
const changeStream = (page: Page, change: (text: string) => string): Promise<unknown> =>
  page.route('**/api/agent/chat', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, body: change(await response.text()) })
  })

test('an answer cut by the death of the server stays, with an error', async () => {
  const { page, child } = await startAnswering('The first half')
  child.kill('SIGKILL')
  await page.locator('.trouble', { hasText: 'The part received is kept.' }).waitFor()
  expect(await answers(page).textContent()).toContain('The first half')
  await ask(page, 'And now?')
  expect(await troubles(page).last().textContent()).toBe(
    'The server could not be reached, or the connection broke.',
  )
})

test('a chat whose script cannot be loaded opens on its own page, and there again', async () => {
  const { url } = await serveChat(NOBODY)
  const { page } = await visit(url, { viewport: WIDE })
  await page.route('**/chat-panel.js', (route) => route.abort(), { times: 2 })
  await page.getByRole('link', { name: 'Ask', exact: true }).click()
  await page.waitForURL(`${url}/chat`)
  await page.getByRole('button', { name: 'Open the chat' }).click()
  await page.getByRole('dialog', { name: 'Chat' }).waitFor()
  expect(page.url()).toBe(`${url}/chat`)
})

test('a long title of an item leaves most of the chat to the conversation', async () => {
  const { url } = await serveChat(NOBODY)
  const { page } = await visit(url)
  const row = page.locator('.item').first()
  await row.locator('.title bdi').evaluate((title) => (title.textContent = 'long words '.repeat(30)))
  await row.locator('.row-menu summary').click()
  await row.getByRole('link', { name: 'Ask' }).click()
  await expect.poll(() => page.locator('#chat-status').textContent()).toContain('long words')
  const height = async (id: string) => (await page.locator(id).boundingBox())?.height ?? 0
  expect(await height('#chat-status')).toBeLessThan(100)
  expect(await height('#chat-scope')).toBeLessThan(60)
})

test('an expired session is renewed once, and the question is answered', async () => {
  const { page } = await startChat({ behaviour: 'answer', env: { DASH_SESSION_SECRET: SECRET } })
  await ask(page, 'one')
  // Replace the session of the next question by one of an hour ago, which the server refuses as expired.
  const over = beginSession(new Uint8Array(SESSION_ID_BYTES), Date.now() - 3_600_000, 60, '0'.repeat(32))
  const headers = { 'x-agent-session': sessionSigner(SECRET).sign(over) }
  const replaced = (route: Route) => route.continue({ headers: { ...route.request().headers(), ...headers } })
  await page.route('**/api/agent/chat', replaced, { times: 1 })
  const statuses: number[] = []
  page.on('response', (response) => {
    if (response.url().endsWith('/api/agent/chat')) statuses.push(response.status())
  })
  await ask(page, 'two')
  expect(statuses).toEqual([401, 200])
  expect(await answers(page).last().textContent()).toContain('Hello')
  expect(await page.locator('#chat-quota').textContent()).toMatch(
    /^19 of 20 messages left in this conversation, 58 of 60 today$/,
  )
})

const SECRET = 'a secret of this test, thirty-two bytes or more'

test('long texts are shortened in the request, with a note, and stay whole on the page', async () => {
  const behaviour: Behaviour = { rounds: [[{ text: 'Ж'.repeat(1_900) }, { end: 'completed' }]] }
  const { page } = await startChat({ behaviour, env: { DASH_CHAT_BURST_PER_MINUTE: '100' } })
  for (let turn = 0; turn < 5; turn += 1) await ask(page, 'Щ'.repeat(2_100))
  const request = page.waitForRequest(/agent\/chat$/)
  await ask(page, 'Щ'.repeat(2_100))
  const { messages } = (await request).postDataJSON() as { messages: { content: string }[] }
  expect([messages.length, messages.at(-1)?.content]).toEqual([7, 'Щ'.repeat(2_000)])
  const note = await page.locator('#chat-note').textContent()
  expect(note).toContain('2 older turns were not sent')
  expect(note).toContain('Only the first 2,000 characters of')
  expect(await page.locator('.question').last().textContent()).toBe(`You: ${'Щ'.repeat(2_100)}`)
})

test('a list keeps its first number, and a table the alignment of its columns, and scrolls', async () => {
  const { url } = await serveChat(NOBODY)
  const { page } = await visit(url)
  const shown = (text: string): Promise<string> =>
    page.evaluate<string>(`import('/assets/any/chat-markdown.js').then(({ safeFragment }) => {
      const answer = document.createElement('div')
      answer.append(safeFragment(${JSON.stringify(text)}))
      return answer.innerHTML
    })`)
  expect(await shown('Then:\n\n3. three')).toContain('<ol start="3">')
  const table = await shown('|a|b|\n|-|-:|\n|c|1,234|')
  expect(table).toContain('<td align="right">1,234</td>')
  expect(table).toMatch(/^<div class="wide" tabindex="0" role="group" aria-label="table"><table>/)
})

test('a task list marks done tasks, and no character reverses the text direction, however deep', async () => {
  const { url } = await serveChat(NOBODY)
  const { page } = await visit(url)
  const shown = (text: string): Promise<string> =>
    page.evaluate<string>(`import('/assets/any/chat-markdown.js')
      .then(({ safeFragment }) => safeFragment(${JSON.stringify(text)}).textContent.trim())`)
  expect(await shown('- [ ] to do\n- [x] done')).toBe('☐ to do\n☑ done')
  expect(await shown('read \u202egnorw\u202c &#x202e;and right \u2067אב\u2069')).toBe(
    'read gnorw and right \u2067אב\u2069',
  )
  // An answer that is nested too deeply is shown verbatim.
  for (const deep of ['>'.repeat(20_000), '- '.repeat(20_000)])
    expect(await shown(`${deep}\u202ex`)).toBe(`${deep}x`)
})

test('an answer links the days, items and models that it names, and no words that only begin as a key does', async () => {
  const { url } = await serveChat(NOBODY)
  const { page } = await visit(url)
  /** The texts and addresses of the links that the chat makes of a text. */
  const linksOf = (text: string): Promise<[text: string, href: string][]> =>
    page.evaluate<[string, string][]>(`import('/assets/any/chat-markdown.js')
      .then(({ safeFragment }) => [...safeFragment(${JSON.stringify(text)}).querySelectorAll('a')]
        .map((link) => [link.textContent, link.getAttribute('href')]))`)
  const text =
    'On 2026-01-20 [a title](https://example.org/2026-01-20) led (hn-26296339), as did hype-github-a/b.c; see /models. Not `2026-01-20`, 2026-13-40, 9999-01-01, /models/x or john-1.'
  expect(await linksOf(text)).toEqual([
    ['2026-01-20', '/?day=2026-01-20'],
    ['a title', 'https://example.org/2026-01-20'],
    ['history', '/item?key=hn-26296339'],
    ['hype-github-a/b.c', '/item?key=hype-github-a%2Fb.c'],
    ['free models', '/models'],
  ])
  const keys = [
    saveKey('hn', '1'),
    saveKey('lobsters', '00fsed'),
    saveKey('lobsters', 'zzxdfi'),
    saveKey('lesswrong', 'zztduH59pvor6Tc3z'),
    saveKey('hype:github', 'tw93/Mole'),
    saveKey('hype:huggingface', 'Jackrong/Qwen3.5-27B-v2-GGUF'),
    saveKey('hype:replicate', '0xmmo/icons'),
    saveKey('hype:reddit', '1mktg06'),
    saveKey('midjourney', '0b5e0c1c-6f43-4a7e-9d3e-2f8c1a7b9e01'),
  ]
  expect((await linksOf(keys.join(', '))).map(([key]) => key)).toEqual(keys)
  const words =
    'hn-style hn-1-like lobsters-like lobsters-driven lobsters-hosted lobsters-style-links lesswrong-adjacent hype-driven-x hype-github-style hype-reddit-famous midjourney-style hype-hf-papers-2412.17606'
  expect(await linksOf(words)).toEqual([])
})

const HOSTILE = [
  '<script>document.title = "taken"</script>',
  '<img src="/beacon-1" onerror="document.title = \'taken\'">',
  '![beacon](http://beacon.test/2)',
  '![beacon][ref]\n\n[ref]: http://beacon.test/3',
  '[run](javascript:document.title="taken")',
  '[run](JaVa&#10;Script:alert(1)) [data](data:text/html,<script>1</script>)',
  '<a href="javascript:alert(1)">x</a> <svg onload="document.title=\'taken\'"><use href="/beacon-4"/></svg>',
  '<iframe src="/beacon-5"></iframe><style>body{display:none}</style><link rel=stylesheet href=/beacon-6>',
  '<form action="/beacon-7"><input name=q autofocus onfocus="document.title=\'taken\'"></form>',
  '[fine](https://example.org/page "title") and [relative](/api/health)',
  '```html\n<img src=/beacon-8>\n```',
].join('\n\n')

/** Elements and attributes that an answer must never contain. */
const FORBIDDEN =
  'img, script, style, link, iframe, svg, form, input, [onerror], [onload], [style], [id], [class]'

test('hostile text of a model does nothing even without the filter of the server', async () => {
  const { url } = await serveChat(NOBODY)
  const { page, problems, hosts } = await visit(url)
  const requestedUrls: string[] = []
  page.on('request', (request) => requestedUrls.push(new URL(request.url()).pathname))
  await page.evaluate(`import('/assets/any/chat-markdown.js').then(({ safeFragment }) => {
    const place = document.createElement('div')
    place.id = 'hostile'
    document.body.append(place)
    place.append(safeFragment(${JSON.stringify(HOSTILE)}))
  })`)
  await page.waitForLoadState('networkidle')
  expect(requestedUrls.filter((path) => !path.startsWith('/assets/'))).toEqual([])
  expect([...hosts]).toEqual([new URL(url).host])
  expect(await page.title()).toBe('Trending · dash')
  const locator = page.locator('#hostile')
  expect(await locator.locator(FORBIDDEN).count()).toBe(0)
  const links = await locator.locator('a').evaluateAll((found) => found.map((link) => link.outerHTML))
  expect(links).toEqual([
    '<a href="https://example.org/page" target="_blank" rel="noopener noreferrer nofollow ugc">fine</a>',
  ])
  expect(await locator.textContent()).toContain('<img src="/beacon-1"')
  expect(problems).toEqual([])
})
