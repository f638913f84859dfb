import { describe, expect, test } from 'vitest'
import { formatInstant } from '../../../src/domain/time.ts'
import { openPage } from '../../support/api-client.ts'
import { changedYear } from '../../support/changed-year.ts'
import { keepSnapshot } from '../feed/live-client.ts'
import { NOW, feedEvent } from '../../support/signals.ts'
import { manifestsOf, openWorkspace } from '../../support/workspace.ts'

describe('previews of a page', () => {
  /** Values of the meta elements by name. */
  const metaOf = (page: string): Record<string, string> =>
    Object.fromEntries(
      [...page.matchAll(/<meta (?:name|property)="([^"]*)" content="([^"]*)"/g)].map(
        ([, name = '', value = '']) => [name, value.replaceAll('&amp;', '&')],
      ),
    )

  test('describe the live period by its first stories', async () => {
    const workspace = await openWorkspace()
    await keepSnapshot(workspace.feed, [feedEvent({ title: '"Quoted" & <b>bold</b>', publishedAt: NOW - 1 })])
    const { page } = await openPage(workspace, '/?sort=week')
    expect(page).not.toContain('<b>bold')
    expect(metaOf(page)).toMatchObject({
      'og:url': 'http://dash.test/?sort=week',
      'og:description': expect.stringContaining('Week, as of 2026-03-15: 1. &quot;Quoted&quot;'),
    })
  })

  test('of a filtered view name its stories', async () => {
    const workspace = await changedYear()
    await keepSnapshot(workspace.feed, [
      feedEvent({ title: 'Rust' }),
      feedEvent({ sourceId: '2', title: 'Cooking' }),
    ])
    const live = metaOf((await openPage(workspace, '/?sort=week&q=rust')).page)
    expect(live['og:url']).toBe('http://dash.test/?sort=week&q=rust')
    expect(live['og:description']).toMatch(/: 1\. Rust$/)
    const year = metaOf((await openPage(workspace, '/?sort=year&q=%2215%22')).page)
    expect(year['og:url']).toMatch(/sort=year&at=.*&q=%2215%22$/)
    expect(year['og:description']).toContain('&quot;15&quot;: 1. Story 15')
    const none = metaOf((await openPage(workspace, '/?sort=year&q=nothing')).page)
    expect(none['og:description']).toMatch(/^The Top Year up to .*: nothing$/)
  })

  test('of the Year and of an item name the moment, and the box offers the same', async () => {
    const workspace = await changedYear()
    const at = encodeURIComponent(formatInstant((await manifestsOf(workspace)).at(-1)?.publishedAt ?? 0))
    const year = await openPage(workspace, '/?sort=year')
    expect(metaOf(year.page)['og:url']).toBe(`http://dash.test/?sort=year&at=${at}`)
    expect(year.page).toContain(`id="share-link">http://dash.test/?sort=year&amp;at=${at}<`)
    const item = await openPage(workspace, '/item?key=hn-15')
    const stay = 'highest #1, 3 days, there since the first publication, of 1 March'
    expect(item.text.replaceAll(/ (?=[;:,.])/g, '')).toContain(`Popular: ${stay}; Hacker News: ${stay}.`)
    expect(metaOf(item.page)['description']).toMatch(/^Hacker News · .* points .*Highest #1/)
    expect(item.page).toContain(`http://dash.test/charts/item.svg?key=hn-15&amp;at=${at}&amp;theme=light`)
  })
})
