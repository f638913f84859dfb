import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { chatVariables } from '../../../support/agent.ts'
import { dash, serve, serveDemo, temporaryFolder } from '../../../support/dash.ts'
import { startProvider } from '../../../support/provider.ts'

const ask = (url: string, apiKey: string): Promise<OpenAI.ChatCompletion> =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 }).chat.completions.create({
    model: 'dash',
    messages: [{ role: 'user', content: 'What is new?' }],
  })

test('a key made beside a running server works at once, and ends at once when it is revoked', async () => {
  const dataDir = temporaryFolder()
  const provider = await startProvider()
  const env = { ...chatVariables(provider.url), DASH_V1: '1' }
  const server = await serve(['--data-dir', dataDir], { env })
  const keys = async (...args: string[]): Promise<string> => {
    const finished = await dash(['chat-key', ...args, '--data-dir', dataDir])
    expect(finished.code).toBe(0)
    return finished.stdout.trim()
  }
  const key = await keys('new', '--name', 'webui', '--per-day', '3', '--per-minute', '3')
  expect((await ask(server.url, key)).choices[0]?.message.content).toContain('Hello')
  expect(JSON.parse(await keys('list', '--json'))).toMatchObject([{ name: 'webui', usedToday: 1 }])
  const inQuery = `${server.url}/v1/chat/completions?key=${key}`
  expect((await fetch(inQuery, { method: 'POST', body: '{"model":"other"}' })).status).toBe(401)
  await keys('revoke', 'webui')
  await expect(ask(server.url, key)).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' })
  expect(await server.end('SIGTERM')).toBe(0)
  const { stdout, stderr } = server.output
  expect(stdout + stderr).toContain('/v1/chat/completions')
  expect(stdout + stderr).not.toContain(key)
  expect(provider.requests).toHaveLength(1)
}, 60_000)

test('in the demo any text is a key, and a missing key is an error', async () => {
  const { url, close } = await serveDemo({ DASH_V1: '1' })
  try {
    expect((await ask(url, 'any-text')).choices[0]?.message.content).not.toBe('')
    const body = JSON.stringify({ model: 'dash', messages: [{ role: 'user', content: 'Hi' }] })
    expect((await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })).status).toBe(401)
  } finally {
    await close()
  }
}, 120_000)
