import { parseHTML } from 'linkedom'
import { parse } from 'marked'
import { describe, expect, test } from 'vitest'
import type { Digest } from '../../../../src/cli/commands/feed/digest-content.ts'
import { addDays, dayOf } from '../../../../src/domain/time.ts'
import { listenLocally, openApp } from '../../../support/api-client.ts'
import { filledFolder, run } from '../../../support/dash.ts'
import { newsWorkspace } from '../../../support/news.ts'
import { publishDays } from '../../../support/workspace.ts'

const SINCE = ['--since', '2026-03-03']

describe('dash digest', () => {
  test('the text names what entered, left, moved and leads, the gaps, and the top of the live feed', async () => {
    const { folder } = await newsWorkspace()
    const { code, stdout, stderr } = await run(['digest', ...SINCE, '--data-dir', folder])
    expect([code, stderr]).toEqual([0, ''])
    const yesterday = addDays(dayOf(Date.now()), -2)
    expect(stdout.split('\n\n').slice(0, 6)).toEqual([
      expect.stringContaining(
        `gaps: 2026-03-02 to 2026-03-03 (no attempt was made), 2026-03-05 to ${yesterday} (not in the ledger).`,
      ),
      'New number 1\n  #1  Story 25  https://example.org/25',
      expect.stringMatching(/^Entered \(1\)\n {2}#31 {2}Evil\\u001b\[2J.* {2}https:\/\/evil\.test\/\S+$/),
      'Left (1)\n  was #31  Story 40  https://example.org/40',
      'Moved by 10 ranks or more (1)\n  ▲ 24 to #1  Story 25  https://example.org/25',
      expect.stringMatching(/^Live feed, top of the month: Popular\n {2}#1 .*\n.*\n {2}#3 {2}Live story/),
    ])
    expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
  })

  test('a period without changes says so in each of its parts', async () => {
    const workspace = await newsWorkspace()
    await publishDays(workspace, ['2026-03-05'])
    const { stdout } = await run([
      'digest',
      '--since',
      '2026-03-05T12:00:00Z',
      '--data-dir',
      workspace.folder,
    ])
    expect(stdout.split('\n\n').slice(1, 5)).toEqual([
      'New number 1\n  Number 1 is the same.',
      'Entered\n  Nothing entered.',
      'Left\n  Nothing left.',
      'Moved by 10 ranks or more\n  Nothing moved by 10 ranks or more.',
    ])
  })

  test('the same digest is a JSON document, also from another host', async () => {
    const workspace = await newsWorkspace()
    const { url } = await listenLocally(openApp(workspace))
    const digest = async (...args: string[]): Promise<Omit<Digest, 'until'>> => {
      const { code, stdout } = await run(['digest', ...SINCE, '--json', ...args])
      expect(code).toBe(0)
      const { until: _until, ...rest } = JSON.parse(stdout) as Digest
      return rest
    }
    const own = await digest('--data-dir', workspace.folder)
    expect(own).toMatchObject({
      since: '2026-03-03T00:00:00.000Z',
      year: {
        before: { asOfDay: '2026-03-01' },
        after: { asOfDay: '2026-03-04' },
        changes: {
          newFirst: { key: 'hn-25' },
          entered: [{ key: 'hn-31', rank: 31 }],
          left: [{ key: 'hn-40', rank: 31 }],
          moved: [{ before: { rank: 25 }, after: { rank: 1 }, rose: 24 }],
        },
      },
      live: { sort: 'month', lists: { lobsters: [{ key: 'lobsters-52' }], midjourney: [] } },
    })
    expect(own.year.gaps.slice(0, 2)).toEqual([
      { asOfDay: '2026-03-02', reason: 'missed' },
      { asOfDay: '2026-03-03', reason: 'missed' },
    ])
    expect(await digest('--url', url)).toEqual(own)
  })

  test('the Markdown has the titles as text, and links to web pages alone', async () => {
    const { folder } = await newsWorkspace()
    const { stdout } = await run(['digest', ...SINCE, '--format', 'md', '--data-dir', folder])
    const rendered = parse(stdout, { async: false })
    const { document } = parseHTML(`<main>${rendered}</main>`)
    const links = [...document.querySelectorAll('a')].map((link) => link.getAttribute('href') ?? '')
    expect(links).toContain('https://example.org/25')
    const hosts = ['evil.test', 'example.org', 'news.ycombinator.com']
    expect([...new Set(links.map((link) => new URL(link).host))].toSorted()).toEqual(hosts)
    expect(document.querySelector('img')).toBeNull()
    expect(stdout).toContain('\\<img src=x\\> \\[a\\]')
    expect(await run(['digest', ...SINCE, '--format', 'markdown', '--data-dir', folder])).toMatchObject({
      stdout,
    })
  })

  test('the HTML stands alone: titles are text, nothing is loaded and no script runs', async () => {
    const { folder } = await newsWorkspace()
    const { stdout } = await run(['digest', ...SINCE, '--format', 'html', '--data-dir', folder])
    const { document } = parseHTML(stdout)
    expect(document.querySelectorAll('script, img, link, iframe, [src], [onerror]')).toHaveLength(0)
    const titles = [...document.querySelectorAll('li a')].map((link) => link.textContent)
    expect(titles).toContain('Evil[2J2J <img src=x> [a](http://b.test) "title"')
    for (const link of document.querySelectorAll('a'))
      expect(link.getAttribute('href')).toMatch(/^https:\/\//)
    expect(stdout).toContain(`default-src 'none'`)
  })

  test('a period without a publication at its begin or within it compares nothing and says so', async () => {
    const { folder } = await newsWorkspace()
    const early = await run(['digest', '--since', '2026-03-01T00:00:00Z', '--data-dir', folder])
    expect(early.stdout).toContain('No Year was current when the period began')
    const late = await run(['digest', '--days', '3', '--data-dir', folder])
    expect(late.stdout).toContain('No Year was published in the period.')
    for (const { stdout } of [early, late]) {
      expect(stdout).not.toContain('Entered')
      expect(stdout).toContain('Live feed')
    }
    // The items are of yesterday, at an hour that may be more than 24 hours ago.
    const unpublished = await run(['digest', '--since', '7d', '--data-dir', await filledFolder()])
    expect(unpublished).toMatchObject({ code: 0 })
    expect(unpublished.stdout).toContain('No Year has been published yet.')
    expect(unpublished.stdout).toContain('Live feed, top of the week')
  })

  test.each([
    [['--since', 'yesterday'], '--since "yesterday" must be'],
    [['--since', '0d'], '--since "0d" must be'],
    [['--since', '2999-01-01'], '--since "2999-01-01" must be'],
    [['--days', '1.5'], '--days "1.5" must be'],
    [['--days', '3', '--since', '3d'], '--since and --days exclude each other'],
    [['--format', 'pdf'], 'Allowed choices are text, md, markdown, html'],
  ])('the command line %j is a usage error', async (args, message) => {
    const { code, stdout, stderr } = await run(['digest', ...args])
    expect([code, stdout]).toEqual([64, ''])
    expect(stderr).toContain(message)
  })
})
