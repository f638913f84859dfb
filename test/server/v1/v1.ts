import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { H3 } from 'h3'
import { OpenAI } from 'openai'
import { fileObjects } from '../../../src/adapters/objects/objects.ts'
import { openPassThrough } from '../../../src/adapters/provider/pass-through.ts'
import type { StoredRun } from '../../../src/domain/models/schema.ts'
import { sealRun } from '../../../src/domain/models/stored-run.ts'
import { computeFor, openComputedRequests } from '../../../src/server/computed-requests.ts'
import { v1Routes } from '../../../src/server/v1/routes.ts'
import type { V1Ports } from '../../../src/server/v1/complete.ts'
import { onTestFinished } from 'vitest'
import { listenLocally } from '../../support/api-client.ts'
import { temporaryFolder } from '../../support/dash.ts'
import { candidate, catalogueModel, evaluation, RUN_AT, sampleRun } from '../../domain/models/free-models.ts'
import { startProvider } from '../../support/provider.ts'
import type { Behaviour, ScriptedProvider } from '../../support/provider.ts'
import { LONG_MS } from '../../support/workspace.ts'

/** A key that no other text of a test contains. */
export const CALLER_KEY = 'sk-or-v1-0123456789abcdef0123456789abcdef'

const JSON_MODEL = ['tools', 'tool_choice', 'structured_outputs', 'response_format']

/** Four models, best first: two that call tools, one that writes JSON, and one whose tool use was disproven. */
export const V1_RUN = sampleRun({
  candidates: [
    candidate('maker/first:free'),
    candidate('maker/second:free', { evaluation: evaluation(RUN_AT, [300, 300, 100]) }),
    candidate('maker/json:free', {
      model: catalogueModel('maker/json:free', { supportedParameters: JSON_MODEL }),
      evaluation: evaluation(RUN_AT, [200, 0, 0]),
    }),
    candidate('maker/talker:free', { evaluation: evaluation(RUN_AT, [0, 100, 0], false) }),
  ],
})

/** A data folder with a stored ranking of these models. */
export async function folderWithRanking(models: readonly string[]): Promise<string> {
  const folder = temporaryFolder()
  const run = sampleRun({ now: Date.now(), candidates: models.map((id) => candidate(id)) })
  mkdirSync(join(folder, 'objects'))
  await fileObjects(join(folder, 'objects')).recommendations.put(run.rankingVersion, sealRun(run))
  return folder
}

export interface V1Server {
  url: string
  port: number
  upstream: ScriptedProvider
  /** Every line logged so far, as JSON. */
  lines: string[]
  client: OpenAI
  /** Sends a chat completion. */
  post(body: unknown, headers?: Record<string, string>, query?: string): Promise<Response>
}

export interface V1Options {
  ports?: Partial<V1Ports>
  firstEventMs?: number
  idleMs?: number
  afterReasonMs?: number
  run?: StoredRun | null
  /** API base of another routing service than the scripted one. */
  base?: string
}

/** `/v1` over real sockets, with a scripted routing service. */
export async function startV1(options: V1Options = {}): Promise<V1Server> {
  const { firstEventMs = LONG_MS, idleMs = LONG_MS, afterReasonMs = LONG_MS, run = V1_RUN } = options
  const upstream = await startProvider()
  const clock = Date.now
  const { base = upstream.url } = options
  const identity = { referer: 'http://dash.test', userAgent: 'dash/test' }
  const passThrough = openPassThrough({ base, ...identity, firstEventMs, idleMs, afterReasonMs, clock })
  onTestFinished(() => passThrough.close())
  const lines: string[] = []
  const write = (fields: Record<string, unknown>, message: string): void =>
    void lines.push(JSON.stringify({ ...fields, err: String(fields['err']), message }))
  const log = { info: write, warn: write, error: write }
  const app = new H3({ silent: true })
  const ports = { passThrough, trustedProxies: [], turnMs: LONG_MS, clock }
  const compute = computeFor(openComputedRequests(), [])
  const served = { run: run ?? V1_RUN, seed: run === null, storeAvailable: true }
  for (const route of v1Routes({ ...ports, ...options.ports }, () => Promise.resolve(served), compute))
    app.all(route.path, (event) => route.handle(event, log))
  const { url, port } = await listenLocally(app, { log })
  return {
    url,
    port,
    upstream,
    lines,
    client: new OpenAI({ baseURL: `${url}/v1`, apiKey: CALLER_KEY, maxRetries: 0 }),
    post: (body, headers = {}, query = '') =>
      fetch(`${url}/v1/chat/completions${query}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${CALLER_KEY}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
  }
}

/** A chat completion as the routing service sends it whole. */
export const wholeCompletion = (message: object, model = 'maker/first:free'): string =>
  JSON.stringify({
    id: 'gen-1',
    object: 'chat.completion',
    created: 1_780_000_000,
    model,
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', ...message } }],
    usage: { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 },
  })

export const json = (body: string, status = 200, headers: Record<string, string> = {}): Behaviour => ({
  response: { status, type: 'application/json', body, headers },
})

export const errorBody = (code: number, message: string, metadata?: object): string =>
  JSON.stringify({ error: { code, message, metadata } })
