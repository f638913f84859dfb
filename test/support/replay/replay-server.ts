import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
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

interface Rules {
  faults: { where: RegExp; fault: Fault }[]
  changes: { where: RegExp; change: (content: unknown) => unknown }[]
  aheadMs: number
}

/** Starts all live sources, each on its own local port. Responses have ETags and support conditional requests. */
export async function startReplay(): Promise<Replay> {
  const sources = Object.keys(REPLAYED) as Replayed[]
  const requests: Replay['requests'] = []
  const servers: Server[] = []
  const rules = Object.fromEntries(
    sources.map((source): [Replayed, Rules] => [source, { faults: [], changes: [], aheadMs: 0 }]),
  ) as Record<Replayed, Rules>
  const urls: Partial<Record<Replayed, string>> = {}
  for (const source of sources) {
    const server = createServer((request, response) => {
      void respond(source, rules[source], requests, request, response)
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    urls[source] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const all = urls as Record<Replayed, string>
  const env = Object.fromEntries(sources.map((source) => [REPLAYED[source], all[source]]))
  return {
    env: { ...env, ...TOKENS },
    urls: all,
    requests,
    fault: (source, fault, where = /./) => void rules[source].faults.push({ where, fault }),
    change: (source, where, change) => void rules[source].changes.push({ where, change }),
    setClock: (source, aheadMs) => void (rules[source].aheadMs = aheadMs),
    async close() {
      for (const server of servers) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  }
}

async function respond(
  source: Replayed,
  { faults, changes, aheadMs }: Rules,
  requests: Replay['requests'],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { method = '', url: target = '', headers } = request
  const replayRequest = { source, method, target, headers, body: Buffer.concat(chunks).toString('utf8') }
  requests.push(replayRequest)
  response.setHeader('date', new Date(Date.now() + aheadMs).toUTCString())
  let content = responseTo(source, replayRequest)
  for (const { where, change } of changes) if (where.test(target)) content = change(content)
  const body = JSON.stringify(content)
  const fault = faults.find(({ where }) => where.test(target))
  if (fault) {
    FAULTS[fault.fault](response)
    return
  }
  if (typeof content === 'number') {
    response.writeHead(content, { 'content-type': 'application/json' }).end('{}')
    return
  }
  if (content === null && source !== 'hn') {
    response.writeHead(404).end('Not Found')
    return
  }
  const etag = `W/"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`
  if (method === 'GET' && headers['if-none-match'] === etag) {
    response.writeHead(304, { etag }).end()
    return
  }
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', etag }).end(body)
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

/** Where the replayed items link to. */
export const LINKED = 'https://example.org'

/** Serves an article at every path, and no robots.txt; returns the origin. */
export async function startPages(): Promise<string> {
  const server = createServer(({ url = '/' }, response) => {
    if (url === '/robots.txt') response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(articleOf(url))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function articleOf(path: string): string {
  const name = path.replaceAll(/[^\w/-]/g, '')
  const paragraph = (number: number): string =>
    `<p>Paragraph ${number} of the article at ${name}. It is long enough to be told from what stands around an
     article, and says nothing but where it was found, so that a text can be followed to its page.</p>`
  const paragraphs = Array.from({ length: 5 }, (_, index) => paragraph(index + 1)).join('')
  return `<!doctype html><title>${name}</title><nav><a href="/">Home</a></nav>
    <article><h1>${name}</h1>${paragraphs}</article><footer>Footer</footer>`
}
