import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test, vi } from 'vitest'
import { fileObjects } from '../../../src/adapters/objects/objects.ts'
import { connectEvaluations } from '../../adapters/state/open-chat.ts'
import { openApp } from '../../support/api-client.ts'
import { dash, run, startDash, temporaryFolder } from '../../support/dash.ts'
import { localSource } from '../../support/local-source.ts'
import { openWorkspace } from '../../support/workspace.ts'
import { scriptedModels, startRouter } from '../../jobs/models/router-simulator.ts'
import type { RouterSimulator, SimulatorOptions } from '../../jobs/models/router-simulator.ts'

const MODELS = scriptedModels(4)
const SOLVER = MODELS[0]?.id ?? ''

interface Prepared {
  folder: string
  service: RouterSimulator
  env: Record<string, string>
}

async function prepare(
  options: Partial<SimulatorOptions> = {},
  folder = join(temporaryFolder(), 'data'),
): Promise<Prepared> {
  mkdirSync(folder, { recursive: true })
  const service = await startRouter({ models: MODELS, clock: Date.now, ...options })
  const env = { DASH_DATA_DIR: folder, OPENROUTER_BASE_URL: service.url, OPENROUTER_API_KEY: 'test-key' }
  return { folder, service, env }
}

const parsed = (stdout: string): Record<string, unknown> => JSON.parse(stdout) as Record<string, unknown>

test('an evaluation prints one line, and its model is served with the public address of the service or that of the setting, never the one of the requests', async () => {
  const { folder, service, env } = await prepare()
  const line = `^complete \\S+\\.v1: ${SOLVER} of 4 models; 8 requests, 4 models evaluated\n$`
  const stdout: unknown = expect.stringMatching(new RegExp(line))
  expect(await dash(['evaluate-models'], { env })).toEqual({ code: 0, stdout, stderr: '' })
  expect(service.breaches).toEqual([])
  expect(await run(['model', '--env'], { env })).toMatchObject({
    code: 0,
    stdout: `export OPENAI_BASE_URL=https://openrouter.ai/api/v1\nexport OPENAI_MODEL=${SOLVER}\n`,
  })
  const stored = readFileSync(join(folder, 'objects', 'free-llm', 'current'), 'utf8')
  expect(stored).not.toContain(new URL(service.url).host)
  const again = await dash(['evaluate-models', '--json'], { env })
  const unchanged = { job: 'evaluate-models', outcome: 'unchanged', requests: 0 }
  expect(parsed(again.stdout)).toMatchObject(unchanged)
  expect(service.chats).toHaveLength(8)

  const baseUrl = 'https://models.example/v1'
  const named = await run(['model', '--json'], { env: { ...env, DASH_FREE_LLM_BASE_URL: baseUrl } })
  expect(parsed(named.stdout)).toMatchObject({ seed: false, baseUrl })
})

test('an empty catalogue ends with 1, and a second evaluation at the same time with 75', async () => {
  const { env, folder } = await prepare({ models: [] })
  const ended = await dash(['evaluate-models', '--json'], { env })
  expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('no free text model') as string })
  expect(parsed(ended.stdout)).toMatchObject({ outcome: 'failed', primary: null })
  const { evaluations } = connectEvaluations(pathToFileURL(join(folder, 'state.db')).href)
  await evaluations.takeLease({ name: 'another host', process: null }, Date.now(), 600_000, () => false)
  const held = await dash(['evaluate-models', '--json'], { env: { ...env, OPENROUTER_API_KEY: '' } })
  expect(held).toMatchObject({
    code: 75,
    stderr: expect.stringContaining('another host has been evaluating models') as string,
  })
  expect(parsed(held.stdout)).toMatchObject({ outcome: 'failed', refreshMode: 'metadataOnly' })
})

test('a dry run creates no file and no folder, and reports a rejected key', async () => {
  const { env, service } = await prepare()
  const { DASH_DATA_DIR: folder = '', ...placeless } = env
  const cwd = temporaryFolder()
  const rehearse = (own: Record<string, string>) =>
    dash(['evaluate-models', '--dry-run', '--json'], { env: own, cwd })
  const planned = await rehearse(placeless)
  expect(parsed(planned.stdout)).toMatchObject({ outcome: 'unchanged', dryRun: true, requests: 8, ranked: 4 })
  expect(await rehearse(env)).toMatchObject({ code: 0 })
  expect(readdirSync(folder)).toEqual([])
  const refused = await rehearse({ ...env, OPENROUTER_API_KEY: 'wrong' })
  expect(refused).toMatchObject({ code: 78, stderr: expect.stringContaining('OPENROUTER_API_KEY') as string })
  expect(readdirSync(cwd)).toEqual([])
  expect(service.chats).toEqual([])
})

test('a stopped evaluation ends its requests at once', async () => {
  const { env, folder, service } = await prepare({ fault: () => 'hang' })
  const { end } = startDash(['evaluate-models'], { env })
  await vi.waitUntil(() => service.chats.length === 1, { interval: 10, timeout: 20_000 })
  expect(await end('SIGTERM')).toBe(143)
  const { evaluations } = connectEvaluations(pathToFileURL(join(folder, 'state.db')).href)
  const attempts = await evaluations.attemptsSince(0)
  expect(attempts.map((attempt) => attempt.end?.class)).toEqual(['abandoned'])
  expect(await evaluations.sweep(Date.now())).toBe(0)
})

test('a changed ranking is posted to the webhook as in the feed, and its failure does not change the result', async () => {
  const first = await prepare()
  const webhook = await localSource((_request, response) => response.writeHead(403).end())
  const env = {
    ...first.env,
    DASH_BASE_URL: 'http://dash.test',
    DASH_MODEL_WEBHOOK_URL: `${webhook.url}/hook/a-key`,
    DASH_MODEL_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 5).toString('base64')}`,
    DASH_MODEL_WEBHOOK_ALLOW_PRIVATE: '127.0.0.1',
  }
  await dash(['evaluate-models'], { env })
  const { service } = await prepare({ models: MODELS.slice(1) }, first.folder)
  const changed = await dash(['evaluate-models'], { env: { ...env, OPENROUTER_BASE_URL: service.url } })
  expect(changed).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^complete .*; webhook accepted 0 of 2 changes\n$/) as string,
    stderr: expect.stringContaining(`${new URL(webhook.url).host} responded with 403 (1 try)`) as string,
  })
  expect(`${changed.stdout}${changed.stderr}`).not.toContain('a-key')
  const { recommendations } = fileObjects(join(first.folder, 'objects'))
  const app = openApp({ ...(await openWorkspace()), recommendations })
  const feed = await app.request('http://dash.test/api/free-llm/changes.json')
  const { items } = (await feed.json()) as { items: unknown[] }
  expect(webhook.requests.map(({ body }) => parsed(body)['items'])).toEqual([items.slice(0, 1)])
})
