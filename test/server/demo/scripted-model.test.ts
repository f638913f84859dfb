import { expect, test } from 'vitest'
import { parseChatRequest } from '../../../src/domain/agent/chat-request.ts'
import type { ToolRound } from '../../../src/domain/agent/model-call.ts'
import { INSTRUCTIONS, turnInput } from '../../../src/domain/agent/prompt.ts'
import { TOOL_DEFINITIONS, parseToolCall } from '../../../src/domain/agent/tools.ts'
import { DEMO_CHAT_MODEL, scriptedModelApp } from '../../../src/server/demo/scripted-model.ts'
import { listenLocally } from '../../support/api-client.ts'
import { modelAt } from '../../adapters/provider/model-turns.ts'

const item = (rank: number): object => ({
  rank,
  key: `hn-${rank}`,
  title: `Chips [part ${rank}]`,
  link: rank === 3 ? null : `https://example.org/${rank}_(a)`,
})
const LIST = [
  String.raw`1. [Chips \[part 1\]](https://example.org/1_%28a%29) (hn-1)`,
  String.raw`2. Chips \[part 3\] (hn-3)`,
].join('\n')
const SITE = { untrusted: true, about: 'the whole site', popular: [item(1)] }

/** A whole turn over a socket, with every call checked as the agent's own are. */
async function turn(
  question: string,
  {
    data = SITE,
    items = [item(1), item(3)],
    facts = {},
  }: { data?: object; items?: object[]; facts?: object } = {},
): Promise<{ calls: unknown[]; texts: string[]; text: string }> {
  const server = await listenLocally(scriptedModelApp(0))
  const model = modelAt(server.url, { key: null, model: DEMO_CHAT_MODEL })
  const messages = [{ role: 'user', content: question }]
  const parsed = parseChatRequest(JSON.stringify({ messages, settings: { tone: 'terse' } }))
  if (!parsed.ok) throw new Error(parsed.code)
  const grounding = { scope: 'site' as const, data: JSON.stringify(data), day: '2026-03-01', revision: null }
  const prompt = {
    instructions: INSTRUCTIONS,
    input: turnInput(parsed.request, grounding, 'ab12'),
    tools: TOOL_DEFINITIONS,
    maxOutputTokens: 1_000,
  }
  const [rounds, calls, texts]: [ToolRound[], unknown[], string[]] = [[], [], []]
  for (;;) {
    for await (const event of model.ask({ ...prompt, rounds }, new AbortController().signal)) {
      if (event.kind === 'text') texts.push(event.text)
      if (event.kind === 'failed') throw new Error(`${event.error} ${event.code}`)
      if (event.kind !== 'end') continue
      expect(event.usage?.in).toBeGreaterThan(0)
      if (event.calls.length === 0) return { calls, texts, text: texts.join('') }
      const results = event.calls.map((call) => ({
        call,
        output: JSON.stringify({ untrusted: true, ...facts, items }),
      }))
      calls.push(...event.calls.map(parseToolCall))
      rounds.push({ output: event.output, results })
    }
  }
}

const top = (period: string): object => ({
  ok: true,
  call: { name: 'get_period_top', arguments: { period, list: null, limit: 5, at: null } },
})
const search = (query: string): object => ({
  ok: true,
  call: { name: 'search_items', arguments: { query, sources: null, from: null, to: null, limit: 5 } },
})

test.each([
  ['What is trending?', top('day'), 'Top of the day:'],
  ['What was the top story yesterday?', top('day'), 'Top of the day:'],
  ['hello', top('day'), 'Top of the day:'],
  ['Top of the year?', top('year'), 'Top of the year:'],
  ['What is said about postgres?', search('postgres'), 'Found for “postgres”:'],
  ['What is said about rust?', search('rust'), 'Found for “rust”:'],
  ['Расскажи про чипы', search('расскажи'), 'Found for “расскажи”:'],
])('the script answers "%s" with one call of a tool and a list of links', async (question, call, heading) => {
  const { calls, texts, text } = await turn(question)
  expect(calls).toEqual([call])
  expect(text).toMatch(/^_Demo: a script answers here, not a language model\. /)
  expect(text.slice(text.indexOf('\n\n') + 2)).toBe(`${heading}\n\n${LIST}`)
  expect(texts.length).toBeGreaterThan(3)
})

test.each(['What was the top on 2026-02-03?', 'top of 3 February 2026', 'Feb 3, 2026'])(
  'the script answers "%s" with the Year of that day, whose last day it names',
  async (question) => {
    const { calls, text } = await turn(question, { facts: { asOfDay: '2026-02-03' } })
    const args = { period: 'year', list: null, limit: 5, at: '2026-02-04T01:00:00.000Z' }
    expect(calls).toEqual([{ ok: true, call: { name: 'get_period_top', arguments: args } }])
    expect(text).toContain(`Top of the 365 days to 2026-02-03:\n\n${LIST}`)
  },
)

test('the script searches for models if the question is not which one to use', async () => {
  const data = { ...SITE, freeModel: FREE_MODEL }
  expect((await turn('What is said about models?', { data })).calls).toEqual([search('models')])
})

test('the script says that it has nothing to quote when a search finds nothing', async () => {
  expect((await turn('purple elephants?', { items: [] })).text).toContain('There is nothing to quote.')
})

test('the script quotes the open item and its stored text without a tool', async () => {
  const data = { untrusted: true, item: item(1), text: 'A chip is made\nof sand.' }
  const { calls, text } = await turn('What is this about?', { data })
  expect(calls).toEqual([])
  expect(text).toContain(`${LIST.split('\n')[0]}\n\n> A chip is made of sand.`)
  expect((await turn('And?', { data: { ...data, text: null } })).text).not.toContain('>')
})

const FREE_MODEL = {
  name: 'Good',
  updatedAt: '2026-03-01T03:00:00.000Z',
  stale: false,
  measured: { health: 'passed', latencyMs: 800, toolUse: 'proven', tasks: { passed: 2, total: 3 } },
}

test.each([
  'Which free model should I use?',
  'which model should I use',
  'What LLM do you recommend?',
  'Recommend a model',
  'the best language model?',
])('the script answers "%s" with the recommended free model and its tests', async (question) => {
  const { calls, text } = await turn(question, { data: { ...SITE, freeModel: FREE_MODEL } })
  expect(calls).toEqual([])
  expect(text).toContain(
    'Use **Good**: when tested on 2026-03-01, it followed the format, called a tool and solved 2 of 3 tasks.\n\nCompare all: /models',
  )
})

test('the script names the recommended free model while an item is open, and that its test is stale', async () => {
  const measured = { health: 'not_probed', latencyMs: null, toolUse: 'unknown', tasks: null }
  const freeModel = { ...FREE_MODEL, stale: true, measured }
  const data = { untrusted: true, freeModel, item: item(1) }
  const { text } = await turn('Which model should I use?', { data })
  expect(text).toContain('on 2026-03-01, it was the best of the free models. This test is stale.')
})

const request = async (body: object): Promise<{ response: Response; text: string }> => {
  const init = { method: 'POST', body: JSON.stringify(body) }
  const response = await scriptedModelApp(0).request('/chat/completions', init)
  return { response, text: await response.text() }
}

test('the first model of a list answers, whole and as a stream, and calls no tool of the caller', async () => {
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters: {} } }]
  const messages = [{ role: 'user', content: 'Hello?' }]
  const model = 'maker/first:free'
  const body = { model, models: [model, 'maker/second:free'], messages, tools }
  const content = expect.stringContaining('a script answers here') as string
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
  for (const changes of [{}, { model: undefined }, { models: undefined }]) {
    const whole = await request({ ...body, ...changes })
    expect(whole.response.headers.get('x-dash-demo')).toBe('true')
    expect(JSON.parse(whole.text)).toMatchObject({ model, choices })
  }
  const { response, text } = await request({ ...body, stream: true })
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  const events = [...text.matchAll(/^data: (.*)\n\n/gm)].map(([, event = '']) => event)
  expect(events.pop()).toBe('[DONE]')
  const chunks = events.map((event) => JSON.parse(event) as { choices: { delta: { content?: string } }[] })
  // Clients that put the chunks together require the role, also of a call without text.
  const common = { object: 'chat.completion.chunk', model, choices: [{ delta: { role: 'assistant' } }] }
  for (const chunk of chunks) expect(chunk).toMatchObject(common)
  // Clients add up the usage of chunks, and require every member of it.
  const total = expect.any(Number) as number
  const usage = { prompt_tokens: total, completion_tokens: total, total_tokens: total }
  expect(chunks.flatMap((chunk) => ('usage' in chunk ? [chunk.usage] : []))).toEqual([usage])
  expect(chunks.at(-1)).toMatchObject({ choices: [{ delta: {}, finish_reason: 'stop' }] })
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toEqual(content)
})

test.each([{}, { model: 'dash-demo', messages: [] }, { messages: [{ role: 'user', content: 'Hi' }] }])(
  'the script refuses a request without a model or messages: %j',
  async (body) => {
    expect((await request(body)).response.status).toBe(400)
  },
)
