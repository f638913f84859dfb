import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { ArticleReading } from '../../../src/domain/feed/article.ts'
import type { ArticleTexts } from '../../../src/domain/ports.ts'
import { localSource } from '../../support/local-source.ts'
import type { LocalSource } from '../../support/local-source.ts'
import { openTexts, pageHtml, site } from '../../support/pages.ts'

const read = (texts: ArticleTexts, url: string): Promise<ArticleReading> =>
  texts.read({ source: 'hn', sourceId: '1', url }, new AbortController().signal)

const siteWith = (robots: (response: ServerResponse) => void): Promise<LocalSource> =>
  site(
    (_question, response) =>
      void response.writeHead(200, { 'content-type': 'text/html' }).end(pageHtml('A page of a site')),
    robots,
  )

const DISALLOWED = { kind: 'skipped', why: 'robots' }
const READ = { kind: 'text' }
const FAILED = { kind: 'failed', reason: expect.stringContaining('/robots.txt') as string }

const CASES: [string, object, (response: ServerResponse) => void][] = [
  ['allows it', READ, (response) => void response.end('User-agent: *\nDisallow: /private')],
  ['forbids it', DISALLOWED, (response) => void response.end('User-agent: *\nDisallow: /page')],
  ['forbids it to this reader', DISALLOWED, (response) => void response.end('User-agent: Dash\nDisallow: /')],
  ['is not there', READ, (response) => void response.writeHead(404).end('Disallow: /')],
  ['may not be read', READ, (response) => void response.writeHead(403).end()],
  ['is a server error', FAILED, (response) => void response.writeHead(500).end()],
  ['is busy', FAILED, (response) => void response.writeHead(429).end()],
  ['does not come', FAILED, (response) => response.socket?.resetAndDestroy()],
  ['drips in for ever', FAILED, (response) => {
    const drip = setInterval(() => response.write('#'), 5)
    response.once('close', () => clearInterval(drip))
  }],
  ['forbids it early in a file without end', DISALLOWED, (response) => {
    response.write('User-agent: *\nDisallow: /page\n')
    const more = (): void => {
      while (!response.destroyed && response.write(`${'#'.repeat(64 * 1024)}\n`)) continue
      if (!response.destroyed) response.once('drain', more)
    }
    more()
  }],
  ['forbids it after half a megabyte', READ, (response) =>
    void response.end(`${`#${'x'.repeat(1_000)}\n`.repeat(512)}User-agent: *\nDisallow: /`)],
] // prettier-ignore

describe('a page whose robots.txt', () => {
  test.each(CASES)('%s', async (_what, reading, robots) => {
    const { url, questions } = await siteWith(robots)
    const texts = openTexts({ robotsMs: 300 })
    expect(await read(texts, `${url}/page`)).toMatchObject(reading)
    expect(questions.some(({ target }) => target === '/page')).toBe(reading === READ)
    expect(questions[0]?.target).toBe('/robots.txt')
  })

  test('is asked once a run for all its pages', async () => {
    const { url, questions } = await siteWith((response) => void response.end('User-agent: *\nDisallow: /b'))
    const texts = openTexts()
    expect(await read(texts, `${url}/a`)).toMatchObject(READ)
    expect(await read(texts, `${url}/b`)).toMatchObject(DISALLOWED)
    expect(await read(texts, `${url}/b?c`)).toMatchObject(DISALLOWED)
    expect(questions.map(({ target }) => target)).toEqual(['/robots.txt', '/a'])
  })

  test.each([
    [5, DISALLOWED],
    [6, READ],
  ])('is behind %i redirections', async (redirects, reading) => {
    const { url } = await localSource(({ target }, response) => {
      if (target === '/page') {
        response.writeHead(200, { 'content-type': 'text/html' }).end(pageHtml('A page of a site'))
        return
      }
      const done = Number(/\d+$/.exec(target)?.[0] ?? 0)
      if (done < redirects) response.writeHead(301, { location: `/robots-${done + 1}` }).end()
      else response.end('User-agent: *\nDisallow: /')
    })
    expect(await read(openTexts(), `${url}/page`)).toMatchObject(reading)
  })

  test('leads to a private place is not read', async () => {
    const { url } = await siteWith(
      (response) => void response.writeHead(302, { location: 'http://10.0.0.1/' }).end(),
    )
    expect(await read(openTexts(), `${url}/page`)).toMatchObject({ kind: 'skipped', why: 'private' })
  })
})
