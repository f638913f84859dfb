import { expect, test } from 'vitest'
import type { AgentStatus } from '../../../src/domain/agent/schema.ts'
import { chatFact } from '../../../src/server/page/status-panel.ts'

const QUOTAS = { messagesPerSession: 20, messagesPerDay: 60 }

async function factOf(enabled: boolean, budget: AgentStatus['budget']): Promise<string> {
  const config = {
    enabled,
    requireVerification: false,
    itemChat: true,
    briefEnabled: false,
    model: 'm',
  } as const
  const agent = {
    config: async () => ({ ...config, quotas: QUOTAS }),
    status: async (): Promise<AgentStatus> => ({ ok: true, service: 'agent-worker', budget, itemChat: true }),
  }
  const { standing, value, detail } = await chatFact.read({ agent })
  return `${standing}: ${value.html}, ${detail.html}`
}

test.each([
  ['ok', 'good: Open, within the day&#39;s budget; 20 messages a session, 60 a day'],
  ['soft', 'attention: Open, without tools, the day&#39;s budget is nearly spent; 20 messages'],
  ['exhausted', 'attention: Closed until 00:00 UTC, the day&#39;s budget is spent'],
  ['unknown', 'bad: Closed, the budget cannot be read'],
] as const)('the strip tells a budget that is %s', async (budget, told) => {
  expect((await factOf(true, budget)).replaceAll("'", '&#39;')).toContain(told)
})

test('the strip tells a chat that is off, whatever its budget', async () => {
  expect(await factOf(false, 'ok')).toBe('plain: Off, switched off, or not set up')
})
