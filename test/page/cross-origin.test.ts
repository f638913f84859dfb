import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { serve } from '../support/dash.ts'
import { startProvider } from '../support/synthetic-provider.ts'
import { CALLER_KEY, folderWithRanking } from '../support/v1.ts'
import { visit } from './browser.ts'

/** An empty page on an origin of its own. */
async function startSite(): Promise<string> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end('<!doctype html><title>A site</title><link rel="icon" href="data:,">')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://localhost:${(server.address() as AddressInfo).port}`
}

const COMPLETION = JSON.stringify({
  model: 'auto',
  stream: true,
  messages: [{ role: 'user', content: 'Hello?' }],
})

test('a page of another origin, even of an allowed one, can neither use a key at /v1 nor read an answer', async () => {
  const upstream = await startProvider()
  const origin = await startSite()
  const folder = await folderWithRanking(['maker/first:free'])
  const env = { DASH_V1: '1', OPENROUTER_BASE_URL: upstream.url, DASH_ALLOWED_ORIGINS: origin }
  const { url } = await serve(['--data-dir', folder], { env })
  const completions = `${url}/v1/chat/completions`
  const authorization = `Bearer ${CALLER_KEY}`
  const { page } = await visit(origin)
  const outcome = (target: string, init: RequestInit): Promise<string> =>
    page.evaluate(
      ([to, options]) =>
        fetch(to, options).then(
          ({ type, status }) => `${type} ${status}`,
          (error: unknown) => String(error),
        ),
      [target, init] as const,
    )
  const refused = 'TypeError: Failed to fetch'
  expect(await outcome(`${url}/v1/models`, {})).toBe(refused)
  expect(await outcome(completions, { method: 'POST', headers: { authorization }, body: COMPLETION })).toBe(
    refused,
  )
  // Sent without asking first, as a form would be; it carries no key, and its answer stays unreadable.
  const simple = { method: 'POST', mode: 'no-cors', body: COMPLETION } as const
  expect(await outcome(completions, simple)).toBe('opaque 0')
  expect(upstream.requests).toEqual([])

  const allowed = await fetch(completions, { method: 'POST', headers: { authorization }, body: COMPLETION })
  expect([allowed.status, upstream.requests.length]).toEqual([200, 1])
})
