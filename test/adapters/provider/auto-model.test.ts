import { expect, onTestFinished, test, vi } from 'vitest'
import { openAutoModel } from '../../../src/adapters/provider/auto-model.ts'
import type { AutoModelOptions } from '../../../src/adapters/provider/auto-model.ts'
import { sealRun } from '../../../src/domain/models/stored-run.ts'
import { candidate, catalogueModel, evaluation, RUN_AT, sampleRun } from '../../domain/models/free-models.ts'
import { CALL, collectEvents, NEVER_ABORTED } from './model-turns.ts'
import { MODES, startProvider } from '../../support/provider.ts'
import type { Behaviour, ScriptedProvider } from '../../support/provider.ts'

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

const recommending = (...candidates: ReturnType<typeof candidate>[]): Partial<AutoModelOptions> => {
  const current = () => Promise.resolve(sealRun(sampleRun({ candidates })))
  return { recommendations: { current } }
}

const LIST = ['maker/first:free', 'maker/second:free', 'maker/third:free']

const refused = (status: number, message: string): Behaviour => ({
  response: { status, type: 'application/json', body: JSON.stringify({ error: { code: status, message } }) },
})

/** The end of a round whose request was not sent. */
const unsent = (code: string): object => {
  const failure = { kind: 'failed', error: 'upstream_error', code }
  return { ...failure, usage: null, dispatched: false }
}

let waitedMs = 0
const now = performance.now.bind(performance)
vi.spyOn(performance, 'now').mockImplementation(() => now() + waitedMs)

async function bench(changes: Partial<AutoModelOptions> & { room?: number } = {}) {
  const provider = await startProvider()
  /** Requests that were counted, with the limit they were counted against, their turn and the share of its address. */
  const counted: { model: string; limit: number; turn: unknown }[] = []
  const model = openAutoModel({
    base: provider.url,
    key: 'test-key',
    referer: 'http://127.0.0.1:3000',
    userAgent: 'dash/test',
    recommendations: { current: () => Promise.resolve(sealRun(RUN)) },
    allowance: {
      countChatRequest(id, _sentAt, limit, turn) {
        if (counted.length >= (changes.room ?? 40)) return Promise.resolve(false)
        counted.push({ model: id, limit, turn })
        return Promise.resolve(true)
      },
    },
    requestShare: 200_000,
    clock: () => RUN_AT + waitedMs,
    firstEventMs: 5_000,
    idleMs: 5_000,
    ...changes,
  })
  onTestFinished(() => model.close())
  return { provider, model, counted, wait: (ms: number) => void (waitedMs += ms) }
}

const requestedModels = ({ provider }: { provider: ScriptedProvider }): unknown[] =>
  provider.requests.map(({ body }) => body['models'])

test('the chat uses the recommended models that can call tools, at no cost and without stored data', async () => {
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
    models: LIST,
    store: false,
    provider: { max_price: { prompt: 0, completion: 0 }, data_collection: 'deny' },
    reasoning: { effort: 'low' },
    max_tokens: 3_000,
  })
  expect(request?.body).not.toHaveProperty('model')
})

/** The service's response for a key with a limit of requests a day. */
const keyOf = (limit: number): object => ({ data: { free_model_daily_requests: { limit, used: 3 } } })

test('a request is counted before it is sent, against the limit that the service reports for the key, or the last known one', async () => {
  const at = await bench()
  at.provider.key = keyOf(1_000)
  for await (const event of at.model.ask(CALL, NEVER_ABORTED, 'turn-1')) if (event.kind === 'end') break
  await collectEvents(at.model)
  expect(at.provider.keyRequests).toBe(1)
  at.provider.keyStatus = 503
  at.wait(60_000)
  await collectEvents(at.model)
  expect(at.provider.keyRequests).toBe(2)
  Object.assign(at.provider, { keyStatus: 200, key: { data: {} } })
  at.wait(60_000)
  await collectEvents(at.model)
  expect(at.counted.map(({ model, limit }) => [model, limit])).toEqual(
    [1_000, 1_000, 1_000, 50].map((limit) => ['maker/first:free', limit]),
  )
  expect(at.counted[0]?.turn).toEqual({ turn: 'turn-1', perAddress: 200 })
})

test('the list has at most three ids, and none but those of free models', async () => {
  const ids = ['a:free', 'paid', 'b:free', 'c:free', 'd:free'].map((name) => `maker/${name}`)
  const at = await bench(recommending(...ids.map((id) => candidate(id))))
  await collectEvents(at.model)
  expect(requestedModels(at)).toEqual([['maker/a:free', 'maker/b:free', 'maker/c:free']])
})

test('a request has limits of reasoning only if one of its models reasons', async () => {
  const model = catalogueModel('maker/plain:free', { supportedParameters: ['tools', 'tool_choice'] })
  const at = await bench(recommending(candidate('maker/plain:free', { model })))
  await collectEvents(at.model)
  expect(at.provider.requests[0]?.body).toMatchObject({ model: 'maker/plain:free', max_tokens: 1_000 })
  expect(at.provider.requests[0]?.body).not.toHaveProperty('reasoning')
})

test.each([
  ['another model of the list', 'maker/second:free', 'maker/second:free'],
  ['no model of the list', 'maker/other:free', null],
])('the answer is by the model that the service names: %s', async (_what, named, expected) => {
  const at = await bench()
  at.provider.behave({ ...MODES.answer, model: named })
  expect((await collectEvents(at.model)).at(-1)).toMatchObject({ kind: 'end', model: expected })
  expect(await at.model.name()).toBe('maker/first:free')
})

test('a declined request that names ids is repeated once without them, and counted again', async () => {
  const at = await bench()
  at.provider.behave(refused(400, 'maker/first:free is not a valid model ID'))
  const round = collectEvents(at.model)
  await at.provider.arrived(1)
  at.provider.behave(refused(400, 'maker/second:free is not a valid model ID'))
  expect((await round).at(-1)).toMatchObject({ kind: 'failed', code: 'http_400' })
  expect(requestedModels(at)).toEqual([LIST, LIST.slice(1)])
  expect(at.counted).toHaveLength(2)
})

test.each([
  ['names every id', LIST.join(', '), 40, 'http_400'],
  ['names none of them', 'maker/other:free', 40, 'http_400'],
  ['was the last of the day', 'maker/first:free', 1, 'http_429'],
])('a declined request that %s is not repeated', async (_what, named, room, code) => {
  const at = await bench({ room })
  at.provider.behave(refused(400, `${named}: not valid`))
  expect((await collectEvents(at.model)).at(-1)).toMatchObject({ kind: 'failed', code })
  expect(requestedModels(at)).toEqual([LIST])
})

test('no model is used without a recommendation', async () => {
  const at = await bench({ recommendations: { current: () => Promise.resolve(null) } })
  expect(await at.model.name()).toBe('')
  expect(await collectEvents(at.model)).toEqual([unsent('http_404')])
  expect([at.counted, at.provider.requests]).toEqual([[], []])
})

test('the chat uses a new recommendation soon after it is stored', async () => {
  let run = RUN
  const current = vi.fn<() => Promise<Uint8Array>>(() => Promise.resolve(sealRun(run)))
  const at = await bench({ recommendations: { current } })
  await Promise.all([at.model.name(), at.model.name(), collectEvents(at.model)])
  expect(current).toHaveBeenCalledOnce()
  run = sampleRun({ candidates: [candidate('maker/newer:free')] })
  at.wait(10_000)
  expect(await at.model.name()).toBe('maker/newer:free')
})

test('the requests of a day are known at once, and a new limit is loaded in the background', async () => {
  const at = await bench()
  at.provider.key = keyOf(50)
  expect(await at.model.requestsPerDay?.()).toBe(50)
  at.provider.key = keyOf(1_000)
  at.wait(60_000)
  expect(await at.model.requestsPerDay?.()).toBe(50)
  await collectEvents(at.model)
  expect(await at.model.requestsPerDay?.()).toBe(1_000)
})
