import type { ServerResponse } from 'node:http'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openExtractor } from '../../../src/adapters/articles/open.ts'
import type { ExtractRequest, Extracted } from '../../../src/adapters/articles/extract.ts'
import type { LocalSource } from '../../support/local-source.ts'
import { builtModule } from '../../support/compiled-sources.ts'
import { htmlSite, openTexts, pageHtml, readPage, site } from './pages.ts'

const MIB = 1024 * 1024

const PAGE = pageHtml('Größe of things')

const PLAIN = 'A line.\nAnother < third <script>.\n\nA <!-- paragraph. </script> '.repeat(10)

const respondWith = (
  body: string | Buffer,
  headers: Record<string, string> = {},
): ((response: ServerResponse) => void) => {
  return (response) => void response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(body)
}

const siteOf = (answer: (response: ServerResponse) => void): Promise<LocalSource> =>
  site((_question, response) => answer(response))

describe('the text of a page', () => {
  test('the text of a page is its article in paragraphs without the menu, with its URL', async () => {
    const { url } = await htmlSite(PAGE)
    const reading = await readPage(openTexts(), `${url}/a?b#c`)
    expect(reading).toMatchObject({ kind: 'text', provenance: `page:readability ${url}/a?b` })
    const { text } = reading as { text: string }
    expect(text).toMatch(/^(Heading\n\n)?(Größe of things, with [^\n<]+\.(\n\n|$)){8}$/)
    expect(text).not.toMatch(/Menu|Imprint|</)
  })

  test('a page may already be plain text', async () => {
    const text = PLAIN
    const { url } = await siteOf(respondWith(text, { 'content-type': 'text/plain; charset=utf-8' }))
    expect(await readPage(openTexts(), url)).toEqual({
      kind: 'text',
      text: text.trim().replace(/ A line/g, ' A line'),
      provenance: `page:plain-text ${url}/`,
    })
  })
})

const SKIPS: [string, string, (response: ServerResponse) => void][] = [
  ['a picture', 'notHtml', respondWith('x', { 'content-type': 'image/png' })],
  ['a PDF as text', 'notHtml', respondWith(Buffer.from(Array.from({ length: 2_000 }, (_, at) => (at * 7) % 256)), { 'content-type': 'text/plain' })],
  ['something without a type that is no HTML', 'notHtml', (response) => void response.writeHead(200).end(PLAIN)],
  ['a large page', 'tooLarge', respondWith(`${PAGE}${' '.repeat(2 * MIB)}`)],
  ['a page without an article', 'noText', respondWith('<html><body><p>Enable scripts.</p></body></html>')],
  ['a page nested deeper than any', 'noText', respondWith(`<body>${'<div>'.repeat(3_000)}x`)],
  ['404', 'gone', (response) => void response.writeHead(404).end(PAGE)],
  ['410', 'gone', (response) => void response.writeHead(410).end()],
  ['451', 'refused', (response) => void response.writeHead(451).end()],
  ['403', 'refused', (response) => void response.writeHead(403).end()],
  ['a header against keeping', 'robots', respondWith(PAGE, { 'x-robots-tag': 'noarchive' })],
  ['an element for this reader', 'robots', respondWith(pageHtml('x', '<meta name="dash" content="none">'))],
] // prettier-ignore

const FAILURES: [string, (response: ServerResponse) => void][] = [
  ['500', (response) => void response.writeHead(500).end(PAGE)],
  ['a redirect to nowhere', (response) => void response.writeHead(302).end()],
  ['a body that ends too early', (response) => {
    response.writeHead(200, { 'content-type': 'text/html', 'content-length': 100_000 })
    response.write(PAGE)
    response.socket?.end()
  }],
  ['headers without end', (response) => {
    for (let index = 0; index < 40; index += 1) response.setHeader(`x-${index}`, 'x'.repeat(1_000))
    response.end(PAGE)
  }],
] // prettier-ignore

describe('a page without a text', () => {
  test.each(SKIPS)('%s is skipped as %s', async (_what, why, answer) => {
    const { url } = await siteOf(answer)
    expect(await readPage(openTexts(), url)).toEqual({
      kind: 'skipped',
      why,
      detail: expect.stringContaining('127.0.0.1') as string,
      notBefore: null,
    })
  })

  test.each(FAILURES)('the page fails: %s', async (_what, answer) => {
    const { url } = await siteOf(answer)
    const reading = await readPage(openTexts(), url)
    expect(reading).toMatchObject({ kind: 'failed', reason: expect.stringContaining(url) as string })
  })

  test('a page that drips forever is given up', async () => {
    const { url } = await siteOf((response) => {
      response.writeHead(200, { 'content-type': 'text/html' })
      const drip = setInterval(() => response.write(' '), 5)
      response.once('close', () => clearInterval(drip))
    })
    expect(await readPage(openTexts({ pageMs: 100 }), url)).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('no complete response within 100 ms') as string,
    })
  })
})

test('the host is not requested again in the run before its time', async () => {
  let now = 1_000_000
  const { url, requests } = await siteOf(
    (response) => void response.writeHead(503, { 'retry-after': '60' }).end(),
  )
  const texts = openTexts({ clock: () => now })
  expect(await readPage(texts, `${url}/1`)).toMatchObject({ kind: 'failed', notBefore: now + 60_000 })
  expect(await readPage(texts, `${url}/2`)).toMatchObject({
    kind: 'skipped',
    why: 'busy',
    notBefore: now + 60_000,
  })
  expect(requests.map(({ target }) => target)).toEqual(['/robots.txt', '/1'])
  now += 60_000
  expect(await readPage(texts, `${url}/3`)).toMatchObject({ kind: 'failed' })
  expect(requests).toHaveLength(3)
})

test('a host receives one request at a time from any number of readers', async () => {
  let open = 0
  let most = 0
  const { url, requests } = await site((_question, response) => {
    open += 1
    most = Math.max(most, open)
    setImmediate(() => {
      open -= 1
      response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)
    })
  })
  const texts = openTexts()
  const readings = await Promise.all(['a', 'b', 'c', 'd'].map((path) => readPage(texts, `${url}/${path}`)))
  expect(readings.map(({ kind }) => kind)).toEqual(['text', 'text', 'text', 'text'])
  expect(most).toBe(1)
  expect(requests.filter(({ target }) => target === '/robots.txt')).toHaveLength(1)
})

test("an aborted read rejects with the signal's reason", async () => {
  const { url, requests } = await siteOf(
    (response) => void response.writeHead(200, { 'content-type': 'text/html' }).write('x'),
  )
  const controller = new AbortController()
  const reason = new Error('the run was ended')
  const reading = openTexts().read({ source: 'hn', sourceId: '1', url }, controller.signal)
  const outcome = expect(reading).rejects.toBe(reason)
  await vi.waitUntil(() => requests.length === 2, { interval: 1, timeout: 5_000 })
  controller.abort(reason)
  await outcome
})

const NEVER = new AbortController().signal

function openHere(extractMs?: number): ReturnType<typeof openExtractor> {
  const script = new URL(builtModule('adapters/articles/extract-worker.js'))
  const extractor = openExtractor({ script, ...(extractMs === undefined ? {} : { extractMs }) })
  onTestFinished(() => extractor.close())
  return extractor
}

const page = (html: string | Buffer, contentType = 'text/html'): ExtractRequest => ({
  as: 'page',
  bytes: Buffer.from(html),
  contentType,
  token: 'dash',
})

/** Pages that cost the parser or readability far more than they weigh. */
const HOSTILE: Record<string, string> = {
  'nested elements': `<html><body>${'<div>'.repeat(400_000)}`,
  'nested formatting': `<html><body>${'<b><i><a><p>'.repeat(150_000)}`,
  'nested tables': `<html><body>${'<table><tr><td>'.repeat(130_000)}`,
  'line breaks': `<html><body><div>${'a<br><br>'.repeat(200_000)}</div>`,
  'empty paragraphs': `<html><body>${'<p>'.repeat(600_000)}`,
}

describe('taking out the text of a hostile page', () => {
  test.each(Object.entries(HOSTILE))(
    'a hostile page is ended, delays no other page, and the next page gets its text: %s',
    async (_what, html) => {
      const extractor = openHere(3_000)
      await expect(extractor.extract(page(html), NEVER)).rejects.toMatchObject({
        name: 'PageProblem',
        why: null,
        message: expect.stringMatching(/did not respond within 3000 ms|ended with (?:SIGABRT|1)$/) as string,
      })
      expect(await extractor.extract(page(pageHtml('The next page')), NEVER)).toMatchObject({ kind: 'text' })
    },
  )

  test('a hostile page is not waited for after the run has ended', async () => {
    const extractor = openHere(60_000)
    const controller = new AbortController()
    const reason = new Error('the run was ended')
    const extracting = extractor.extract(page(HOSTILE['nested elements'] ?? ''), controller.signal)
    setImmediate(() => controller.abort(reason))
    await expect(extracting).rejects.toBe(reason)
  })
})

test('pages are extracted one at a time, each with its own response', async () => {
  const extractor = openHere()
  const words = ['One', 'Two', 'Three']
  const extracted = await Promise.all(words.map((word) => extractor.extract(page(pageHtml(word)), NEVER)))
  expect(
    extracted.map((each: Extracted) => each.kind === 'text' && /Heading\s+(\w+)/.exec(each.text)?.[1]),
  ).toEqual(words)
})
