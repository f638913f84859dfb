import { expect, test } from 'vitest'
import { localSource } from '../support/local-source.ts'
import { startProvider } from '../support/provider.ts'
import { NARROW, picture, accessibilityFindings, visit } from './browser.ts'
import { ask, openChat, serveChat, status, troubles } from './chat-server.ts'
import { startChallenge } from './stand-in-challenge.ts'
import type { StandInChallenge } from './stand-in-challenge.ts'

async function serveVerified(challenge: StandInChallenge, env: Record<string, string> = {}): Promise<string> {
  const provider = await startProvider()
  const { url } = await serveChat(provider.url, {
    DASH_VERIFICATION_SITE_KEY: 'site',
    DASH_VERIFICATION_SECRET: 'hidden',
    DASH_VERIFICATION_URL: challenge.verifyUrl,
    DASH_VERIFICATION_WIDGET_URL: challenge.widgetUrl,
    ...env,
  })
  return url
}

test('the challenge is shown before the first turn, which can be stopped meanwhile, and its token starts the session', async () => {
  const challenge = await startChallenge()
  const url = await serveVerified(challenge)
  const before = await visit(url)
  expect([...before.hosts]).toEqual([new URL(url).host])
  const { page, problems, hosts } = await openChat(url, { viewport: NARROW })
  const human = page.getByRole('button', { name: 'I am human' })
  await human.waitFor()
  expect(await status(page).textContent()).toContain('requires human verification')
  await picture(page, 'chat-verification', false)
  expect(await accessibilityFindings(page)).toEqual([])
  await ask(page, 'Hello?', false)
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.locator('.trouble', { hasText: 'Stopped.' }).waitFor()
  expect(challenge.checked).toEqual([])
  await human.click()
  await page.getByRole('button', { name: 'Retry' }).click()
  await page.locator('.answer', { hasText: 'Hello' }).waitFor()
  expect(await page.locator('.question').allTextContents()).toEqual(['You: Hello?'])
  expect(challenge.checked).toEqual(['site-widget-1'])
  await expect.poll(() => status(page).textContent()).toBe('')
  expect(await page.locator('#chat-human').isVisible()).toBe(false)
  await ask(page, 'Again')
  expect(challenge.checked.length).toBe(1)
  // A new conversation requires a new verification.
  await page.getByRole('button', { name: 'New conversation' }).click()
  await human.click()
  await ask(page, 'Hello again?')
  expect(challenge.checked).toEqual(['site-widget-1', 'site-widget-2'])
  // axe-core tries to inspect frames of other hosts, which the browser logs.
  expect(problems.filter((problem) => !problem.includes('postMessage'))).toEqual([])
  expect([...hosts].sort()).toEqual([new URL(url).host, new URL(challenge.widgetUrl).host].sort())
})

test('the policy names the host of the challenge only while verification is on', async () => {
  const policyOf = async (url: string): Promise<string> =>
    (await fetch(url)).headers.get('content-security-policy') ?? ''
  const challenge = await startChallenge()
  const { origin } = new URL(challenge.widgetUrl)
  const policy = await policyOf(await serveVerified(challenge))
  expect(policy).toContain(`script-src 'self' ${origin};`)
  expect(policy).toContain(`frame-src ${origin}`)
  expect(policy).toContain("connect-src 'self';")
  const { url } = await serveChat(challenge.verifyUrl, { DASH_VERIFICATION_WIDGET_URL: challenge.widgetUrl })
  expect(await policyOf(url)).not.toContain('127.0.0.1')
  expect(await policyOf(url)).not.toContain('frame-src')
})

test('a token that expired, failed or was refused is requested again, and the question stays', async () => {
  const challenge = await startChallenge()
  const url = await serveVerified(challenge)
  const { page } = await openChat(url)
  await page.getByRole('button', { name: 'I am human' }).click()
  await expect.poll(() => status(page).textContent()).toBe('Verified.')
  await page.getByRole('button', { name: 'expire' }).click()
  await expect.poll(() => status(page).textContent()).toContain('has expired')
  await page.getByRole('button', { name: 'fail' }).click()
  await expect.poll(() => status(page).textContent()).toContain('failed')
  await page.getByRole('button', { name: 'Try the verification again' }).click()
  challenge.passes = false
  await ask(page, 'Hello?', false)
  await page.getByRole('button', { name: 'I am human' }).click()
  await page.locator('.trouble', { hasText: 'The verification failed.' }).waitFor()
  expect(challenge.checked).toEqual(['site-widget-2'])
  challenge.passes = true
  await page.getByRole('button', { name: 'I am human' }).click()
  await page.getByRole('button', { name: 'Retry' }).click()
  await page.locator('.answer', { hasText: 'Hello' }).waitFor()
  expect(challenge.checked).toEqual(['site-widget-2', 'site-widget-3'])
  expect(await page.locator('.question').textContent()).toBe('You: Hello?')
})

test('a challenge that cannot be loaded shows an error and can be retried', async () => {
  const challenge = await startChallenge()
  const url = await serveVerified(challenge, { DASH_VERIFICATION_WIDGET_URL: 'http://127.0.0.1:9/api.js' })
  const { page } = await openChat(url)
  await expect.poll(() => status(page).textContent()).toContain('could not be loaded from 127.0.0.1:9')
  expect(await page.getByRole('button', { name: 'Try the verification again' }).isVisible()).toBe(true)
  expect(await troubles(page).count()).toBe(0)
})

test('a turn can be stopped while the challenge is loading', async () => {
  const challenge = await startChallenge()
  const { url: silent } = await localSource(() => undefined)
  const { page } = await openChat(await serveVerified(challenge, { DASH_VERIFICATION_WIDGET_URL: silent }))
  await ask(page, 'Hello?', false)
  await page.getByRole('button', { name: 'Stop' }).click()
  await expect.poll(() => troubles(page).allTextContents()).toEqual(['Stopped.'])
})
