import { describe, expect, onTestFinished, test } from 'vitest'
import { openAutoModel } from '../../../src/adapters/provider/auto-model.ts'
import type { AutoModelOptions } from '../../../src/adapters/provider/auto-model.ts'
import type { ChatModel } from '../../../src/domain/ports.ts'
import type { ModelCall, ModelEvent } from '../../../src/domain/agent/model-call.ts'
import { sealRun } from '../../../src/domain/models/stored-run.ts'
import { candidate, catalogueModel, evaluation, RUN_AT, sampleRun } from '../../support/free-models.ts'
import type { Behaviour } from '../../support/provider-wire.ts'
import { startProvider } from '../../support/synthetic-provider.ts'
import type { SyntheticProvider } from '../../support/synthetic-provider.ts'

const LIVING = new AbortController().signal
const CALL: ModelCall = {
  instructions: 'You answer questions about a feed.',
  input: [{ role: 'user', content: 'What is new?' }],
  rounds: [],
  tools: [],
  maxOutputTokens: 1_000,
}

/** Three models that call tools, the second without reasoning, and one model that calls no tools. */
const RUN = sampleRun({
  candidates: [
    candidate('maker/first:free'),
    candidate('maker/second:free', {
      model: catalogueModel('maker/second:free', { supportedParameters: ['tools', 'tool_choice'] }),
      evaluation: evaluation(RUN_AT, [300, 300, 100]),
    }),
    candidate('maker/talker:free', { evaluation: evaluation(RUN_AT, [0, 300, 100], false) }),
    candidate('maker/third:free', { evaluation: evaluation(RUN_AT, [200, 0, 0]) }),
  ],
})

const limited = (message: string, metadata?: object): Behaviour => {
  const body = JSON.stringify({ error: { code: 429, message, metadata } })
  return { response: { status: 429, type: 'application/json', body } }
}

const OWN_LIMIT = limited('SECRET', { limit_source: 'upstream_provider_shared_pool' })
const ACCOUNT_LIMIT = limited('Rate limit exceeded: free-models-per-day. ')

interface Bench {
  provider: SyntheticProvider
  model: ChatModel
  /** Requests that were counted, with the limit they were counted against. */
  counted: { model: string; limit: number }[]
  wait: (ms: number) => void
}

async function bench(changes: Partial<AutoModelOptions> & { room?: number } = {}): Promise<Bench> {
  const provider = await startProvider()
  const counted: Bench['counted'] = []
  let now = RUN_AT
  const model = openAutoModel({
    base: provider.url,
    key: 'test-key',
    referer: 'http://127.0.0.1:3000',
    userAgent: 'dash/test',
    recommendations: { current: () => Promise.resolve(sealRun(RUN)) },
    allowance: {
      countChatRequest(id, _sentAt, limit) {
        if (counted.length >= (changes.room ?? 40)) return Promise.resolve(false)
        counted.push({ model: id, limit })
        return Promise.resolve(true)
      },
    },
    requestShare: 200_000,
    clock: () => now,
    firstEventMs: 5_000,
    idleMs: 5_000,
    ...changes,
  })
  onTestFinished(() => model.close())
  return { provider, model, counted, wait: (ms) => void (now += ms) }
}

async function collectEvents(model: ChatModel): Promise<ModelEvent[]> {
  const events: ModelEvent[] = []
  for await (const event of model.ask(CALL, LIVING)) events.push(event)
  return events
}

const requestedModels = ({ provider }: Bench): unknown[] => provider.requests.map(({ body }) => body['model'])

test('the chat uses the recommended model, at no cost and without stored data', async () => {
  const at = await bench()
  expect(await at.model.name()).toBe('maker/first:free')
  expect((await collectEvents(at.model)).at(-1)).toMatchObject({ kind: 'end', model: 'maker/first:free' })
  const [request] = at.provider.requests
  expect(request?.path).toBe('/v1/chat/completions')
  expect(request?.headers).toMatchObject({
    authorization: 'Bearer test-key',
    'http-referer': 'http://127.0.0.1:3000',
    'x-openrouter-title': 'dash',
  })
  expect(request?.body).toMatchObject({
    model: 'maker/first:free',
    provider: { max_price: { prompt: 0, completion: 0 }, data_collection: 'deny' },
    reasoning: { effort: 'low' },
    max_tokens: 3_000,
  })
  expect(request?.body).not.toHaveProperty('models')
})

test('a request is counted before it is sent, against the limit that the service reports for the key', async () => {
  const at = await bench()
  at.provider.key = { data: { free_model_daily_requests: { limit: 1_000, used: 3 } } }
  await collectEvents(at.model)
  await collectEvents(at.model)
  expect(at.provider.keyRequests).toBe(1)
  at.wait(60_000)
  at.provider.key = { data: {} }
  await collectEvents(at.model)
  expect(at.provider.keyRequests).toBe(2)
  expect(at.counted).toEqual([1_000, 1_000, 50].map((limit) => ({ model: 'maker/first:free', limit })))
})

test('the last known limit applies while the service reports no other', async () => {
  const at = await bench()
  at.provider.key = { data: { free_model_daily_requests: { limit: 1_000, used: 3 } } }
  await collectEvents(at.model)
  at.wait(60_000)
  at.provider.keyStatus = 503
  await collectEvents(at.model)
  expect(at.provider.keyRequests).toBe(2)
  expect(at.counted.map(({ limit }) => limit)).toEqual([1_000, 1_000])
})

test('nothing is sent if the day has no request left', async () => {
  const at = await bench({ room: 1 })
  await collectEvents(at.model)
  expect(await collectEvents(at.model)).toEqual([
    { kind: 'failed', error: 'upstream_error', code: 'http_429', usage: null, dispatched: false },
  ])
  expect(at.provider.requests.length).toBe(1)
})

describe('a rate limit of the model', () => {
  test('a rate limit before the first text moves the request to the next model that can call tools', async () => {
    const at = await bench()
    at.provider.behave(OWN_LIMIT, 'maker/first:free')
    at.provider.behave(OWN_LIMIT, 'maker/second:free')
    expect((await collectEvents(at.model)).at(-1)).toMatchObject({ kind: 'end', model: 'maker/third:free' })
    expect(requestedModels(at)).toEqual(['maker/first:free', 'maker/second:free', 'maker/third:free'])
    expect(at.counted.length).toBe(3)
    const second = at.provider.requests[1]?.body
    expect(second).toMatchObject({ max_tokens: 1_000 })
    expect(second).not.toHaveProperty('reasoning')
  })

  test('a rate limit is remembered until it ends', async () => {
    const at = await bench()
    at.provider.behave(OWN_LIMIT, 'maker/first:free')
    await collectEvents(at.model)
    expect(await at.model.name()).toBe('maker/second:free')
    await collectEvents(at.model)
    at.wait(60_000)
    expect(await at.model.name()).toBe('maker/first:free')
    expect(requestedModels(at)).toEqual(['maker/first:free', 'maker/second:free', 'maker/second:free'])
  })

  test('a rate limit inside a stream counts too', async () => {
    const at = await bench()
    const body = 'data: {"error":{"code":429,"message":"Provider returned error"}}\n\n'
    at.provider.behave({ response: { status: 200, type: 'text/event-stream', body } }, 'maker/first:free')
    expect((await collectEvents(at.model)).at(-1)).toMatchObject({ kind: 'end', model: 'maker/second:free' })
  })

  test('a rate limit after the first text is a failure like any other', async () => {
    const at = await bench()
    const text = JSON.stringify({ choices: [{ index: 0, delta: { content: 'Well' }, finish_reason: null }] })
    const body = `data: ${text}\n\ndata: {"error":{"code":429,"message":"Provider returned error"}}\n\n`
    at.provider.behave({ response: { status: 200, type: 'text/event-stream', body } }, 'maker/first:free')
    expect(await collectEvents(at.model)).toEqual([
      { kind: 'text', text: 'Well' },
      { kind: 'failed', error: 'upstream_error', code: 'failed', usage: null, dispatched: true },
    ])
    expect(requestedModels(at)).toEqual(['maker/first:free'])
  })

  test('a rate limit of every model is reported, and costs no more requests until it ends', async () => {
    const at = await bench()
    at.provider.behave(OWN_LIMIT)
    const expected = {
      kind: 'failed',
      error: 'upstream_error',
      code: 'http_429',
      usage: null,
      dispatched: false,
    }
    expect(await collectEvents(at.model)).toEqual([expected])
    expect(await collectEvents(at.model)).toEqual([expected])
    expect(requestedModels(at).length).toBe(3)
    expect(await at.model.name()).toBe('maker/first:free')
  })

  test('a rate limit of three models ends the request, for any number of further models', async () => {
    const models = ['a', 'b', 'c', 'd'].map((name) => candidate(`maker/${name}:free`))
    const current = () => Promise.resolve(sealRun(sampleRun({ candidates: models })))
    const at = await bench({ recommendations: { current } })
    at.provider.behave(OWN_LIMIT)
    await collectEvents(at.model)
    expect(requestedModels(at)).toHaveLength(3)
    await collectEvents(at.model)
    expect(requestedModels(at)).toHaveLength(4)
  })
})

test.each([
  ['an account that is used up', ACCOUNT_LIMIT, 'http_429'],
  ['a provider that is down', 'failed', 'failed'],
  ['an answer that is cut', 'clean end without terminal', 'truncated'],
] as const)('no other model is tried because of %s', async (_what, mode, code) => {
  const at = await bench()
  at.provider.behave(mode)
  expect((await collectEvents(at.model)).at(-1)).toMatchObject({ kind: 'failed', code })
  expect(at.provider.requests.length).toBe(1)
})

describe('without a recommendation', () => {
  test('no model is used without a recommendation', async () => {
    const at = await bench({ recommendations: { current: () => Promise.resolve(null) } })
    expect(await at.model.name()).toBe('')
    expect(await collectEvents(at.model)).toEqual([
      { kind: 'failed', error: 'upstream_error', code: 'http_404', usage: null, dispatched: false },
    ])
    expect(at.counted).toEqual([])
    expect(at.provider.requests).toEqual([])
  })

  test('no model is used with a damaged recommendation', async () => {
    const at = await bench({ recommendations: { current: () => Promise.resolve(Buffer.from('{}')) } })
    await expect(at.model.name()).rejects.toMatchObject({ code: 'storage_damaged' })
    await expect(collectEvents(at.model)).rejects.toMatchObject({ code: 'storage_damaged' })
    expect(at.provider.requests).toEqual([])
  })
})

test('the chat uses a new recommendation soon after it is stored', async () => {
  let run = RUN
  let reads = 0
  const current = (): Promise<Uint8Array> => {
    reads += 1
    return Promise.resolve(sealRun(run))
  }
  const at = await bench({ recommendations: { current } })
  await Promise.all([at.model.name(), at.model.name(), collectEvents(at.model)])
  expect(reads).toBe(1)
  run = sampleRun({ candidates: [candidate('maker/newer:free')] })
  at.wait(10_000)
  expect(await at.model.name()).toBe('maker/newer:free')
})

test('the store receives the turn of a request and the daily share of its address', async () => {
  const expected: unknown[] = []
  const at = await bench({
    allowance: {
      countChatRequest(_model, _sentAt, _limit, turn) {
        expected.push(turn)
        return Promise.resolve(true)
      },
    },
  })
  at.provider.key = { data: { free_model_daily_requests: { limit: 1_000, used: 3 } } }
  for await (const event of at.model.ask(CALL, LIVING, 'turn-1')) if (event.kind === 'end') break
  expect(expected).toEqual([{ turn: 'turn-1', perAddress: 200 }])
})

test('the requests of a day are known at once, and a new limit is loaded in the background', async () => {
  const at = await bench()
  at.provider.key = { data: { free_model_daily_requests: { limit: 50, used: 3 } } }
  expect(await at.model.requestsPerDay?.()).toBe(50)
  at.provider.key = { data: { free_model_daily_requests: { limit: 1_000, used: 3 } } }
  at.wait(60_000)
  expect(await at.model.requestsPerDay?.()).toBe(50)
  await collectEvents(at.model)
  expect(await at.model.requestsPerDay?.()).toBe(1_000)
})
