import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { formatDay } from '../../src/server/page/html.ts'
import { addDays, formatInstant, startOfDay } from '../../src/domain/time.ts'
import type { Day } from '../../src/domain/time.ts'
import { listenLocally, openApp } from '../support/api-client.ts'
import { story } from '../support/changed-year.ts'
import { laterClock } from '../support/temporary-folder.ts'
import { AS_OF, openWorkspace, publishDays, reopenWorkspace } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'
import { flawsOf, picture, visit } from './browser.ts'

const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 320, height: 640 }

/** Publications of the long history, and the day that it lacks. */
const DAYS = 61
const GAP = addDays(AS_OF, 40)
const LAST = addDays(AS_OF, DAYS - 1)

/** A history of 60 publications with a gap, in which points change every day. */
async function longYear(): Promise<Workspace> {
  const workspace = await openWorkspace()
  const days = Array.from({ length: DAYS }, (_, index) => addDays(AS_OF, index))
  await workspace.feed.importSignals(
    days.flatMap((day, index) =>
      Array.from({ length: 130 }, (_, number) => {
        const points = 500 + Math.round(400 * Math.sin(number * 2.4 + index / (6 + (number % 7))))
        return story(number + 1, day, points, { publishedAt: startOfDay(addDays(AS_OF, -5)) })
      }),
    ),
  )
  await publishDays(
    workspace,
    days.filter((day) => day !== GAP),
  )
  return workspace
}

/** A copy of the history for all tests; the first one makes it. */
const kept = mkdtempSync(join(tmpdir(), 'dash-year-'))

afterAll(() => rmSync(kept, { recursive: true }))

let workspace: Workspace

beforeEach(async () => {
  if (readdirSync(kept).length === 0) {
    const { folder, close } = await longYear()
    close()
    cpSync(folder, kept, { recursive: true })
  }
  workspace = reopenWorkspace(kept, laterClock)
})

const clock = (): number => startOfDay(addDays(LAST, 1)) + 12 * 3_600_000

async function serve(changes: Parameters<typeof openApp>[1] = {}): Promise<string> {
  const { url } = await listenLocally(openApp(workspace, { clock, ...changes }))
  return url
}

/** The first rows of Popular of a day, as published. */
async function published(day: Day): Promise<string[]> {
  const { timeline } = (await workspace.year.read()).proved
  const manifest = timeline.find((item) => item.manifest.asOfDay === day)?.manifest
  const bytes = await workspace.objects.get(manifest?.sha256 ?? '')
  const { feed } = JSON.parse(Buffer.from(bytes ?? []).toString()) as { feed: { popular: { key: string }[] } }
  return feed.popular.slice(0, 20).map(({ key }) => key)
}

const opacity = (page: Page): Promise<number> =>
  page.evaluate(`Number(getComputedStyle(document.querySelector('.columns-frame')).opacity)`)

const shownKeys = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(
    `[...document.querySelectorAll('#column-popular .item')].map((row) => row.dataset.key)`,
  )

/** Moves the slider to a day without letting it go. */
const drag = (page: Page, day: Day): Promise<void> =>
  page.evaluate<void>(`(() => {
    const slider = document.getElementById('slider')
    const first = Date.parse(slider.closest('.year-timeline').dataset.firstDay)
    slider.value = String((Date.parse('${day}') - first) / 86400000)
    slider.dispatchEvent(new Event('input', { bubbles: true }))
  })()`)

test('the Year of 60 publications, its chart of either colour scheme and a comparison are accessible and fit a small dark phone', async () => {
  const visited = await visit(`${await serve()}/?sort=year&chart=90`, {
    viewport: PHONE,
    colorScheme: 'dark',
  })
  const { page } = visited
  await page.locator('figure.bump').scrollIntoViewIfNeeded()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const image = `document.querySelector('.bump .in-${colorScheme}')`
    await expect.poll(() => page.evaluate(`${image}.naturalWidth`)).toBe(936)
    expect(await page.locator('.bump img:visible').count()).toBe(1)
  }
  await page.evaluate('scrollTo(0, 0)')
  await picture(page, 'year-phone-dark')
  expect(await flawsOf(visited)).toEqual([])
  await page.goto(page.url().replace('chart=90', `with=${formatInstant(startOfDay(addDays(AS_OF, 11)))}`))
  await picture(page, 'compared-phone-dark')
  expect(await flawsOf(visited)).toEqual([])
})

describe('the slider', () => {
  test('reorders Popular as published while it is moved, goes back to the page as it was, and shows its day whole when it is released', async () => {
    const { page, problems } = await visit(`${await serve()}/?sort=year`, { viewport: DESKTOP })
    const before = await shownKeys(page)
    await page.locator('#slider').focus()
    for (const day of [addDays(AS_OF, 55), addDays(AS_OF, 3), addDays(AS_OF, 31)]) {
      await drag(page, day)
      await expect.poll(() => shownKeys(page)).toEqual(await published(day))
      expect(await page.locator('#slider-day').textContent()).toBe(formatDay(day))
      expect(await page.locator('#slider').getAttribute('aria-valuetext')).toContain(`${day}, published `)
    }
    await drag(page, GAP)
    await page.locator('#slider-day', { hasText: `${formatDay(GAP)}, a gap` }).waitFor()
    expect(await page.locator('#slider').getAttribute('aria-valuetext')).toBe(`${GAP}, a gap`)
    expect(await shownKeys(page)).toEqual(await published(addDays(AS_OF, 31)))
    expect(await opacity(page)).toBeLessThan(1)
    await drag(page, addDays(AS_OF, 31))
    await expect.poll(() => opacity(page)).toBe(1)
    await drag(page, LAST)
    await expect.poll(() => shownKeys(page)).toEqual(before)
    expect(await page.locator('.travelling').count()).toBe(0)
    const released = addDays(AS_OF, 12)
    await drag(page, released)
    await page.locator('#slider').dispatchEvent('change')
    await page.locator('.as-of', { hasText: `365 days up to ${formatDay(released)}` }).waitFor()
    expect(await page.locator('.travelling, .unlisted').count()).toBe(0)
    expect(await shownKeys(page)).toEqual(await published(released))
    const title = await page.locator('#column-popular .title').first().boundingBox()
    expect(title?.width).toBeGreaterThan(300)
    expect(problems).toEqual([])
  })

  test('leaves page and heading as they were when its day cannot be loaded, and says why', async () => {
    const { page } = await visit(`${await serve()}/?sort=year`, { viewport: DESKTOP })
    const before = await shownKeys(page)
    await page.context().setOffline(true)
    await drag(page, addDays(AS_OF, 12))
    await page.locator('#slider').dispatchEvent('change')
    const problem = page.locator('.year-timeline').getByRole('alert')
    const day = formatDay(addDays(AS_OF, 12))
    await problem.filter({ hasText: `${day} cannot be loaded: the server cannot be reached.` }).waitFor()
    expect(await shownKeys(page)).toEqual(before)
    expect(await page.locator('#slider-day').textContent()).toBe(formatDay(LAST))
    expect(await page.locator('.tip').textContent()).toContain(formatDay(LAST))
    expect(await page.locator('.travelling, .unlisted').count()).toBe(0)
  })

  test('names the day and the new items of a bar under the pointer, and leaves the bracket keys to the page', async () => {
    const { page } = await visit(`${await serve()}/?sort=year`, { viewport: DESKTOP })
    await page.locator('#slider').hover()
    expect(await page.locator('.tip').textContent()).toMatch(/^\d+ \w+ \d{4} · \d+ new$/)
    await page.locator('#slider').focus()
    await page.keyboard.press('[')
    await page.locator('.as-of', { hasText: `365 days up to ${formatDay(addDays(LAST, -1))}` }).waitFor()
  })

  test('replays the days while a key is held, opens the last one alone, keeps the focus, and goes back with the page', async () => {
    const { page } = await visit(`${await serve()}/?sort=year`, { viewport: DESKTOP })
    const opened: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('day=')) opened.push(request.url())
    })
    await page.locator('#slider').focus()
    for (let press = 0; press < 8; press += 1) await page.keyboard.press('ArrowLeft')
    await page.locator('.as-of', { hasText: `365 days up to ${formatDay(addDays(LAST, -8))}` }).waitFor()
    expect(opened.length).toBe(1)
    expect(await page.evaluate('document.activeElement.id')).toBe('slider')
    expect(await page.title()).toBe(`Top of the 365 days to ${formatDay(addDays(LAST, -8))} · dash`)
    await page.goBack()
    await page.locator('.as-of', { hasText: `365 days up to ${formatDay(LAST)}` }).waitFor()
    await expect.poll(() => page.title()).toBe(`Top of the 365 days to ${formatDay(LAST)} · dash`)
    expect(await page.locator('#slider').getAttribute('aria-valuetext')).toContain(`${LAST}, published `)
  })

  test('keeps stories hidden that the visitor hid', async () => {
    const url = await serve()
    const { page } = await visit(url, { viewport: DESKTOP })
    const [first = '', second = ''] = await published(addDays(AS_OF, 20))
    await page.evaluate<void>(
      `localStorage.setItem('dash-hidden', ${JSON.stringify(JSON.stringify({ hidden: [first, second] }))})`,
    )
    await page.goto(`${url}/?sort=year`, { waitUntil: 'networkidle' })
    await page.locator('#slider').focus()
    for (const day of [21, 20]) await drag(page, addDays(AS_OF, day))
    await expect.poll(() => shownKeys(page)).toEqual(await published(addDays(AS_OF, 20)))
    expect(await page.locator('#column-popular .item:visible').count()).toBe(18)
    expect(await page.locator('#column-popular .hidden-count').textContent()).toBe('2 hidden Show')
  })

  test.each(['q=story', 'column=popular'])('dims a list that it cannot replay: %s', async (query) => {
    const { page } = await visit(`${await serve()}/?sort=year&${query}`, { viewport: DESKTOP })
    const before = await shownKeys(page)
    await drag(page, addDays(AS_OF, 20))
    await page.locator('#feed.unlisted').waitFor()
    const shares = await page.evaluate<string[]>(
      `[...document.querySelectorAll('.unlisted > .columns-frame, .unlisted > .column, .seal')].map((part) => getComputedStyle(part).opacity)`,
    )
    expect(shares).toEqual(['0.35', '0.35'])
    expect(await shownKeys(page)).toEqual(before)
  })

  test('keeps working if the server refuses a part of the rows', async () => {
    const { page } = await visit(`${await serve()}/?sort=year`, { viewport: DESKTOP })
    const refused = page.waitForResponse(/year\/rows/)
    await page.route('**/year/rows*', (route) => route.fulfill({ status: 503, body: '{}' }), { times: 1 })
    await page.locator('#slider').focus()
    expect((await refused).status()).toBe(503)
    await drag(page, addDays(AS_OF, 4))
    await expect.poll(() => shownKeys(page)).toEqual(await published(addDays(AS_OF, 4)))
  })
})

describe('since the last visit', () => {
  const summary = (page: Page) => page.locator('#since summary')
  const base = async (index: number): Promise<string> => {
    const { timeline } = (await workspace.year.read()).proved
    const item = timeline.at(index)
    return `${item?.seq}-${item?.manifest.sha256}`
  }
  const remember = (page: Page, stored: string): Promise<void> =>
    page.evaluate<void>(`localStorage.setItem('dash-seen', ${JSON.stringify(stored)})`)

  test('a first visit shows the changes since yesterday, as one with a damaged or unknown stored value, and remembers the newest publication', async () => {
    const url = await serve()
    const { page, problems } = await visit(url, { viewport: DESKTOP })
    expect(await summary(page).textContent()).toContain('since yesterday')
    const seen = await page.evaluate<string>(`localStorage.getItem('dash-seen')`)
    expect(JSON.parse(seen)).toEqual({ newest: await base(-1), before: null })
    for (const stored of [
      'not JSON',
      '[]',
      '{"newest":7}',
      `{"newest":"1-${'0'.repeat(64)}","before":null}`,
      '{"newest":"1-<b>","before":"x"}',
    ]) {
      await remember(page, stored)
      await page.goto(url, { waitUntil: 'networkidle' })
      expect(await summary(page).textContent()).toContain('since yesterday')
      expect(await page.title()).toBe('Trending · dash')
    }
    expect(problems).toEqual([])
  })

  test('a later visit shows the changes since the last one, counts them once in the title, and marks the Year', async () => {
    const url = await serve()
    const { page, problems } = await visit(url, { viewport: DESKTOP })
    await remember(page, JSON.stringify({ newest: await base(9), before: null }))
    await page.goto(`${url}/?sort=year`, { waitUntil: 'networkidle' })
    await summary(page)
      .getByText(`since your last visit of ${formatDay(addDays(AS_OF, 9))}`)
      .waitFor()
    const [then, now] = [await published(addDays(AS_OF, 9)), await published(LAST)]
    const top = now[0] ?? ''
    const rank = then.indexOf(top) + 1
    const mark = page.locator(`#column-popular .item[data-key="${top}"] .rose`)
    if (rank > 1) await expect.poll(() => mark.textContent()).toBe(`▲ ${rank - 1}`)
    await expect.poll(() => page.title()).toMatch(/^\(\d+\) Top of the 365 days to/)
    const [, counted] = /^\((\d+)\)/.exec(await page.title()) ?? []
    // They compare with the publication before.
    expect(await page.locator('.beyond .item .rose').count()).toBe(0)
    await picture(page, 'since-desktop')
    await summary(page).click()
    expect(await page.title()).toMatch(/^Top of the 365 days to/)
    const headings = page.locator('#since .changes').getByRole('heading')
    const texts = await headings.allTextContents()
    expect(texts.map((text) => text.replace(/^\d+ items? /, ''))).toEqual([
      'entered',
      'left',
      'moved by 10 or more',
    ])
    const sum = texts.reduce((total, text) => total + Number.parseInt(text, 10), 0)
    expect(Number(counted)).toBe(sum)
    expect((await headings.first().boundingBox())?.width).toBeGreaterThan(50)
    await page.goto(url, { waitUntil: 'networkidle' })
    await summary(page)
      .getByText(`since your last visit of ${formatDay(addDays(AS_OF, 9))}`)
      .waitFor()
    expect(await page.title()).toBe('Trending · dash')
    // A page from before the last visit, which a browser may show again, changes nothing.
    const later = JSON.stringify({ newest: `999999-${'0'.repeat(64)}`, before: await base(9) })
    await remember(page, later)
    await page.goto(url, { waitUntil: 'networkidle' })
    expect(await page.evaluate<string>(`localStorage.getItem('dash-seen')`)).toBe(later)
    expect(problems).toEqual([])
  })
})
