import { expect, test } from 'vitest'
import { chatGaps, tellChatStart } from '../../src/cli/chat-start.ts'
import { readConfig } from '../../src/cli/read-config.ts'

const SECRET = { DASH_SESSION_SECRET: 'a secret of thirty-two bytes, or more' }
const MODEL = { DASH_CHAT_MODEL: 'model', OPENAI_API_KEY: 'key' }
const PRICES = { DASH_CHAT_PRICE_INPUT: '1', DASH_CHAT_PRICE_OUTPUT: '2' }

const configOf = (env: NodeJS.ProcessEnv) => readConfig({}, env, '/nowhere')

function told(env: NodeJS.ProcessEnv): unknown[] {
  const lines: unknown[] = []
  const write = (fields: object, message: string): void => void lines.push(fields, message)
  tellChatStart(configOf(env), { info: write, warn: write, error: write })
  return lines
}

test.each([
  [{}, ['DASH_SESSION_SECRET', 'DASH_CHAT_MODEL']],
  [SECRET, ['DASH_CHAT_MODEL']],
  [MODEL, ['DASH_SESSION_SECRET', 'DASH_CHAT_PRICE_INPUT', 'DASH_CHAT_PRICE_OUTPUT']],
  [{ ...SECRET, ...PRICES, DASH_CHAT_MODEL: 'model' }, ['OPENAI_API_KEY']],
  [{ ...SECRET, DASH_CHAT_MODEL: 'auto' }, ['OPENROUTER_API_KEY']],
  [{ ...SECRET, ...MODEL, ...PRICES, DASH_CHAT_DISABLED: '1' }, ['DASH_CHAT_DISABLED']],
])('a chat with %o alone is off, and the start names what is missing', (env, missing) => {
  expect(told(env)).toEqual([{ missing }, 'the chat is off'])
})

test.each([
  { ...SECRET, ...MODEL, ...PRICES },
  { ...SECRET, DASH_CHAT_MODEL: 'model', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' },
  { ...SECRET, DASH_CHAT_MODEL: 'auto', OPENROUTER_API_KEY: 'key' },
])('a chat that has everything says nothing: %o', (env) => {
  expect([chatGaps(configOf(env)), told(env)]).toEqual([[], []])
})

test('a budget below one turn is told with what it would have to be', () => {
  const [amounts, message] = told({ ...SECRET, ...MODEL, ...PRICES, DASH_CHAT_BUDGET_USD_PER_DAY: '0.05' })
  expect(amounts).toEqual({ budgetMicroUsd: 50_000, worstCaseMicroUsd: expect.any(Number) as number })
  expect((amounts as { worstCaseMicroUsd: number }).worstCaseMicroUsd).toBeGreaterThan(50_000)
  expect(message).toContain('DASH_CHAT_BUDGET_USD_PER_DAY')
})
