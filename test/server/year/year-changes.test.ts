import type { H3 } from 'h3'
import { expect, test } from 'vitest'
import { addDays, startOfDay } from '../../../src/domain/time.ts'
import { permanentId } from '../../../src/server/feed/formats.ts'
import { openApp } from '../../support/api-client.ts'
import { LATER, changedYear } from '../../support/changed-year.ts'
import { requestRoute } from '../contract-client.ts'
import { jsonFeedErrors, libxmlErrors } from '../feed/live-client.ts'
import { openSampleApp, sampleArchive } from '../../support/sample-archive.ts'
import { AS_OF, publishDays } from '../../support/workspace.ts'

const ATOM = '/api/feed/history/atom'
const JSON_FEED = '/api/feed/history/feed.json'
const PATHS = ['/api/feed/history/rss', ATOM, JSON_FEED]

interface Changes {
  newFirst: unknown
  entered: unknown[]
  left: unknown[]
  moved: unknown[]
}

interface Entry {
  id: string
  title: string
  url: string
  content_html: string
  date_published: string
  _dash: {
    publicationId: string
    sha256: string
    gaps: unknown[]
    previous: string | null
    changes: Changes | null
  }
}

async function entriesOf(app: H3, query = ''): Promise<Entry[]> {
  return (JSON.parse((await requestRoute(app, `${JSON_FEED}${query}`)).text) as { items: Entry[] }).items
}

test('the feed of changes names what entered, left, moved by ten and became first, and the gaps between', async () => {
  const [newest, first, ...more] = await entriesOf(openApp(await changedYear()))
  expect(more).toEqual([])
  expect(newest?._dash).toMatchObject({
    publicationId: `top-year-v3-${LATER}`,
    previous: `top-year-v3-${AS_OF}`,
    gaps: [{ firstDay: addDays(AS_OF, 1), lastDay: addDays(AS_OF, 1) }],
    changes: {
      newFirst: { key: 'hn-15', rank: 1 },
      entered: [{ key: 'hn-16', rank: 15 }],
      left: [{ key: 'hn-14', rank: 14 }],
      moved: [{ key: 'hn-15', from: 15, to: 1 }],
    },
  })
  expect(newest?.title).toBe(
    `Top Year ${LATER}: new number 1, 1 entered, 1 left, 1 moved by 10 or more, after a gap`,
  )
  const text = newest?.content_html.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ') ?? ''
  expect(text).toContain(`Gap: nothing was published for ${addDays(AS_OF, 1)} (the day was missed).`)
  expect(text).toContain('New number 1: Story 15 &lt;b&gt;&amp;&lt;/b&gt; (Hacker News)')
  expect(text).toContain('1 item left was #14: Story 14')
  expect(text).toContain('#15 → #1 Story 15')
  expect(first?.title).toBe(`Top Year ${AS_OF}: the first publication`)
  expect(first?._dash).toMatchObject({ previous: null, changes: null, gaps: [] })
})

test('a rule selects the changes of an entry, and `top` limits each kind of them', async () => {
  const app = openApp(await changedYear())
  const changesOf = async (query: string): Promise<unknown> =>
    (await entriesOf(app, query)).map(({ _dash: { changes } }) => changes)
  const all = {
    newFirst: { key: 'hn-15', rank: 1 },
    entered: [{ key: 'hn-16', rank: 15 }],
    left: [{ key: 'hn-14', rank: 14 }],
    moved: [{ key: 'hn-15', from: 15, to: 1 }],
  }
  expect(await changesOf('?q=story+16')).toEqual([{ ...all, newFirst: null, left: [], moved: [] }])
  expect(await changesOf('?minPoints=900&top=1')).toEqual([{ ...all, entered: [] }])
  expect(await changesOf('?source=hn&q=&top=')).toEqual([all])
})

test('an entry without matching changes stays if gaps precede it, and is dropped otherwise', async () => {
  const workspace = await changedYear()
  await publishDays(workspace, [addDays(LATER, 1)])
  const app = openApp(workspace)
  const [afterGap, ...more] = await entriesOf(app, '?q=nothing')
  expect(more).toEqual([])
  expect(afterGap?._dash.gaps).toHaveLength(1)
  expect(afterGap?.title).toBe(`Top Year ${LATER}: 0 entered, 0 left, 0 moved by 10 or more, after a gap`)
})

test('a feed with a rule says so in its title, addresses and ids', async () => {
  const app = openApp(await changedYear())
  const { text } = await requestRoute(app, `${JSON_FEED}?top=3&q=story+16`)
  const { items, ...feed } = JSON.parse(text) as { items: Entry[] }
  expect(feed).toMatchObject({
    title: 'dash: changes of the Top Year: story 16, top 3',
    home_page_url: 'http://dash.test/?sort=year&q=story+16&top=3',
    feed_url: `http://dash.test${JSON_FEED}?q=story+16&top=3`,
  })
  const [whole] = await entriesOf(app)
  expect(items[0]?.url).toBe(`${whole?.url}&q=story+16&top=3`)
  const name = `${whole?._dash.publicationId} ${whole?._dash.sha256}`
  const ids = [permanentId(name), permanentId(`${name} q=story+16&top=3`)]
  expect([whole?.id, items[0]?.id]).toEqual(ids)
})

test('an entry has the time and a permanent id of its publication, and links to the page at that moment', async () => {
  const workspace = await changedYear()
  const app = openApp(workspace)
  const [newest] = await entriesOf(app)
  const index = JSON.parse((await requestRoute(app, '/api/feed/history/index')).text) as {
    publications: { publishedAt: string }[]
  }
  expect(newest?.date_published).toBe(index.publications.at(-1)?.publishedAt)
  expect(newest?.url).toBe(`http://dash.test/?sort=year&at=${newest?.date_published}`)
  const page = await app.request(newest?.url ?? '')
  expect([page.status, (await page.text()).includes(`top-year-v3-${LATER}`)]).toEqual([200, true])
  await publishDays(workspace, [addDays(LATER, 1)])
  const later = await entriesOf(app)
  expect(later).toHaveLength(3)
  expect(later[1]).toEqual(newest)
})

test('the three formats of the changes are valid', async () => {
  const app = openApp(await changedYear())
  const [rss = '', atom = '', json = ''] = await Promise.all(
    PATHS.map(async (path) => (await requestRoute(app, path)).text),
  )
  expect([...(await libxmlErrors(rss, 'rss')), ...(await libxmlErrors(atom, 'atom'))]).toEqual([])
  expect(jsonFeedErrors(json)).toEqual([])
})

test('a long archive gives the newest 90 publications, with older layouts named as such', async () => {
  const archive = sampleArchive(95)
  const clock = () => (archive.contents.rows.at(-1)?.publishedAt ?? 0) + 1
  const entries = await entriesOf(openSampleApp(archive, { clock }))
  expect(entries).toHaveLength(90)
  expect(entries[0]?.title).toMatch(/^Top Year [\d-]+: published in an older layout$/)
})

test('a publication dated in the future is not in the feed', async () => {
  const workspace = await changedYear()
  const before = startOfDay(addDays(LATER, 1))
  const entries = await entriesOf(openApp(workspace, { clock: () => before }))
  expect(entries.map(({ _dash: { publicationId } }) => publicationId)).toEqual([`top-year-v3-${AS_OF}`])
})
