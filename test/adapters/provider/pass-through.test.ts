import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openPassThrough } from '../../../src/adapters/provider/pass-through.ts'
import type { PassThrough } from '../../../src/domain/ports.ts'
import { localSource } from '../../support/local-source.ts'
import { wholeCompletion } from '../../server/v1/v1.ts'
import { LONG_MS } from '../../support/workspace.ts'

/** A completion of fifteen megabytes: more than the buffers of a connection hold. */
const LARGE = Buffer.from(wholeCompletion({ content: 'x'.repeat(15_000_000) }))

/** A service whose completions lack their last byte until `finish` is called. */
async function largeCompletions() {
  const started: (() => void)[] = []
  let read = 0
  const { url } = await localSource(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': LARGE.byteLength })
    started.push(() => response.end(LARGE.subarray(-1)))
    response.write(LARGE.subarray(0, -1), () => (read += 1))
  })
  const identity = { referer: 'http://dash.test', userAgent: 'dash/test' }
  const limits = { firstEventMs: LONG_MS, idleMs: LONG_MS, clock: Date.now }
  const passThrough: PassThrough = openPassThrough({ base: url, ...identity, ...limits })
  onTestFinished(() => passThrough.close())
  const send = (signal = new AbortController().signal) =>
    passThrough.send({ key: 'key', ids: ['maker/first:free'], bodyFor: () => '{}', stream: false }, signal)
  return { send, started, readCompletely: () => read }
}

test('four large completions are read at a time; the others wait without being lost, or end with their request', async () => {
  const { send, started, readCompletely } = await largeCompletions()
  const controller = new AbortController()
  const sent = Array.from({ length: 5 }, () => send())
  await vi.waitUntil(() => started.length === 5 && readCompletely() === 4, { timeout: LONG_MS })
  const leaving = send(controller.signal)
  await vi.waitUntil(() => started.length === 6, { timeout: LONG_MS })
  for (let turns = 0; turns < 200; turns += 1) await nextTick()
  expect(readCompletely()).toBe(4)
  controller.abort(new Error('left'))
  await expect(leaving).rejects.toThrow('left')
  for (const finish of started) finish()
  for (const result of await Promise.all(sent)) {
    const parts: Uint8Array[] = []
    if ('chunks' in result) for await (const chunk of result.chunks) parts.push(chunk)
    expect(Buffer.concat(parts).equals(LARGE)).toBe(true)
  }
})
