import { describe, expect, test } from 'vitest'
import type { ArticleReading } from '../../../src/domain/feed/article.ts'
import { htmlSite, pageHtml, site, textsOfFile } from './pages.ts'

interface SentRequest {
  url: string
  body?: unknown
}

let sourceResponse: unknown
let sent: SentRequest[] = []

const texts = textsOfFile({
  fetchJson: async ({ url, body, shape }) => {
    sent.push({ url, ...(body === undefined ? {} : { body }) })
    if (sourceResponse instanceof Error) throw sourceResponse
    return shape.parse(sourceResponse)
  },
})

/** Reads the text of an item whose source answers with this JSON, or fails with this error. */
function read(
  source: string,
  sourceId: string,
  json: unknown,
  url: string | null = null,
): { reading: Promise<ArticleReading>; requests: SentRequest[] } {
  sent = []
  sourceResponse = json
  return { reading: texts.read({ source, sourceId, url }, new AbortController().signal), requests: sent }
}

const post = (result: unknown): unknown => ({ data: { post: { result } } })

describe('the text an item has at its source', () => {
  test('the text of an item is read from Hacker News', async () => {
    const json = { id: 7, type: 'story', text: '<i>or</i> HN<p>Is 1 &lt; 2?', title: 'Ask HN: x', time: 1 }
    const { reading, requests } = read('hn', '7', json)
    expect(await reading).toEqual({ kind: 'text', text: 'or HN\n\nIs 1 < 2?', provenance: 'hn:item-text' })
    expect(requests).toEqual([{ url: 'http://hn.test/item/7.json' }])
  })

  test('the text of an item is read from Lobsters', async () => {
    const json = { short_id: 'abc', description: '<p>One</p>\n<ul><li>two</li></ul>\n', url: '' }
    const { reading, requests } = read('lobsters', 'abc', json)
    expect(await reading).toEqual({
      kind: 'text',
      text: 'One\n\n- two',
      provenance: 'lobsters:story-description',
    })
    expect(requests).toEqual([{ url: 'http://lobsters.test/s/abc.json' }])
  })

  test('the text of an item is read from LessWrong, also for a post with a link', async () => {
    const json = post({ _id: 'x', contents: { html: '<p>The <em>body</em></p>' } })
    const { reading, requests } = read('lesswrong', 'x', json, 'http://link.test/')
    expect(await reading).toEqual({ kind: 'text', text: 'The body', provenance: 'lesswrong:post-body' })
    expect(requests).toMatchObject([{ url: 'http://lesswrong.test', body: { variables: { id: 'x' } } }])
  })

  test('the page of a LessWrong link post without a text is read', async () => {
    const { url } = await htmlSite(pageHtml('The page behind it'))
    const { reading } = read('lesswrong', 'x', post({ _id: 'x', contents: null }), url)
    expect(await reading).toMatchObject({ kind: 'text', provenance: `page:readability ${url}/` })
  })

  test("the source's text is not requested if the item links to a page", async () => {
    const { url } = await htmlSite(pageHtml('The page'))
    const { reading, requests } = read('hn', '7', new Error('was asked'), url)
    expect(await reading).toMatchObject({ kind: 'text' })
    expect(requests).toEqual([])
  })

  test.each([
    ['hn', null, 'gone'],
    ['hn', { id: 7, deleted: true }, 'gone'],
    ['hn', { id: 7, dead: true, text: 'x' }, 'gone'],
    ['hn', { id: 7 }, 'noText'],
    ['hn', { id: 7, text: '<p>\u200B</p>' }, 'noText'],
    ['lobsters', null, 'gone'],
    ['lobsters', { short_id: '7', description: '' }, 'noText'],
    ['lesswrong', post(null), 'gone'],
    ['lesswrong', post({ _id: '7', contents: { html: '' } }), 'noText'],
    ['midjourney', new Error('was asked'), 'noText'],
    ['hype:github', new Error('was asked'), 'noText'],
  ])('an item of %s has no text if the response is %j: %s', async (source, json, why) => {
    expect(await read(source, '7', json).reading).toMatchObject({ kind: 'skipped', why })
  })

  test.each([
    ['hn', { id: 8, text: 'another' }],
    ['hn', { id: '7', text: 'x' }],
    ['hn', 'text'],
    ['lobsters', { short_id: 'other', description: 'x' }],
    ['lesswrong', post({ _id: 'other', contents: { html: 'x' } })],
    ['lesswrong', { errors: ['x'] }],
    ['hn', new Error('no answer')],
  ])('an item of %s fails if the response is %j', async (source, json) => {
    expect(await read(source, '7', json).reading).toMatchObject({ kind: 'failed', notBefore: null })
  })
})

const HTML = { 'content-type': 'text/html; charset=utf-8' }
const ARTICLE = pageHtml('The page')

describe('the page of an item', () => {
  const readAt = (url: string): Promise<ArticleReading> =>
    read('hn', '7', new Error('was asked'), url).reading

  test.each<[string, number, Record<string, string>]>([
    ['a copy that a proxy changed', 203, HTML],
    ['a part, although the whole was requested', 206, HTML],
    ['a success of an unknown kind', 299, HTML],
    ['HTML without a type', 200, {}],
    ['HTML of an unknown type', 200, { 'content-type': 'unknown/unknown' }],
    ['HTML with a charset for a type', 200, { 'content-type': 'charset=utf-8' }],
    ['a type without a semicolon behind it', 200, { 'content-type': 'text/html charset=utf-8' }],
    ['a type that is named twice', 200, { 'content-type': 'text/html, text/html; charset=utf-8' }],
    ['Markdown', 200, { 'content-type': 'text/markdown' }],
  ])('%s is read', async (_what, status, headers) => {
    const { url } = await site((_request, response) => void response.writeHead(status, headers).end(ARTICLE))
    expect(await readAt(url)).toMatchObject({
      kind: 'text',
      text: expect.stringContaining('The page') as string,
    })
  })

  const opens = (value: string): string =>
    `<html><head><meta name=robots content=noindex><meta http-equiv="Refresh" content="${value}"></head></html>`

  test.each(['0; url=/new', "0;URL='/new'", '5; URL=new', '0;/new'])(
    'a page without an article that opens another one is followed: %s',
    async (value) => {
      const { url } = await site((request, response) => {
        response.writeHead(200, HTML).end(request.target === '/new' ? ARTICLE : opens(value))
      })
      expect(await readAt(url)).toMatchObject({ kind: 'text', provenance: `page:readability ${url}/new` })
    },
  )

  test.each([
    ['itself', opens('0; url=/'), 'redirects'],
    ['another one after minutes', '<meta http-equiv=refresh content="300; url=/new">', 'noText'],
    ['nothing', '<meta http-equiv=refresh content="0">', 'noText'],
    ['a private page', opens('0; url=http://10.0.0.1/'), 'private'],
  ])('a page without an article that opens %s has no text', async (_what, html, why) => {
    const { url } = await htmlSite(html)
    expect(await readAt(url)).toMatchObject({ kind: 'skipped', why })
  })

  test('an article that reloads itself is read', async () => {
    const { url } = await htmlSite(pageHtml('The page', '<meta http-equiv=refresh content="0; url=/new">'))
    expect(await readAt(url)).toMatchObject({ kind: 'text', provenance: `page:readability ${url}/` })
  })
})
