import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { dayOf } from '../../src/domain/time.ts'
import { dash, serve, temporaryFolder } from '../support/dash.ts'
import { startProvider } from '../support/provider.ts'
import type { Behaviour, ModeName, ScriptedProvider } from '../support/provider.ts'
import type { RunningProgram } from '../support/dash.ts'
import { storiesOf } from '../support/signals.ts'
import { visit } from './browser.ts'
import type { Visit } from './browser.ts'

/** A server with a feed of two items and a chat on the model of a provider, with no pause between turns. */
export async function serveChat(
  providerUrl: string,
  env: Record<string, string> = {},
): Promise<RunningProgram> {
  const at = ['--data-dir', temporaryFolder()]
  const publishedAt = new Date(Date.now() - 3_600_000).toISOString()
  const stdin = storiesOf(dayOf(Date.now()), 2, { publishedAt })
  // An import takes a snapshot at its end.
  const { code, stderr } = await dash(['import', 'signals', '-', ...at], { stdin })
  if (code !== 0) throw new Error(stderr)
  return serve(at, {
    env: {
      DASH_SESSION_SECRET: 'a secret of thirty-two bytes, or more',
      OPENAI_BASE_URL: providerUrl,
      DASH_CHAT_MODEL: 'test-model',
      DASH_CHAT_MIN_GAP_MS: '0',
      ...env,
    },
  })
}

/** Opens a page, and the chat on it. */
export async function openChat(url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const opened = await visit(url, options)
  await opened.page.getByRole('link', { name: 'Ask', exact: true }).click()
  await opened.page.getByRole('dialog', { name: 'Chat' }).waitFor()
  return opened
}

export interface OpenedChat extends Visit, Pick<RunningProgram, 'url' | 'child'> {
  provider: ScriptedProvider
}

/** Opens the chat of a server on the model of a scripted provider, by default one that says what the test makes it say. */
export async function startChat({
  behaviour = 'silence after headers',
  env = {},
  ...options
}: BrowserContextOptions & {
  behaviour?: ModeName | Behaviour
  env?: Record<string, string>
} = {}): Promise<OpenedChat> {
  const provider = await startProvider(behaviour)
  const { url, child } = await serveChat(provider.url, env)
  return { ...(await openChat(url, options)), provider, url, child }
}

/** The same, in the middle of an answer that has these words so far. */
export async function startAnswering(
  words: string,
  options: BrowserContextOptions = {},
): Promise<OpenedChat> {
  const opened = await startChat(options)
  await ask(opened.page, 'Tell me', false)
  await opened.provider.arrived(1)
  opened.provider.say(words)
  await opened.page.locator('.answer', { hasText: words }).waitFor()
  return opened
}

/** Sends a message and, by default, waits until its turn ends. */
export async function ask(page: Page, text: string, whole = true): Promise<void> {
  const turns = await page.locator('.turn').count()
  await page.getByLabel('Message').fill(text)
  await page.getByLabel('Message').press('Enter')
  if (whole) await page.locator('.turn .actions', { hasText: 'Retry' }).nth(0).waitFor()
  if (whole) await page.locator('.chat-log[aria-busy="false"] .turn').nth(turns).waitFor()
}

export const status = (page: Page): Locator => page.locator('#chat-status')
export const answers = (page: Page): Locator => page.locator('.turn .answer')
export const troubles = (page: Page): Locator => page.locator('.turn .trouble')
