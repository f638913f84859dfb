import { expect, test } from 'vitest'
import { DEMO_MODELS, demoRouterApp } from '../../../src/server/demo/router-app.ts'
import { parseCatalogue, parseEndpoints, parseKeyRequests } from '../../../src/adapters/router/facts.ts'
import { drawItems } from '../../../src/domain/models/lite/items.ts'
import { filterCatalogue } from '../../../src/domain/models/catalogue.ts'
import { dayOf } from '../../../src/domain/time.ts'

const NOW = Date.UTC(2026, 2, 1)

const ask = async (
  path: string,
  body?: object,
  key: string | null = 'demo',
): Promise<{ response: Response; text: string }> => {
  const app = demoRouterApp(DEMO_MODELS, () => NOW)
  const response = await app.request(path, {
    method: body ? 'POST' : 'GET',
    headers: key === null ? {} : { authorization: `Bearer ${key}` },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return { response, text: await response.text() }
}

test('the demo router lists models that may all be recommended, marked as the demo', async () => {
  const { response, text } = await ask('/models', undefined, null)
  expect(response.headers.get('x-dash-demo')).toBe('true')
  const { eligible, rejections } = filterCatalogue(parseCatalogue(text)?.models ?? [], NOW)
  expect(rejections).toEqual([])
  expect(eligible.map(({ id }) => id)).toEqual(DEMO_MODELS.map(({ id }) => id))
})

test('the demo router returns key and endpoints to any key', async () => {
  expect(parseKeyRequests((await ask('/key')).text)).toEqual({ limit: 50, used: 0 })
  const [first] = DEMO_MODELS
  const path = `/models/${encodeURIComponent(first?.id ?? '').replace('%2F', '/')}/endpoints`
  expect(parseEndpoints((await ask(path)).text)).toEqual({ usable: true, latencyMs: first?.latencyMs })
  expect((await ask('/key', undefined, null)).response.status).toBe(401)
})

test('the demo router responds for its own models only: to the suite by their behaviour, to anything else with a greeting', async () => {
  expect((await ask('/chat/completions', { model: 'nobody/nothing:free' })).response.status).toBe(404)
  const model = DEMO_MODELS[0]?.id
  const { messages, tools } = drawItems(dayOf(NOW)).prompts.tool
  expect((await ask('/chat/completions', { model, messages, tools })).text).toContain('"tool_calls"')
  const greeted = await ask('/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }] })
  expect(greeted.text).toContain('"content":"Hello."')
})
