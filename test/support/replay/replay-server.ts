import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { startSource } from '../local-source.ts'
import { REPLAYED, responseTo, TOKENS } from './responses.ts'
import type { ReplayRequest, Replayed } from './responses.ts'

export interface Replay {
  /** Environment that points `dash` to the replayed sources, with tokens. */
  env: Record<string, string>
  urls: Record<Replayed, string>
  requests: (ReplayRequest & { source: Replayed })[]
  /** Injects a fault where the path and query match; several may be set. */
  fault(source: Replayed, fault: Fault, where?: RegExp): void
  /** Changes responses where the path and query match; the result of `change` is sent as JSON. */
  change(source: Replayed, where: RegExp, change: (content: unknown) => unknown): void
  /** Sets the clock of a source ahead, in milliseconds. */
  setClock(source: Replayed, aheadMs: number): void
  close(): Promise<void>
}

class Rules {
  faults: { where: RegExp; fault: Fault }[] = []
  changes: { where: RegExp; change: (content: unknown) => unknown }[] = []
  aheadMs = 0
}

/** Starts all live sources, each on its own local port. Responses have ETags and support conditional requests. */
export async function startReplay(): Promise<Replay> {
  const sources = Object.keys(REPLAYED) as Replayed[]
  const requests: Replay['requests'] = []
  const rules = Object.fromEntries(sources.map((source) => [source, new Rules()])) as Record<Replayed, Rules>
  const servers = await Promise.all(
    sources.map((source) =>
      startSource((request, response) => {
        requests.push({ source, ...request })
        respond(source, rules[source], request, response)
      }),
    ),
  )
  const urls = Object.fromEntries(sources.map((source, index) => [source, servers[index]?.url]))
  const env = Object.fromEntries(sources.map((source) => [REPLAYED[source], urls[source] ?? '']))
  return {
    env: { ...env, ...TOKENS },
    urls: urls as Record<Replayed, string>,
    requests,
    fault: (source, fault, where = /./) => void rules[source].faults.push({ where, fault }),
    change: (source, where, change) => void rules[source].changes.push({ where, change }),
    setClock: (source, aheadMs) => void (rules[source].aheadMs = aheadMs),
    async close() {
      await Promise.all(servers.map((server) => server.close()))
    },
  }
}

function respond(
  source: Replayed,
  { faults, changes, aheadMs }: Rules,
  request: ReplayRequest,
  response: ServerResponse,
): unknown {
  const { method, target, headers } = request
  response.setHeader('date', new Date(Date.now() + aheadMs).toUTCString())
  let content = responseTo(source, request)
  for (const { where, change } of changes) if (where.test(target)) content = change(content)
  const body = JSON.stringify(content)
  const fault = faults.find(({ where }) => where.test(target))
  if (fault) return FAULTS[fault.fault](response)
  if (typeof content === 'number') return response.writeHead(content, JSON_TYPE).end('{}')
  if (content === null && source !== 'hn') return response.writeHead(404).end('Not Found')
  const etag = `W/"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`
  if (method === 'GET' && headers['if-none-match'] === etag) return response.writeHead(304, { etag }).end()
  return response.writeHead(200, { ...JSON_TYPE, etag }).end(body)
}

/** Ways for a source to misbehave. */
export const FAULTS = {
  /** Accepts the request and never responds. */
  slow: () => undefined,
  /** Too many requests; retry after an hour. */
  limited: (response) => response.writeHead(429, { ...JSON_TYPE, 'retry-after': '3600' }).end('{}'),
  failing: (response) => response.writeHead(500, JSON_TYPE).end('{"error":"internal"}'),
  html: (response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Hold on</title>'),
} satisfies Record<string, (response: ServerResponse) => unknown>

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }

export type Fault = keyof typeof FAULTS
