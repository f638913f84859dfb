import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { rawClient } from '../../adapters/sqlite/lock-holder.ts'
import { chat, chatVariables, chatBody, sessionOf } from '../../support/agent.ts'
import { serve, temporaryFolder } from '../../support/dash.ts'
import type { RunningProgram } from '../../support/dash.ts'
import { startProvider, startGatedProvider } from '../../support/synthetic-provider.ts'
import type { SyntheticProvider, GatedProvider } from '../../support/synthetic-provider.ts'

type ChatServing = RunningProgram & { provider: SyntheticProvider }

/** Starts a server whose model begins a completion and then stalls. */
async function serveChat(dataDir: string, more: Record<string, string> = {}): Promise<ChatServing> {
  const provider = await startProvider('silence after first event')
  const env = { ...chatVariables(provider.url), ...more }
  return { ...(await serve(['--data-dir', dataDir], { env })), provider }
}

/** Opens a turn, waits for the request to the model, and reads the response in the background. */
async function openTurn(serving: ChatServing): Promise<void> {
  const response = await chat(serving, chatBody('Hello'))
  expect(response.status).toBe(200)
  response.text().catch(() => undefined)
  await serving.provider.arrived(1)
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
  await openTurn(first)
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

/**
 * Opens a turn over a separate socket and waits for the request to the model; `closed` resolves with all received
 * text once the socket is closed.
 */
async function openSocket(
  serving: RunningProgram & { provider: GatedProvider },
): Promise<{ closed: Promise<string> }> {
  const token = await sessionOf(serving)
  const { hostname, port, host } = new URL(serving.url)
  const { requestCount } = serving.provider
  const body = chatBody(`Hello ${requestCount}`)
  const socket = connect(Number(port), hostname)
  const closed = text(socket)
  const head = [
    'POST /api/agent/chat HTTP/1.1',
    `host: ${host}`,
    `origin: ${serving.url}`,
    `x-agent-session: ${token}`,
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  await serving.provider.arrived(requestCount + 1)
  return { closed }
}

/** Starts a server with a model that the test controls. */
async function serveGated(
  dataDir: string,
  drainSeconds: number,
): Promise<RunningProgram & { provider: GatedProvider }> {
  const provider = await startGatedProvider()
  const env = { OPENAI_BASE_URL: provider.url, DASH_DRAIN_SECONDS: String(drainSeconds) }
  return { ...(await serveChat(dataDir, env)), provider }
}

const TERMINAL = /^event: (?:done|error)$/gm

test('a server that is stopped ends each open turn at the drain deadline, settles it, and then closes its socket', async () => {
  const dataDir = temporaryFolder()
  const serving = await serveGated(dataDir, 1)
  const turns = [await openSocket(serving), await openSocket(serving)]
  serving.provider.say('Hello')
  serving.child.kill('SIGTERM')
  for (const { closed } of turns) {
    const stream = await closed
    expect(stream.match(TERMINAL)).toEqual(['event: error'])
    expect(stream).toContain('data: {"error":"timeout","code":"total"}\n\n')
    // The end of the body is included: the stream was not cut.
    expect(stream).toMatch(/\r\n0\r\n\r\n$/)
  }
  const [{ settled, reserved } = { settled: 0, reserved: 1 }] = await money(dataDir)
  expect([settled > 0, reserved]).toEqual([true, 0])
  expect(await serving.end()).toBe(0)
  expect(serving.output.stderr.match(/"terminal":"error"/g)).toHaveLength(2)
}, 30_000)

test('a second signal ends the server at once, even with open responses', async () => {
  const serving = await serveGated(temporaryFolder(), 600)
  const { closed } = await openSocket(serving)
  serving.child.kill('SIGTERM')
  await serving.until('stderr', 'a second signal exits at once')
  expect(serving.child.exitCode).toBeNull()
  expect(await serving.end('SIGTERM')).toBe(143)
  expect((await closed.catch(() => '')).match(TERMINAL)).toBeNull()
}, 30_000)
