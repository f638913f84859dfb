import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { NameLookup } from '../../../src/adapters/articles/page-client.ts'
import {
  scriptedLookup,
  htmlSite,
  LOOPBACK,
  openTexts,
  pageHtml,
  ranges,
  readPage,
  site,
  textsOfFile,
} from './pages.ts'

const ofFile = textsOfFile()

const PRIVATE = { kind: 'skipped', why: 'private' }

const PAGE = pageHtml('A private page')

const sendPage = (response: ServerResponse): void =>
  void response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)

/** A local site, and the name `site.test` for its port. */
async function localSite(): Promise<{ port: string; requestCount: () => number; named: string }> {
  const { url, requests } = await htmlSite(PAGE)
  const { port } = new URL(url)
  return { port, requestCount: () => requests.length, named: `http://site.test:${port}/` }
}

describe('a page at a private address', () => {
  test.each([
    'http://2130706433:PORT/',
    'http://１２７.0.0.1:PORT/',
    'http://[::ffff:127.0.0.1]:PORT/',
    'http://localhost:PORT/',
    'http://[fd00:ec2::254]/',
  ])('the page is not requested: %s', async (url) => {
    const { port, requestCount } = await localSite()
    const texts = openTexts({ allowed: [] })
    expect(await readPage(texts, url.replace('PORT', port))).toMatchObject(PRIVATE)
    expect(requestCount()).toBe(0)
  })

  test.each([[['127.0.0.1']], [['::1']], [['10.0.0.1', '127.0.0.1', '169.254.169.254']]])(
    'the page is not requested by a name that resolves to %j',
    async (addresses) => {
      const { named, requestCount } = await localSite()
      const texts = openTexts({ allowed: [], lookup: scriptedLookup(addresses) })
      expect(await readPage(texts, named)).toMatchObject(PRIVATE)
      expect(requestCount()).toBe(0)
    },
  )

  test('only the allowed addresses of a name are connected to', async () => {
    const { named } = await localSite()
    const lookup = scriptedLookup(['127.0.0.1', '10.0.0.1', '169.254.169.254'])
    expect(await readPage(openTexts({ lookup }), named)).toMatchObject({ kind: 'text' })
  })
})

describe('a name that resolves to another address each time', () => {
  test('the name is judged by the address of its connection', async () => {
    const { url } = await site((_question, response) => void response.writeHead(500).end())
    const { port } = new URL(url)
    const { named, requestCount } = await localSite()
    // The first address of the name is allowed; the page itself uses another connection.
    const lookup = scriptedLookup(['127.0.0.1'], ['127.0.0.2'])
    const texts = openTexts({ allowed: ranges('127.0.0.1'), lookup })
    expect(await readPage(texts, `http://rebind.test:${port}/`)).toMatchObject({ kind: 'failed' })
    expect(lookup.lookups).toEqual(['rebind.test'])
    expect(await readPage(texts, named)).toMatchObject(PRIVATE)
    expect(lookup.lookups).toEqual(['rebind.test', 'site.test'])
    expect(requestCount()).toBe(0)
  })

  test('the name is judged again for a new connection', async () => {
    let requestCount = 0
    const { url } = await site(
      (_question, response) => {
        requestCount += 1
        sendPage(response)
      },
      (response) => void response.writeHead(404, { connection: 'close' }).end(),
    )
    const { port } = new URL(url)
    const lookup = scriptedLookup(['127.0.0.1'], ['127.0.0.2'])
    const texts = openTexts({ allowed: ranges('127.0.0.1'), lookup })
    expect(await readPage(texts, `http://rebind.test:${port}/`)).toMatchObject(PRIVATE)
    expect(lookup.lookups).toEqual(['rebind.test', 'rebind.test'])
    expect(requestCount).toBe(0)
  })
})

test('a page is read from a server that closes each connection without saying so', async () => {
  const { url } = await site(
    (_request, response) => {
      response.writeHead(200, {
        'content-type': 'text/html',
        connection: 'keep-alive',
        'content-length': PAGE.length,
      })
      response.end(PAGE, () => response.socket?.end())
    },
    (response) => {
      response.writeHead(404, { connection: 'keep-alive', 'content-length': 0 })
      response.end(() => response.socket?.end())
    },
  )
  expect(await readPage(ofFile, url)).toMatchObject({ kind: 'text' })
})

describe('a redirect', () => {
  test.each([
    ['to a private address', 'http://10.0.0.1/', 'private'],
    ['to another scheme', 'file:///etc/passwd', 'badUrl'],
    ['to a URL with credentials', 'http://user:secret@127.0.0.1/', 'badUrl'],
    ['to no URL', 'http://[', 'badUrl'],
    ['to a URL without end', `/${'x'.repeat(3_000)}`, 'badUrl'],
  ])('a redirect %s is not followed', async (_what, location, why) => {
    const { url } = await site((_question, response) => void response.writeHead(302, { location }).end())
    const reading = await readPage(ofFile, url)
    expect(reading).toMatchObject({ kind: 'skipped', why })
    expect(JSON.stringify(reading)).not.toContain('secret')
  })

  test.each([301, 302, 303, 307, 308])(
    'a redirect with %i is followed, and the final URL is kept',
    async (status) => {
      const { url } = await site((question, response) => {
        if (question.target === '/a') response.writeHead(status, { location: 'b?c#d' }).end()
        else sendPage(response)
      })
      expect(await readPage(ofFile, `${url}/a`)).toMatchObject({
        provenance: `page:readability ${url}/b?c`,
      })
    },
  )

  test('redirects are followed five times and not six', async () => {
    const { url, requests } = await site((question, response) => {
      const left = Number(question.target.slice(1))
      if (left > 0) response.writeHead(302, { location: `/${left - 1}` }).end()
      else sendPage(response)
    })
    expect(await readPage(ofFile, `${url}/5`)).toMatchObject({ kind: 'text' })
    const before = requests.length
    expect(await readPage(openTexts(), `${url}/6`)).toMatchObject({ kind: 'skipped', why: 'redirects' })
    // robots.txt, and the pages 6 to 1.
    expect(requests.length - before).toBe(7)
  })

  test('a redirect requests the robots.txt of its target first', async () => {
    const other = await site(
      (_question, response) => sendPage(response),
      (response) => void response.end('User-agent: *\nDisallow: /'),
    )
    const { url } = await site(
      (_question, response) => void response.writeHead(302, { location: `${other.url}/x` }).end(),
    )
    expect(await readPage(openTexts(), url)).toMatchObject({ kind: 'skipped', why: 'robots' })
    expect(other.requests.map(({ target }) => target)).toEqual(['/robots.txt'])
  })
})

test.each([
  ['ftp://127.0.0.1/', 'badUrl'],
  ['https://user:secret@127.0.0.1/', 'badUrl'],
  ['javascript:alert(1)', 'badUrl'],
  ['http://93.184.216.34:8080/', 'private'],
  ['https://93.184.216.34:25/', 'private'],
])('%s is never requested', async (url, why) => {
  expect(await readPage(openTexts(), url)).toMatchObject({ kind: 'skipped', why })
})

test('a request carries the product’s name and neither cookies nor credentials', async () => {
  const { url, requests } = await site((question, response) => {
    const headers = { 'content-type': 'text/html', 'set-cookie': 'a=b; Path=/' }
    if (question.target === '/a') response.writeHead(302, { ...headers, location: '/b' }).end()
    else response.writeHead(200, headers).end(PAGE)
  })
  await readPage(openTexts({ allowed: LOOPBACK }), `${url}/a`)
  expect(requests.map(({ target }) => target)).toEqual(['/robots.txt', '/a', '/b'])
  for (const { method, headers } of requests) {
    expect(method).toBe('GET')
    expect(headers['user-agent']).toBe('dash/0.0.0 (+https://dash.example/)')
    expect(Object.keys(headers).sort()).toEqual([
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
    ])
  }
})

test('a connection is closed if its peer is not the address that was checked', async () => {
  const { named, requestCount } = await localSite()
  // Each looked-up address is allowed; the socket then connects to another one.
  let reads = 0
  const lookup: NameLookup = (_hostname, _options, callback) => {
    const moving = {
      family: 4,
      get address(): string {
        reads += 1
        return reads === 1 ? '10.1.2.3' : '127.0.0.1'
      },
    }
    process.nextTick(() => callback(null, [moving]))
  }
  const texts = openTexts({ allowed: ranges('10.1.2.3'), lookup })
  expect(await readPage(texts, named)).toMatchObject(PRIVATE)
  expect(reads).toBeGreaterThan(1)
  expect(requestCount()).toBe(0)
})
