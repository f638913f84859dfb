import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** What a source was asked. */
export interface SourceRequest {
  method: string
  /** Path and query, as they stood in the request line. */
  target: string
  headers: IncomingMessage['headers']
  body: string
}

export interface LocalSource {
  /** Base URL without a trailing slash. */
  url: string
  requests: SourceRequest[]
  /** Is gone from then on. */
  close(): Promise<void>
}

/**
 * A server on 127.0.0.1 that answers as it is told, closed when the test ends. An answer that throws or rejects is a
 * connection that breaks off.
 */
export async function localSource(respond: Responder): Promise<LocalSource> {
  const source = await startSource(respond)
  onTestFinished(() => source.close())
  return source
}

type Responder = (sourceRequest: SourceRequest, response: ServerResponse, bytes: Buffer) => unknown

/** As {@link localSource}, but whoever starts it must close it. */
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

/** Answers every question with one JSON document. */
export function jsonSource(document: unknown): Promise<LocalSource> {
  return localSource((_question, response) => {
    response.setHeader('content-type', 'application/json; charset=utf-8')
    response.end(JSON.stringify(document))
  })
}

/** A port of this machine that another program holds, which accepts and says nothing; free again when the test ends. */
export async function takenPort(): Promise<number> {
  const server = createTcpServer()
  onTestFinished(() => void server.close())
  return listen(server)
}

/** The base URL of a port nothing listens on. */
export async function unreachableUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`
}

/** A port of this machine that nothing listens on. */
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

/** A service that is told of jobs, as healthchecks.io is; it is closed when the test ends. */
interface PingService {
  url: string
  /** What came, `METHOD path?query`, with what was said. */
  pings: { what: string; body: string }[]
}

/** @param answers how each ping is answered; 200 unless another is named */
export async function startPingService(
  answers: (response: ServerResponse, count: number) => void = (response) => response.end('OK'),
): Promise<PingService> {
  const pings: PingService['pings'] = []
  const { url } = await localSource(({ method, target, body }, response) => {
    pings.push({ what: `${method} ${target}`, body })
    answers(response, pings.length)
  })
  return { url, pings }
}
