import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { eventsOf } from './provider-wire.ts'
import type { Said } from './provider-wire.ts'

/** A provider of the Responses API whose answers say what a test tells them, when it tells them. */
export interface GatedProvider {
  url: string
  /** Answers asked for so far. */
  readonly asked: number
  /** Answers whose connection is still there. */
  readonly live: number
  /** Resolves when so many answers have been asked for. */
  arrived(count: number): Promise<void>
  /** Every open answer says this. */
  say(text: string): void
  /** Every open answer ends as it should. */
  finish(): void
  /** Resolves when no answer's connection is left. */
  idle(): Promise<void>
}

export async function startGatedProvider(): Promise<GatedProvider> {
  const open = new Map<ServerResponse, Said[]>()
  let asked = 0
  let changed: () => void = () => undefined
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    open.set(response, [])
    asked += 1
    response.once('close', () => {
      open.delete(response)
      changed()
    })
    changed()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await new Promise<void>((resolve) => (changed = resolve))
  }
  const add = (said: readonly Said[], last: boolean): void => {
    for (const [response, before] of open) {
      const known = before.length === 0 ? 0 : framesOf(before).length
      before.push(...said)
      response.write(framesOf(before).slice(known).join(''))
      if (last) response.end()
    }
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get asked() {
      return asked
    },
    get live() {
      return open.size
    },
    arrived: (count) => until(() => asked >= count),
    say: (text) => add([{ text }], false),
    finish: () => add([{ end: 'completed' }], true),
    idle: () => until(() => open.size === 0),
  }
}

function framesOf(said: readonly Said[]): string[] {
  return eventsOf('responses', said).map((data) => `data: ${data}\n\n`)
}
