import { describe, expect, test } from 'vitest'
import { ask, question, startAgent, textOf } from '../../support/agent.ts'

describe('a turn', () => {
  test('answers with meta, deltas and one done, is charged once, and leaves one line that tells nothing said', async () => {
    const server = await startAgent()
    const events = await ask(server, question('What is new, Wolfram?'))
    expect(events.map(({ event }) => event)).toEqual(['meta', 'delta', 'delta', 'done'])
    expect(textOf(events)).toBe('Hello Да 👩‍🚀 é')
    await server.settled()
    expect(server.provider.breaches).toEqual([])
    console.log(server.turns(), await server.spending())
  })
  test('tools', async () => {
    const server = await startAgent({ provider: 'three rounds of tools' })
    const events = await ask(server, question('What is new, Wolfram?'))
    console.log(JSON.stringify(events))
    await server.settled()
    expect(server.provider.breaches).toEqual([])
    console.log(server.turns(), await server.spending())
  })
})
