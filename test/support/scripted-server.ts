import type { ServerResponse } from 'node:http'
import { localSource } from './local-source.ts'
import type { SourceRequest } from './local-source.ts'

/** One answer of the scripted server. */
export type Responder = (response: ServerResponse) => void

/** A server whose chat interface behaves as a test says, path by path; it is closed when the test ends. */
export interface ScriptedServer {
  url: string
  /** Requests so far, `METHOD path`, with their bodies. */
  requests: { what: string; headers: SourceRequest['headers']; body: string }[]
  /** Closes the server. */
  close(): Promise<void>
}

/** The part of a path below `/api/agent/`. */
type Path = 'config' | 'session' | 'chat' | 'status'

export const json =
  (value: unknown, status = 200, headers: Record<string, string> = {}): Responder =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify(value))
  }

export const html =
  (status = 200, headers: Record<string, string> = {}): Responder =>
  (response) => {
    response.writeHead(status, { 'content-type': 'text/html', ...headers })
    response.end('<!doctype html><title>Welcome</title>')
  }

/** An event stream of these records; one that is cut is reset in the middle. */
export const stream =
  (records: readonly string[], end: 'end' | 'reset' | 'hold' = 'end'): Responder =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(records.join(''), () => {
      if (end === 'end') response.end()
      if (end === 'reset') setImmediate(() => response.socket?.resetAndDestroy())
    })
  }

/** An event stream of a few records and then of nothing but the comments that keep a connection open. */
export const pings =
  (records: readonly string[]): Responder =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(records.join(''))
    const ping = setInterval(() => response.write(': ping\n\n'), 10)
    response.once('close', () => clearInterval(ping))
  }

export const record = (event: string, data: unknown): string =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`

export const META = record('meta', { remaining: { session: 19, day: 59 }, tier: 'free' })
export const DONE = record('done', { usage: { in: 1, out: 1, cached: 0 } })
export const delta = (text: string): string => record('delta', { text })

const QUOTAS = { messagesPerSession: 20, messagesPerDay: 60 }
export const CONFIG = {
  enabled: true,
  requireVerification: false,
  itemChat: true,
  briefEnabled: false,
  model: 'test-model',
  quotas: QUOTAS,
}

const SOUND: Record<Path, Responder> = {
  config: json(CONFIG),
  session: json({
    sessionToken: 'v1.token',
    expiresAt: '2030-01-01T00:00:00.000Z',
    tier: 'free',
    quotas: QUOTAS,
  }),
  chat: stream([META, delta('Hello'), DONE]),
  status: json({ ok: true, service: 'agent-worker', budget: 'ok', itemChat: true }),
}

/**
 * @param responders responses that replace the regular ones; of a list, each request gets the next, and the last one
 * repeats
 */
export async function startScripted(
  responders: Partial<Record<Path, Responder | readonly Responder[]>> = {},
): Promise<ScriptedServer> {
  const counts: Partial<Record<Path, number>> = {}
  const requests: ScriptedServer['requests'] = []
  const { url, close } = await localSource(({ method, target, headers, body }, response) => {
    requests.push({ what: `${method} ${target}`, headers, body })
    const path = target.replace('/api/agent/', '') as Path
    const scripted = responders[path] ?? SOUND[path]
    const index = counts[path] ?? 0
    counts[path] = index + 1
    const responder =
      typeof scripted === 'function' ? scripted : scripted[Math.min(index, scripted.length - 1)]
    responder?.(response)
  })
  return { url, requests, close }
}
