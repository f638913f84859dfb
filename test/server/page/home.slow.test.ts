import { describe, expect, test } from 'vitest'
import { addDays, startOfDay } from '../../../src/domain/time.ts'
import { rankPeriods } from '../../../src/jobs/snapshot.ts'
import type { ServerPorts } from '../../../src/server/app.ts'
import { hrefsIn, keysIn, NO_CHAT, openPage, plainText, silentLog } from '../../support/api-client.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

const NOON = startOfDay(addDays(AS_OF, 1)) + 12 * 3_600_000

const COUNTS = { publications: 1, objects: 1, bytes: 1, gaps: 0, damage: 0 }
const HEAD = { seq: 1, leaf: 'abcdef01'.repeat(8) }
/** The record of a sound audit. */
const AUDIT = { ok: true, complete: true, whole: true, ...COUNTS, head: HEAD, endedAt: NOON }

type Signals = ReturnType<typeof sampleSignals>

/** A workspace with a snapshot and a publication of the sample. */
async function filled(change: (signals: Signals) => Signals = (signals) => signals): Promise<Workspace> {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(change(sampleSignals()))
  await publishDays(workspace, [AS_OF])
  await rankAt(workspace, NOON)
  return workspace
}

async function rankAt({ feed }: Workspace, at: number): Promise<void> {
  const options = { signal: new AbortController().signal, discardLater: false }
  await rankPeriods({ feed, clock: () => at }, options)
}

const get = (workspace: Workspace, path: string, changes: Partial<ServerPorts> = {}) =>
  openPage(workspace, path, { clock: () => NOON, ...changes })

/** Text of the facts in the status. */
function facts(page: string): string {
  const strip = /<dl class="facts">(.*?)<\/dl>/s.exec(page)?.[1] ?? ''
  return plainText(strip)
}

describe('the page', () => {
  test('the page has every security header', async () => {
    const { headers } = await get(await openWorkspace(), '/')
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-cache',
    })
  })

  test('the page has items in every period', async () => {
    const workspace = await filled()
    for (const sort of ['trending', 'day', 'week', 'month', 'year']) {
      const { status, page } = await get(workspace, `/?sort=${sort}`)
      expect([sort, status, keysIn(page).length > 0]).toEqual([sort, 200, true])
    }
  })

  test('the page of an empty server works and shows instructions', async () => {
    const { status, page } = await get(await openWorkspace(), '/')
    expect(status).toBe(200)
    expect(page).toContain('dash collect')
    expect(facts(page)).toMatch(/No snapshot yet.*None yet.*No record.*built-in list/)
    expect((await get(await openWorkspace(), '/?sort=year')).page).toContain('dash publish-year')
  })

  test('the page links only to http and https, and escapes untrusted text', async () => {
    const [first, second, ...others] = sampleSignals() as [Signals[0], Signals[0], ...Signals]
    const workspace = await filled(() => [
      { ...first, title: '</a></li><script>alert(1)</script>', url: null, points: 990 },
      { ...second, title: `"onmouseover='x'`, url: `https://example.org/"><img src=x>` },
      ...others,
    ])
    for (const path of ['/?sort=month', '/?sort=year']) {
      const { page } = await get(workspace, path)
      expect(page).toContain('&lt;/a&gt;&lt;/li&gt;&lt;script&gt;alert(1)&lt;/script&gt;')
      expect(page).toContain('href="https://example.org/&quot;&gt;&lt;img src=x&gt;"')
      expect(page).not.toMatch(/<script>|<img src=x|javascript:/)
      for (const link of hrefsIn(page)) expect(link).toMatch(/^(?:https?:|\/|#)/)
      const strangers = [...page.matchAll(/<a\s[^>]*href="https:\/\/(?:example|news|lobste|www)[^>]*>/g)]
      expect(strangers.length).toBeGreaterThan(10)
      for (const [link] of strangers) expect(link).toContain('rel="noopener noreferrer nofollow ugc"')
    }
  })

  test('the page shows one column completely, and the tabs keep it', async () => {
    const { page } = await get(await filled(), '/?sort=month&column=lobsters&unknown=1')
    expect(keysIn(page)).toHaveLength(3)
    expect(page).toContain('href="/?sort=day&amp;column=lobsters#feed"')
    expect(page).toContain('href="/?sort=month#feed"')
    expect(page).not.toContain('unknown')
  })

  test('the overview shows a story of two sources once, with the points and the discussion of each', async () => {
    const signals = sampleSignals()
    const lobsters = signals.find(({ source }) => source === 'lobsters') as Signals[0]
    const url = 'https://www.example.org/shared/'
    const twin = { ...lobsters, sourceId: 'twin', url: 'http://example.org/shared#top', points: 321 }
    const workspace = await filled(([hn, ...others]) => [
      { ...(hn as Signals[0]), url, points: 987 },
      twin,
      ...others,
    ])
    const { page } = await get(workspace, '/?sort=month')
    const rows = page
      .split('<li class="item"')
      .filter((row) => /data-key="(?:hn-hn1|lobsters-twin)"/.test(row))
    expect(rows).toHaveLength(1)
    expect(plainText(rows[0] ?? '')).toMatch(/Lobsters example\.org 321 points .* HN 987 points/)
    expect(hrefsIn(rows[0] ?? '')).toEqual(
      expect.arrayContaining(['https://news.ycombinator.com/item?id=hn1', 'https://lobste.rs/s/twin']),
    )
    expect(new Set(keysIn(page)).size).toBe(keysIn(page).length)
    const column = await get(workspace, '/?sort=month&column=lobsters')
    expect(keysIn(column.page)).toContain('lobsters-twin')
  })

  test('the overview does not name an empty column, and the column itself says that it is empty', async () => {
    const workspace = await filled()
    const { page, text } = await get(workspace, '/?sort=month')
    expect(page).not.toContain('id="column-midjourney"')
    expect(text).not.toContain('Images')
    const alone = await get(workspace, '/?sort=month&column=midjourney')
    expect([alone.status, alone.text]).toEqual([200, expect.stringContaining('Images is empty.')])
  })

  test('the ages of items count from the time of the request', async () => {
    const { page } = await get(await filled(), '/?sort=month', { clock: () => NOON + 50 * 86_400_000 })
    expect(plainText(/class="age">(.*?)<\/span/.exec(page)?.[1] ?? '').trim()).toBe('52 d')
  })

  test.each([
    [2 * 3_600_000, 'Up to date · newest snapshot 2 h ago'],
    [2 * 3_600_000 + 60_000, 'Newest snapshot 2 h ago'],
    [24 * 3_600_000 + 60_000, 'Warning: Live feed: 24 h ago'],
  ])(
    'a snapshot of %s ms before is up to date only if it is at most two hours old, and a warning after a day',
    async (age, expected) => {
      const workspace = await filled()
      await workspace.audits.record(AUDIT)
      expect((await get(workspace, '/', { clock: () => NOON + age })).text).toContain(expected)
    },
  )

  test('a period without items says why, and shows the newest Year', async () => {
    const { status, text, page } = await get(await filled(), '/?sort=day')
    expect(status).toBe(200)
    expect(text).toContain(
      'Day is empty: when the newest snapshot was taken, under a minute ago , nothing published in the last 24 hours had been collected.',
    )
    expect(text).toContain('The newest Top Year')
    expect(page).toContain('data-key="')
  })

  test('the line of the status names the worst fact in words and the number of others', async () => {
    const lineOf = async (of: Workspace): Promise<string> => {
      const { page } = await get(of, '/')
      return plainText(/class="state">\s*<summary>(.*?)<\/summary>/s.exec(page)?.[1] ?? '')
    }
    expect(await lineOf(await openWorkspace())).toMatch(/Warning: Live feed: No snapshot yet · 2 more$/)
    const workspace = await filled()
    // Models that nobody evaluated are no reason to warn.
    expect(await lineOf(workspace)).toMatch(/Warning: Last audit: No record$/)
    await workspace.audits.record({ ...AUDIT, ok: false, damage: 2 })
    expect(await lineOf(workspace)).toContain('Problem: Last audit: Damaged: 2 findings')
  })

  test('a filter or model on the home page redirects to the page of the models', async () => {
    const filter = 'needs=tools&needs=seed&model=vendor%2Fa%3Afree'
    const { status, headers } = await get(await openWorkspace(), `/?sort=week&${filter}`)
    expect([status, headers.get('location')]).toEqual([303, `/models?${filter}`])
  })

  test.each([
    ['/?sort=decade', 'invalid_sort'],
    ['/?sort=day&sort=week', 'invalid_sort'],
    ['/?column=none', 'invalid_column'],
  ])('the page refuses %s with 400 and its code, and shows the other panels', async (path, code) => {
    const { status, page } = await get(await filled(), path)
    expect(status).toBe(400)
    expect(page).toContain(`<code>${code}</code>`)
    expect(page).toContain('class="state"')
    expect(page).toMatch(/aria-label="Periods".*role="search"/s)
  })

  test('the page of the models accepts a form with a checkbox for each need and an empty field', async () => {
    const path = '/models?needs=tools&needs=seed&minContext=&health='
    const { status, page } = await get(await openWorkspace(), path)
    expect(status).toBe(200)
    for (const data of ['/api/free-llm/top-models', '/api/free-llm/top-models.csv'])
      expect(hrefsIn(page)).toContain(`${data}?needs=tools%2Cseed`)
  })

  test('the page shows the code of each interface for a damaged snapshot and a damaged archive, each in its panel', async () => {
    const workspace = await filled()
    const logged: unknown[] = []
    const log = { ...silentLog, error: (fields: Record<string, unknown>) => void logged.push(fields['code']) }
    const feed = { ...workspace.feed, snapshotFeed: () => Promise.resolve(new Uint8Array([1])) }
    const damaged = await get(workspace, '/', { feed, log })
    expect([damaged.status, damaged.page]).toEqual([503, expect.stringContaining('feed_snapshot_corrupt')])
    expect(facts(damaged.page)).toContain('Year as of')
    expect(facts(damaged.page)).toContain('Last gap None no missed day is recorded')
    const year = { read: () => Promise.reject(new Error('gone')) }
    const archive = await get(workspace, '/', { year, log })
    expect([archive.status, keysIn(archive.page).length > 0]).toEqual([200, true])
    expect(facts(archive.page)).toContain('Last publication ✕ Problem: year_history_lookup_failed')
    // The panel of changes reads the archive too.
    const [feedCode, yearCode] = ['feed_snapshot_corrupt', 'year_history_lookup_failed']
    expect(logged).toEqual([feedCode, feedCode, yearCode, yearCode, yearCode])
  })

  test('the page shows the result and the coverage of the last audit', async () => {
    const workspace = await filled()
    const told = async (changes: object): Promise<string> => {
      await workspace.audits.record({ ...AUDIT, endedAt: NOON - 7_200_000, ...changes })
      return facts((await get(workspace, '/')).page)
    }
    expect(await told({})).toContain('Sound, 2 h ago 1 object of 1 publication, head 1 abcdef01')
    expect(await told({ whole: false })).toContain('part: 1 object')
    expect(await told({ ok: false, damage: 2 })).toContain('Problem: Damaged: 2 findings, 2 h ago')
    expect(await told({ ok: false, complete: false })).toContain('Problem: Not completed, 2 h ago')
    expect(await told({ endedAt: NOON - 10 * 86_400_000 })).toContain('Warning: Sound, 10 d ago')
  })

  test.each([
    ['ok', true, 'Open within the day&#39;s budget; 5 messages per session, 9 per day'],
    ['soft', true, 'Warning: Open, without tools the budget of today is nearly used up; 5 messages'],
    ['exhausted', true, 'Warning: Closed until 00:00 UTC the budget of today is used up'],
    ['unknown', true, 'Problem: Closed the budget cannot be read'],
    ['ok', false, 'Chat Off off or not set up'],
  ] as const)(
    'the page shows the chat for the budget %s and the switch %s',
    async (budget, enabled, told) => {
      const quotas = { messagesPerSession: 5, messagesPerDay: 9 }
      const agent = {
        ...NO_CHAT,
        config: async () => ({ ...(await NO_CHAT.config()), enabled, quotas }),
        pageStatus: async () => ({ ...(await NO_CHAT.pageStatus()), budget }),
      }
      const { page } = await get(await openWorkspace(), '/', { agent })
      expect(facts(page).replaceAll("'", '&#39;')).toContain(told)
    },
  )

  test('the page marks a late publication', async () => {
    const workspace = await filled()
    const later = await get(workspace, '/', { clock: () => NOON + 2 * 86_400_000 })
    expect(facts(later.page)).toMatch(/Warning: Year as of \S+; the next one is late published 2 d ago/)
    expect(facts((await get(workspace, '/')).page)).not.toContain('late')
  })
})
