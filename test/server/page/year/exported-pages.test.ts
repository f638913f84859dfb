import { expect, test } from 'vitest'
import type { ExportedArchive } from '../../../../src/domain/year/log/static-layout.ts'
import { addDays } from '../../../../src/domain/time.ts'
import { importArchive } from '../../../../src/jobs/import-archive.ts'
import { exportedPages } from '../../../../src/server/page/year/exported-pages.ts'
import { importPortsOf, SAMPLE_ARCHIVE } from '../../../support/legacy-archive.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../../../support/workspace.ts'
import type { Workspace } from '../../../support/workspace.ts'

const NEXT = addDays(AS_OF, 2)

async function archiveOf({ year, objects }: Workspace): Promise<ExportedArchive> {
  const { proved, head } = await year.read()
  if (head === null) throw new Error('the archive has no head')
  return {
    proved: { ...proved, head },
    checkpoint: { origin: 'dash.example/tlog/year', size: head.seq, root: new Uint8Array(32) },
    publication: async ({ sha256 }) => (await objects.get(sha256)) ?? new Uint8Array(),
  }
}

/** Two publications with a gap between them; the first item has a hostile title. */
async function twoDays(): Promise<ExportedArchive> {
  const workspace = await openWorkspace()
  for (const day of [AS_OF, NEXT]) {
    const [first, ...others] = sampleSignals(day)
    if (first)
      await workspace.feed.importSignals([{ ...first, title: '<script>alert(1)</script> & "quotes"' }])
    await workspace.feed.importSignals(others)
  }
  await publishDays(workspace, [AS_OF, NEXT])
  return archiveOf(workspace)
}

const text = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString()

test('the page of a publication has its ranks and sources, its neighbours, the gap before it and its proof', async () => {
  const archive = await twoDays()
  const { publications } = exportedPages(archive)
  const [first = '', second = ''] = await Promise.all(
    publications.map(async (page) => text(await page.render())),
  )
  expect(publications.map(({ path }) => path)).toEqual([`year/${AS_OF}.html`, `year/${NEXT}.html`])
  expect(second).toMatch(/<h1>Top of the 365 days to \d+ \w+ \d{4}<\/h1>/)
  expect(second).toMatch(/<span class="rank">1<\/span>[^]*<span class="source">/)
  expect(second).toMatch(/<span class="age">\d+ \w+ \d{4}<\/span>/)
  expect(first).toContain(`href="../year/${NEXT}.html" rel="next"`)
  expect(first).not.toContain('rel="prev"')
  expect(second).toContain(`href="../year/${AS_OF}.html" rel="prev"`)
  expect(second).not.toContain('rel="next"')
  expect(second).toContain(`Gap: nothing was published for ${addDays(AS_OF, 1)}`)
  const { sha256, publicationId } = archive.proved.timeline[1]?.manifest ?? {}
  expect(second).toContain(`sha256sum &#39;${publicationId}.json&#39;`)
  expect(second.split(`<code>${sha256}</code>`)).toHaveLength(2)
})

test('a page has no script, no link to a server, and no title that is not escaped', async () => {
  const { publications, overviews } = exportedPages(await twoDays())
  const pages = await Promise.all(publications.map(({ render }) => render()))
  for (const bytes of [...pages, ...(await overviews()).values()]) {
    const page = text(bytes)
    expect(page).not.toMatch(/<script|(?:href|src|action)="\/|127\.0\.0\.1|localhost/)
  }
  expect(text(pages[1])).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
})

test('only the page that was the newest one is written again', async () => {
  const { publications } = exportedPages(await twoDays())
  const [older, newest] = publications
  const unlinked = (await newest?.render()) ?? new Uint8Array()
  expect(newest?.isCurrent(unlinked)).toBe(true)
  expect(older?.isCurrent(unlinked)).toBe(false)
  expect(older?.isCurrent((await older.render()) ?? unlinked)).toBe(true)
})

test('the start page is the newest publication, and the list of days names every publication and gap', async () => {
  const { overviews } = exportedPages(await twoDays())
  const files = await overviews()
  expect([...files.keys()]).toEqual([
    '404.html',
    'days.html',
    'atom.xml',
    'rss.xml',
    'feed.json',
    'index.html',
  ])
  expect(text(files.get('index.html'))).toContain(`href="year/${AS_OF}.html" rel="prev"`)
  const days = text(files.get('days.html'))
  const listed = Array.from(
    days.matchAll(/<li>(<a href="year\/[^"]+">)?([\d-]+(?:: a gap)?)/g),
    ([, ...row]) => row,
  )
  expect(listed).toEqual([
    [`<a href="year/${NEXT}.html">`, NEXT],
    [undefined, `${addDays(AS_OF, 1)}: a gap`],
    [`<a href="year/${AS_OF}.html">`, AS_OF],
  ])
  const feed = JSON.parse(text(files.get('feed.json'))) as { items: { url: string }[] }
  expect(feed.items.map(({ url }) => url)).toEqual([`year/${NEXT}.html`, `year/${AS_OF}.html`])
  expect(text(files.get('atom.xml'))).toMatch(/<id>urn:uuid:[\da-f-]+<\/id>\n<title/)
})

test('the page of an older layout leads to the publication', async () => {
  const workspace = await openWorkspace(() => Date.now() + 60_000)
  await importArchive(importPortsOf(workspace, SAMPLE_ARCHIVE))
  const archive = await archiveOf(workspace)
  const { publications } = exportedPages(archive)
  const paths = publications.map(({ path }) => path)
  expect(new Set(paths).size).toBe(paths.length)
  const { sha256 = '' } = archive.proved.timeline[0]?.manifest ?? {}
  expect(text(await publications[0]?.render())).toContain(
    `<a href="../objects/sha256/${sha256.slice(0, 2)}/${sha256}.json">`,
  )
})
