import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { rawClient } from '../../adapters/sqlite/lock-holder.ts'
import { chat, chatVariables, chatBody } from '../../support/agent.ts'
import { serve, temporaryFolder } from '../../support/dash.ts'
import type { RunningProgram } from '../../support/dash.ts'
import { startProvider } from '../../support/provider.ts'
import type { ScriptedProvider } from '../../support/provider.ts'

type ChatServing = RunningProgram & { provider: ScriptedProvider }

/** Starts a server whose model begins a completion and then stalls. */
async function serveChat(dataDir: string, more: Record<string, string> = {}): Promise<ChatServing> {
  const provider = await startProvider('silence after first event')
  const env = { ...chatVariables(provider.url), ...more }
  return { ...(await serve(['--data-dir', dataDir], { env })), provider }
}

/** Opens turns, waits for their requests to the model, and returns the texts that they receive, '' if they are cut. */
async function openTurns(serving: ChatServing, count = 1): Promise<Promise<string>[]> {
  const texts = []
  for (let turn = 1; turn <= count; turn += 1) {
    const response = await chat(serving, chatBody(`Hello ${turn}`))
    expect(response.status).toBe(200)
    texts.push(response.text().catch(() => ''))
    await serving.provider.arrived(turn)
  }
  return texts
}

const inState = (dataDir: string, statement: string) =>
  rawClient(`file:${join(dataDir, 'state.db')}`).execute(statement)

async function money(dataDir: string): Promise<{ settled: number; reserved: number }[]> {
  const { rows } = await inState(dataDir, 'SELECT settled, reserved FROM chat_days')
  return rows.map((row) => ({ settled: Number(row['settled']), reserved: Number(row['reserved']) }))
}

test('a server killed during a turn leaves a reservation, which the next one settles at its start', async () => {
  const dataDir = temporaryFolder()
  const first = await serveChat(dataDir)
  void (await openTurns(first))
  await first.end('SIGKILL')
  const [{ settled, reserved } = { settled: 1, reserved: 0 }] = await money(dataDir)
  expect(settled).toBe(0)
  expect(reserved).toBeGreaterThan(0)
  // Its lease expires.
  await inState(dataDir, 'UPDATE chat_turns SET lease_until = 1')
  const next = await serveChat(dataDir)
  await next.until('stderr', 'chat turns were settled')
  expect(await money(dataDir)).toEqual([{ settled: reserved, reserved: 0 }])
}, 30_000)

const TERMINAL = /^event: (?:done|error)$/gm

test('a server that is stopped ends each open turn at the drain deadline, settles it, and then ends', async () => {
  const dataDir = temporaryFolder()
  const serving = await serveChat(dataDir, { DASH_DRAIN_SECONDS: '1' })
  const turns = await openTurns(serving, 2)
  serving.child.kill('SIGTERM')
  for (const turn of turns) {
    const text = await turn
    expect(text.match(TERMINAL)).toEqual(['event: error'])
    expect(text).toContain('data: {"error":"timeout","code":"total"}\n\n')
  }
  expect(await serving.end()).toBe(0)
  const [{ settled, reserved } = { settled: 0, reserved: 1 }] = await money(dataDir)
  expect([settled > 0, reserved]).toEqual([true, 0])
  expect(serving.output.stderr.match(/"terminal":"error"/g)).toHaveLength(2)
}, 30_000)

test('a second signal ends the server at once, even with open responses, unless npm repeats the first', async () => {
  const serving = await serveChat(temporaryFolder(), { DASH_DRAIN_SECONDS: '600' })
  const [turn] = await openTurns(serving)
  serving.child.kill('SIGTERM')
  await serving.until('stderr', 'a second signal exits at once')
  serving.child.kill('SIGTERM')
  await setTimeout(500)
  expect(serving.child.exitCode).toBeNull()
  expect(await serving.end('SIGTERM')).toBe(143)
  expect((await turn)?.match(TERMINAL)).toBeNull()
}, 30_000)
