import { expect, test } from 'vitest'
import { chatGaps, largeCallOf, tellChatStart } from '../../src/cli/running-server.ts'
import { checkFeatures } from '../../src/cli/commands/doctor/doctor.ts'
import { readConfig } from '../../src/cli/settings/read-config.ts'

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
  [{}, 'info'],
  [SECRET, 'warn'],
  [MODEL, 'warn'],
  [{ DASH_CHAT_MODEL: 'auto' }, 'warn'],
  [{ ...SECRET, ...MODEL, ...PRICES, DASH_CHAT_DISABLED: '1' }, 'info'],
])('a chat that is off with %o is reported as %s', (env, wanted) => {
  const levels: string[] = []
  const at = (level: string) => (): void => void levels.push(level)
  tellChatStart(configOf(env), { info: at('info'), warn: at('warn'), error: at('error') })
  expect(levels).toEqual([wanted])
})

test.each([
  { ...SECRET, ...MODEL, ...PRICES },
  { ...SECRET, DASH_CHAT_MODEL: 'model', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' },
])('a chat that has everything says nothing: %o', (env) => {
  expect([chatGaps(configOf(env)), told(env)]).toEqual([[], []])
})

test.each([
  [
    'of a share',
    { DASH_CHAT_PRICE_INPUT: '3', DASH_CHAT_PRICE_OUTPUT: '15' },
    '9 fit at once, 1 of one address',
  ],
  [
    'of the budget',
    { DASH_CHAT_PRICE_INPUT: '6', DASH_CHAT_PRICE_OUTPUT: '30', DASH_CHAT_BUDGET_SHARE: '1' },
    '4 fit',
  ],
  ['as all of it', { DASH_CHAT_BUDGET_USD_PER_DAY: '0.01' }, '0 fit at once, 0 of one address'],
])(
  'a turn whose reservation is as large a part %s is reported, with its values and what to set',
  (_, env, fit) => {
    const given = { ...SECRET, ...MODEL, ...PRICES, ...env }
    const config = configOf(given)
    const large = largeCallOf(config)
    expect(large?.problem).toMatch(/^one turn with tools reserves up to \$0\.\d+ of the day's \$\d/)
    expect(large?.problem).toContain(fit)
    expect(told(given)).toEqual([{}, `${large?.problem}; ${large?.mend}`])
    expect(checkFeatures(config)).toContainEqual(
      expect.objectContaining({ verdict: 'warning', check: 'chat.budget', mend: large?.mend }),
    )
    const [, budget = ''] =
      /DASH_CHAT_BUDGET_USD_PER_DAY to at least \$([\d.]+)/.exec(large?.mend ?? '') ?? []
    expect(largeCallOf(configOf({ ...given, DASH_CHAT_BUDGET_USD_PER_DAY: budget }))).toBeNull()
    const less = (Number(budget) - 0.01).toFixed(2)
    expect(largeCallOf(configOf({ ...given, DASH_CHAT_BUDGET_USD_PER_DAY: less }))).not.toBeNull()
  },
)

test('a share that alone is small is mended by a larger one, or by a larger budget', () => {
  const given = { ...SECRET, ...MODEL, ...PRICES, DASH_CHAT_BUDGET_SHARE: '0.05' }
  const { mend = '' } = largeCallOf(configOf(given)) ?? {}
  expect(mend).toContain('DASH_CHAT_BUDGET_USD_PER_DAY to at least')
  const [, share = ''] = /DASH_CHAT_BUDGET_SHARE to at least ([\d.]+)/.exec(mend) ?? []
  expect(largeCallOf(configOf({ ...given, DASH_CHAT_BUDGET_SHARE: share }))).toBeNull()
  const less = (Number(share) - 0.01).toFixed(2)
  expect(largeCallOf(configOf({ ...given, DASH_CHAT_BUDGET_SHARE: less }))).not.toBeNull()
  const small = { ...given, DASH_CHAT_BUDGET_USD_PER_DAY: '0.1', DASH_CHAT_BUDGET_SHARE: '1' }
  expect(largeCallOf(configOf(small))?.mend).not.toContain('DASH_CHAT_BUDGET_SHARE')
})

test.each([
  ['0.2', 10],
  ['0.01', 1],
])(
  'with the model auto and a share of %s an address has %d requests a day, and a warning says so',
  (share, requests) => {
    const given = {
      ...SECRET,
      DASH_CHAT_MODEL: 'auto',
      OPENROUTER_API_KEY: 'key',
      DASH_CHAT_BUDGET_SHARE: share,
    }
    const [fields, line] = told(given)
    expect(fields).toEqual({})
    expect(line).toContain(`one address may send ${requests} of the 50 requests a day`)
    expect(line).toContain('DASH_CHAT_BUDGET_SHARE')
    expect(checkFeatures(configOf(given))).toContainEqual(
      expect.objectContaining({ verdict: 'warning', check: 'chat.requests' }),
    )
  },
)

test.each(['0', '0.0', '1.1', '2', '-0.2', 'all', '0.1234567'])('%s is no share of a budget', (share) => {
  expect(() => configOf({ DASH_CHAT_BUDGET_SHARE: share })).toThrow('DASH_CHAT_BUDGET_SHARE')
})

test.each([
  ['0.2', 200_000],
  ['1', 1_000_000],
  ['0.000001', 1],
])('%s is a share of %d millionths', (share, millionths) => {
  expect(configOf({ DASH_CHAT_BUDGET_SHARE: share }).chat.limits.budgetShare).toBe(millionths)
})
