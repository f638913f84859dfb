import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type axe from 'axe-core'
import { chromium } from 'playwright-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, onTestFinished } from 'vitest'

const CHROMIUM = '/usr/bin/chromium'

/** Where pictures of the pages are kept: named by the run, else beside the tests. */
const PICTURES = process.env['DASH_TEST_PICTURES'] ?? fileURLToPath(new URL('output', import.meta.url))

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * Replaces Playwright's own list: what disturbs tests of pages, and the popups of the address bar, for which every context
 * would start two more processes.
 */
const DISABLED_FEATURES = [
  'AimEnabled',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxPopup',
]

let browser: Browser | null = null

/** The headless browser of a test file, without background requests. */
async function openBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is not installed`)
  browser ??= await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--disable-background-networking',
      '--disable-sync',
      `--disable-features=${DISABLED_FEATURES.join()}`,
    ],
  })
  return browser
}

afterAll(() => browser?.close())

/** Widths the page is looked at. */
export const NARROW = { width: 375, height: 800 }
export const WIDE = { width: 1440, height: 900 }

/** A day so many days ago, which the demo has published unless it is its gap. */
export const dayBefore = (daysAgo: number): string =>
  new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10)

/** The views of a demo, with their paths. */
export const VIEWS: readonly (readonly [name: string, path: string])[] = [
  ['home', '/'],
  ['year', '/?sort=year'],
  ['since', '/since'],
  ['item', '/item?key=hn-26296339'],
  ['search', '/search?q=rust&from=2020-01-01&sort=points'],
  ['models', '/models'],
  ['status', '/status'],
  ['chat', '/chat'],
  ['comparison', `/?day=${dayBefore(7)}&withDay=${dayBefore(3)}`],
  ['missed', `/?since=${dayBefore(14)}`],
  ['docs', '/docs'],
  ['guide', '/docs/ranking'],
]

/** Both widths and both colours, for states of pages; views.test.ts looks at every view in all combinations. */
export const SCREENS = [
  { name: 'wide-light', viewport: WIDE, colorScheme: 'light' },
  { name: 'narrow-dark', viewport: NARROW, colorScheme: 'dark' },
] as const

export interface Visit {
  page: Page
  /** Console errors and warnings, policy violations and failed requests. */
  problems: string[]
  /** Every requested host. */
  hosts: Set<string>
}

/** Opens a page and records every console error, policy violation, failed request and requested host. */
export async function visit(url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await (await openBrowser()).newContext({ viewport: NARROW, ...options })
  const page = await context.newPage()
  onTestFinished(async () => {
    // A request on its way through a test's handler ends with the page.
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await context.close()
  })
  const problems: string[] = []
  const hosts = new Set<string>()
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) hosts.add(new URL(request.url()).host)
  })
  page.on('requestfailed', (request) => {
    // A request aborted by navigation is not a failure.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED') problems.push(`failed: ${request.url()}`)
  })
  await page.goto(url, { waitUntil: 'networkidle' })
  // On a busy machine, the network can be idle before the scripts have run.
  await page.waitForLoadState()
  return { page, problems, hosts }
}

/** Options of axe-core: all of its rules, with that of WCAG 2.2 for the size of targets. */
const AXE_OPTIONS: axe.RunOptions = {
  resultTypes: ['violations'],
  rules: { 'target-size': { enabled: true } },
}

/** Findings of axe-core on a page, one line each. @param options of axe-core; default: all rules */
export async function accessibilityFindings(page: Page, options = AXE_OPTIONS): Promise<string[]> {
  await page.evaluate(`globalThis.axe || (() => { ${AXE} })()`)
  const { violations } = await page.evaluate<axe.AxeResults>(`axe.run(${JSON.stringify(options)})`)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  )
}

/** True when the page is no wider than the screen. */
export function fitsScreen(page: Page): Promise<boolean> {
  return page.locator('html').evaluate((html) => html.scrollWidth <= html.clientWidth)
}

/**
 * The violated rules of every page: accessible, no wider than the screen, without errors, and without requests to other
 * hosts.
 *
 * @param status expected status of the page, which a browser logs as an error
 */
export async function flawsOf({ page, problems, hosts }: Visit, status = 200): Promise<string[]> {
  const { host } = new URL(page.url())
  return [
    ...(await accessibilityFindings(page)),
    ...((await fitsScreen(page)) ? [] : ['it is wider than the screen']),
    ...problems.filter((problem) => !problem.includes(`status of ${status}`)),
    ...[...hosts].filter((each) => each !== host).map((each) => `it asks ${each}`),
  ]
}

/** Saves a screenshot of the whole page, or of its visible part. */
export async function picture(page: Page, name: string, fullPage = true): Promise<void> {
  mkdirSync(PICTURES, { recursive: true })
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage })
}
