import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** One request to a source. */
export interface SourceRequest {
  method: string
  /** Path and query of the request line. */
  target: string
  headers: IncomingMessage['headers']
  body: string
}

export interface LocalSource {
  /** Base URL without a trailing slash. */
  url: string
  requests: SourceRequest[]
  /** Closes the server. */
  close(): Promise<void>
}

/**
 * A local server with a given responder, closed when the test ends. If the responder throws, the connection is reset.
 */
export async function localSource(respond: Responder): Promise<LocalSource> {
  const source = await startSource(respond)
  onTestFinished(() => source.close())
  return source
}

type Responder = (sourceRequest: SourceRequest, response: ServerResponse, bytes: Buffer) => unknown

/** As {@link localSource}, but the caller must close it. */
export async function startSource(respond: Responder): Promise<LocalSource> {
  const requests: SourceRequest[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url: target = '', headers } = request
    const bytes = await buffer(request)
    const sourceRequest = { method, target, headers, body: bytes.toString() }
    requests.push(sourceRequest)
    await respond(sourceRequest, response, bytes)
  }
  const server = createServer(
    (request, response) => void serve(request, response).catch(() => response.destroy()),
  )
  const port = await listen(server)
  const close = async (): Promise<void> => {
    if (!server.listening) return
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${port}`, requests, close }
}

/** Responds to every request with one JSON document. */
export function jsonSource(document: unknown): Promise<LocalSource> {
  return localSource((_question, response) => {
    response.setHeader('content-type', 'application/json; charset=utf-8')
    response.end(JSON.stringify(document))
  })
}

/** A local port whose server accepts connections and never responds; freed when the test ends. */
export async function takenPort(): Promise<number> {
  const server = createTcpServer()
  onTestFinished(() => void server.close())
  return listen(server)
}

/** The base URL of an unused port. */
export async function unreachableUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`
}

/** An unused local port. */
export async function freePort(): Promise<number> {
  const server = createTcpServer()
  const port = await listen(server)
  server.close()
  await once(server, 'close')
  return port
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** A job monitor, like healthchecks.io; closed when the test ends. */
interface PingService {
  url: string
  /** Received requests, `METHOD path?query`, with their bodies. */
  pings: { what: string; body: string }[]
}

/** @param respond responder of each ping; 200 by default */
export async function startPingService(
  respond: (response: ServerResponse, count: number) => void = (response) => response.end('OK'),
): Promise<PingService> {
  const pings: PingService['pings'] = []
  const { url } = await localSource(({ method, target, body }, response) => {
    pings.push({ what: `${method} ${target}`, body })
    respond(response, pings.length)
  })
  return { url, pings }
}
