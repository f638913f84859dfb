/**
 * Makes the pictures of the documents from the demo: `docs/pictures/*.png` and the moving picture of the slider.
 *
 *     npm run pictures
 *
 * It needs Chromium (`/usr/bin/chromium`, or the path in `CHROMIUM`), ImageMagick and gifsicle.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

/** @typedef {import('playwright-core').Page} Page */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TARGET = join(ROOT, 'docs/pictures')
const SCREEN = { width: 1_280, height: 800 }

/** Largest size of all pictures together, in bytes. */
const MAX_BYTES = 2 * 1024 * 1024

/** Colours of a picture: enough for a page without photographs. */
const COLOURS = 96

/** Frames of the moving picture, hundredths of a second between them, and its width. */
const [FRAMES, DELAY, WIDTH] = [24, 30, 720]

/**
 * Path is on the demo, or, with `site`, on the site that embeds its chat.
 *
 * @type {readonly { name: string, path: string, site?: true, colorScheme?: 'dark', prepare?: (page: Page) => Promise<void> }[]}
 */
const PICTURES = [
  { name: 'home-light', path: '/' },
  { name: 'home-dark', path: '/', colorScheme: 'dark' },
  {
    name: 'ranks',
    path: '/?sort=year',
    async prepare(page) {
      const chart = page.locator('.bump img:visible')
      await chart.scrollIntoViewIfNeeded()
      await chart.evaluate((image) => /** @type {HTMLImageElement} */ (image).decode())
    },
  },
  {
    name: 'item',
    path: '/?sort=year&column=hypeReplicate',
    prepare: async (page) => page.locator('.item .rank').nth(4).click(),
  },
  { name: 'models', path: '/models' },
  {
    name: 'chat',
    path: '/chat',
    async prepare(page) {
      await page.getByRole('textbox', { name: /message|question/i }).fill('What about mapscii?')
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Copy' }).first().waitFor()
    },
  },
  {
    name: 'embedded',
    path: '/',
    site: true,
    async prepare(page) {
      await page.getByRole('button', { name: 'Ask dash' }).click()
      const chat = page.frameLocator('iframe')
      await chat.getByRole('textbox', { name: /message|question/i }).fill('What is trending?')
      await chat.getByRole('textbox', { name: /message|question/i }).press('Enter')
      await chat.getByRole('button', { name: 'Copy' }).first().waitFor()
    },
  },
]

async function main() {
  const site = await startSite()
  const demo = await startDemo(site.origin)
  site.embed(demo.url)
  const browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars'],
  })
  try {
    mkdirSync(TARGET, { recursive: true })
    for (const { name, path, site: isSite = false, colorScheme = 'light', prepare } of PICTURES) {
      const page = await (await browser.newContext({ viewport: SCREEN, colorScheme })).newPage()
      await page.goto((isSite ? site.origin : demo.url) + path, { waitUntil: 'networkidle' })
      await prepare?.(page)
      await page.waitForLoadState('networkidle')
      const file = join(TARGET, `${name}.png`)
      await page.screenshot({ path: file, animations: 'disabled' })
      execFileSync('convert', [file, '-dither', 'None', '-colors', String(COLOURS), '-strip', `PNG8:${file}`])
      await page.context().close()
    }
    await movingPicture(
      await (await browser.newContext({ viewport: { width: 1_280, height: 720 } })).newPage(),
      demo.url,
    )
  } finally {
    await browser.close()
    await demo.close()
    site.close()
  }
  report()
}

/** Starts a site of its own origin, whose page loads the chat of a server. */
async function startSite() {
  let chat = ''
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(`<!doctype html><html lang="en"><title>A site</title>
      <body style="margin: 4rem; max-width: 36rem; font: 1.1rem/1.6 sans-serif">
      <h1>The site of a club</h1>
      <p>We meet on Tuesdays and talk about what is new in free language models. Ask the button below before you come.</p>
      <p>Programs of the last meetings stand on the page of the archive.</p>
      <script src="${chat}/embed/chat.js" data-label="Ask dash" async></script></body></html>`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = Object(server.address())
  return {
    origin: `http://localhost:${port}`,
    /** @param {string} url address of the server */
    embed: (url) => void (chat = url),
    close: () => server.close(),
  }
}

/**
 * Starts the built program with the demo.
 *
 * @param {string} origin of the site that may embed its chat
 */
async function startDemo(origin) {
  const server = spawn(process.execPath, [join(ROOT, 'dist/cli/main.js'), 'serve', '--demo', '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, DASH_ALLOWED_ORIGINS: origin },
  })
  const url = await new Promise((resolve, reject) => {
    let output = ''
    server.stdout.on('data', (data) => {
      output += data
      const address = /listening on (\S+)/.exec(output)?.[1]
      if (address) resolve(address)
    })
    server.on('exit', (code) => reject(new Error(`the demo ended with ${code}`)))
  })
  return {
    url: /** @type {string} */ (url),
    close: () =>
      new Promise((resolve) => {
        server.removeAllListeners('exit').on('exit', resolve)
        server.kill('SIGTERM')
      }),
  }
}

/**
 * The slider over the days of the Year, moved a day at a time, as a GIF.
 *
 * @param {Page} page
 * @param {string} url
 */
async function movingPicture(page, url) {
  const frames = mkdtempSync(join(tmpdir(), 'dash-frames-'))
  try {
    await page.goto(`${url}/?sort=year`, { waitUntil: 'networkidle' })
    const slider = page.locator('#slider')
    await slider.focus()
    const files = []
    for (let frame = 0; frame < FRAMES; frame += 1) {
      const file = join(frames, `${String(frame).padStart(3, '0')}.png`)
      await page.screenshot({ path: file })
      files.push(file)
      // Without a `change` event the slider is still held, so that the page stays.
      await slider.evaluate((element) => {
        const input = /** @type {HTMLInputElement} */ (element)
        input.value = String(Number(input.value) - 1)
        input.dispatchEvent(new Event('input', { bubbles: true }))
      })
      await page.waitForTimeout(150)
    }
    const whole = join(frames, 'whole.gif')
    const scene = ['-delay', String(DELAY), '-loop', '0', ...files, '-resize', `${WIDTH}x`]
    execFileSync('convert', [...scene, '-dither', 'None', '-colors', '64', '-layers', 'optimize', whole])
    execFileSync('gifsicle', ['-O3', '--lossy=60', '-o', join(TARGET, 'slider.gif'), whole])
  } finally {
    rmSync(frames, { recursive: true, force: true })
  }
}

function report() {
  const names = [...PICTURES.map(({ name }) => `${name}.png`), 'slider.gif']
  const sizes = names.map((name) => ({ name, bytes: statSync(join(TARGET, name)).size }))
  const bytes = sizes.reduce((sum, each) => sum + each.bytes, 0)
  console.table(sizes)
  if (bytes > MAX_BYTES) throw new Error(`${bytes} bytes of pictures: at most ${MAX_BYTES}`)
}

await main()
