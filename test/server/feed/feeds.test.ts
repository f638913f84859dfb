import { describe, expect, test } from 'vitest'
import type { FeedEvent } from '../../../src/domain/feed/columns.ts'
import type { ItemDetails } from '../../../src/domain/feed/live-source.ts'
import { openApp } from '../../support/api-client.ts'
import { requestRoute } from '../contract-client.ts'
import { feedEvent, NOW, feedEvents } from '../../support/signals.ts'
import { keepSnapshot, jsonFeedErrors, libxmlErrors, readWithSax } from './live-client.ts'
import { openWorkspace } from '../../support/workspace.ts'
import type { ServerPorts } from '../../../src/server/app.ts'
import { permanentId, uriOf, uuidV5 } from '../../../src/server/feed/formats.ts'

/** Titles that break insufficient escaping and lenient parsers. */
const HOSTILE = [
  '<script>alert(1)</script>',
  '</title></item></channel></rss>',
  ']]> and <![CDATA[ more ]]>',
  '<!-- a comment --> <?php echo 1 ?> <!DOCTYPE x [<!ENTITY e "e">]>',
  `quotes " and ' and \u201c\u201d`,
  'tab\there, line\nfeed, carriage\rreturn',
  'control \u0001\u0008\u000b\u001f\u007f\u0085 characters',
  'not characters \ufffe\uffff, a rest \ud800 of a pair \udc00',
  'right to left \u202e override, zero\u200bwidth, \ufeffmark',
  'emoji \u{1F469}\u200d\u{1F4BB}, \u{10ffff}, Größe, 漢字',
  'https://example.com/?a=1&b=2 100% <3',
  'x'.repeat(5_000),
]

/** Readers disagree on how often these are to be decoded. */
const ENTITIES = ['&amp; &lt;b&gt; &#60; &#x3C; &nbsp; &lol; &#0; &']

const FORMATS = { '/api/rss': 'rss', '/api/atom': 'atom' } as const
const XML_PATHS = Object.keys(FORMATS) as (keyof typeof FORMATS)[]

/** The text as XML 1.0 can represent it. */
const asXml = (text: string): string =>
  Array.from(text.toWellFormed(), (character) => {
    const code = character.codePointAt(0) ?? 0
    const isControl = code < 0x20 && !'\t\n\r'.includes(character)
    return isControl || code === 0xfffe || code === 0xffff ? '\ufffd' : character
  }).join('')

const titled = (titles: readonly string[]): FeedEvent[] =>
  titles.map((title, index) =>
    feedEvent({
      sourceId: `${index + 1}`,
      title,
      url: `https://example.com/${index}`,
      points: 1_000 - index,
    }),
  )

async function bodyOf(
  events: readonly FeedEvent[],
  path: string,
  details: ReadonlyMap<string, ItemDetails> = new Map(),
  changes: Partial<ServerPorts> = {},
): Promise<string> {
  const workspace = await openWorkspace()
  await keepSnapshot(workspace.feed, events, NOW, details)
  return (await requestRoute(openApp(workspace, changes), path)).text
}

describe.each(XML_PATHS)('%s with hostile titles', (path) => {
  test('a feed with hostile titles is valid under libxml2, and a sax parser returns every title', async () => {
    const titles = [...HOSTILE, ...ENTITIES]
    const body = await bodyOf(titled(titles), path)
    expect(await libxmlErrors(body, FORMATS[path])).toEqual([])
    expect((await readWithSax(body)).map(({ title }) => title)).toEqual(titles.map(asXml))
  })
})

test('the JSON Feed follows its specification, and returns every title', async () => {
  const body = await bodyOf(titled([...HOSTILE, ...ENTITIES]), '/api/feed.json')
  expect(jsonFeedErrors(body)).toEqual([])
  const { items } = JSON.parse(body) as { items: { title: string }[] }
  expect(items.map(({ title }) => title)).toEqual([...HOSTILE, ...ENTITIES])
})

describe('every subscription', () => {
  const lobster = feedEvent({
    source: 'lobsters',
    sourceId: 'abc',
    points: 7,
    comments: null,
    titleProvenance: null,
  })
  const hype = feedEvent({ source: 'hype:github', sourceId: 'o/n', points: 9_000, comments: null })
  const details = new Map<string, ItemDetails>([
    [
      'lobsters-abc',
      { ...lobster, author: '<b>&', tags: ['c', ' ', '<x>"&\n'], description: null, collectedAt: NOW },
    ],
    [
      'hype-github-o/n',
      { ...hype, author: null, tags: [], description: ' does <b>it</b> ', collectedAt: NOW },
    ],
  ])
  const mixed = [
    ...feedEvents('hn', 3),
    lobster,
    feedEvent({ source: 'lesswrong', sourceId: 'q', url: null, points: -4 }),
    hype,
    feedEvent({ source: 'midjourney', sourceId: 'pic', url: null }),
  ]

  test('every subscription leads to the page of its period, and has rank, raw score and unit of each item', async () => {
    const body = await bodyOf(mixed, '/api/feed.json?sort=day', details)
    const feed = JSON.parse(body) as { home_page_url: string; items: { _dash: Record<string, unknown> }[] }
    const { items } = feed
    expect(feed.home_page_url).toBe('http://dash.test/?sort=day')
    const hyped = { rank: 3, key: 'hype-github-o/n', aggScore: 50, score: { value: 9000, unit: 'stars' } }
    expect([items.length, items[2]?._dash]).toMatchObject([7, hyped])
  })

  test.each(XML_PATHS)('%s has the same data in its own namespace, and is valid', async (path) => {
    const body = await bodyOf(mixed, `${path}?sort=day`, details)
    expect(await libxmlErrors(body, FORMATS[path])).toEqual([])
    // Some readers take the first link for that of the page.
    expect(/<link\b.*/.exec(body)?.[0]).toContain('http://dash.test/?sort=day')
    const items = await readWithSax(body)
    const [hn, , github, , lobsters] = items
    expect(items.map(({ element }) => element('dash:rank')?.['#']).join(' ')).toBe('1 2 3 4 5 6 7')
    expect(github?.element('dash:score')).toMatchObject({ '#': '9000', '@': { unit: 'stars' } })
    expect(github?.element('dash:source')?.['#']).toBe('hype:github')
    if (path === '/api/rss') {
      // An RSS description is HTML inside XML: a text is escaped for both.
      expect(github?.element('rss:description')?.['#']).toContain('does &lt;b&gt;it&lt;/b&gt;')
      expect(body).toContain('does &amp;lt;b&amp;gt;it&amp;lt;/b&amp;gt;')
    } else expect(body).toContain('does &lt;b&gt;it&lt;/b&gt;')
    expect(lobsters?.element('dash:author')?.['#']).toBe('<b>&')
    expect(lobsters?.element('dash:titleverified')?.['#']).toBe('false')
    expect(hn).toMatchObject({
      id: permanentId('hn-1'),
      link: 'https://example.com/hn/1',
      publishedAt: '2026-03-15T11:00:00.000Z',
    })
    expect(body.match(/<(item|entry)>/g)).toHaveLength(7)
  })

  test('every subscription names itself by the configured URL, never by that of the request', async () => {
    const baseUrl = (): string => 'https://dash.example/under'
    for (const path of [...XML_PATHS, '/api/feed.json']) {
      const body = await bodyOf(mixed, `${path}?sort=week`, new Map(), { baseUrl })
      expect(body).toContain(`https://dash.example/under${path}?sort=week`)
      expect(body).not.toContain('asked.test')
    }
  })

  test('every subscription is marked in the demo, and valid when empty', async () => {
    for (const path of XML_PATHS) {
      const body = await bodyOf([], path, new Map(), { demo: true })
      expect(await libxmlErrors(body, FORMATS[path])).toEqual([])
      expect(body).toMatch(/<title[^>]*>DEMO: dash: trending now</)
      expect(await readWithSax(body)).toEqual([])
    }
    expect(jsonFeedErrors(await bodyOf([], '/api/feed.json'))).toEqual([])
  })
})

test('UUIDs of version 5 match the example of RFC 9562', () => {
  const dns = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
  expect(uuidV5(dns, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2')
})

test('the id of a save key never changes', () => {
  expect(permanentId('hn-29135559')).toBe('urn:uuid:4aa3f1ca-aa1f-570b-949a-5ceb73dc4185')
  expect(permanentId('hn-29135558')).not.toBe(permanentId('hn-29135559'))
})

test.each([
  ['HTTP://EXAMPLE.com:80/A b?c d#e f', 'http://example.com/A%20b?c%20d#e%20f'],
  ['https://example.com/{a}|^`\\?q=[1]|{}', 'https://example.com/%7Ba%7D%7C%5E%60/?q=%5B1%5D%7C%7B%7D'],
  ['https://[::1]:8080/[x]', 'https://[::1]:8080/%5Bx%5D'],
  ['https://bücher.example/größe', 'https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe'],
  ['https://example.com/?q=%26&a="<>\'', 'https://example.com/?q=%26&a=%22%3C%3E%27'],
  ['https://example.com/%zz?100%&a=%4#%', 'https://example.com/%25zz?100%25&a=%254#%25'],
  ['https://example.com/#a#b##', 'https://example.com/#a%23b%23%23'],
  ['https://example.com/#é "q" \'', "https://example.com/#%C3%A9%20%22q%22%20'"],
])('the URL %s becomes a URI', (url, uri) => {
  expect(uriOf(url)).toBe(uri)
})
