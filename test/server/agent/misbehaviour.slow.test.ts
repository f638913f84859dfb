import { expect, test } from 'vitest'
import { TOOL_NAMES } from '../../../src/domain/agent/model-call.ts'
import { chatEvents, chatBody, startAgent } from '../../support/agent.ts'
import type { AgentEvent } from '../../../src/domain/agent/schema.ts'
import type { ModeName } from '../../support/provider.ts'

/** The terminal event for a client, by what the provider does: `done`, or the error and its code. */
const ENDINGS = {
  reset: 'upstream_error truncated',
  'silence after first event': 'timeout idle',
  failed: 'upstream_error failed',
  refusal: 'done',
  'empty answer': 'upstream_error empty',
  'unknown tool': 'done',
  'repeated call ids': 'done',
  'usage negative': 'done',
  'usage huge': 'done',
} satisfies Partial<Record<ModeName, string>>

function endingOf(events: readonly AgentEvent[]): string {
  const last = events.at(-1)
  return last?.event === 'error' ? `${last.data.error} ${last.data.code}` : (last?.event ?? 'nothing')
}

/** Returns the number of starts minus the number of ends of each tool. */
function openTools(events: readonly AgentEvent[]): number[] {
  return TOOL_NAMES.map((name) =>
    events.reduce((open, each) => {
      if (each.event !== 'tool' || each.data.name !== name) return open
      return open + (each.data.status === 'start' ? 1 : -1)
    }, 0),
  )
}

test.each(Object.keys(ENDINGS) as (keyof typeof ENDINGS)[])(
  'a provider with the behaviour %s yields one terminal event, paired tool events, one settlement and one log line',
  async (mode) => {
    const idleMs = ENDINGS[mode] === 'timeout idle' ? 100 : 10_000
    const server = await startAgent({ provider: mode, idleMs })
    const events = await chatEvents(server, chatBody('What is new?'))
    expect(endingOf(events)).toBe(ENDINGS[mode])
    expect(events[0]?.event).toBe('meta')
    expect(events.filter(({ event }) => event === 'done' || event === 'error')).toHaveLength(1)
    expect(openTools(events).every((open) => open === 0)).toBe(true)
    expect(JSON.stringify(events)).not.toMatch(/SECRET|delete everything/)
    await server.settled()
    expect(server.provider.breaches).toEqual([])
    expect(server.turns()).toMatchObject([{ terminal: events.at(-1)?.event }])
    const { settled, reserved } = await server.spending()
    expect(reserved).toBe(0)
    expect(settled).toBe(server.turns()[0]?.['costMicroUsd'])
  },
  20_000,
)

test('an answer has at most four model calls, the last without tools', async () => {
  const runaway = await startAgent({ provider: 'runaway tools' })
  await chatEvents(runaway, chatBody('Go on'))
  expect(
    runaway.provider.requests.map(({ body }) => (body['tools'] as unknown[] | undefined)?.length ?? 0),
  ).toEqual([6, 6, 6, 0])
})
