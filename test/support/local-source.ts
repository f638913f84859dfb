import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** What a source was asked. */
export interface SourceQuestion {
  method: string
  /** Path and query, as they stood in the request line. */
  target: string
  headers: IncomingMessage['headers']
  body: string
}

export interface LocalSource {
  /** Base URL without a trailing slash. */
  url: string
  questions: SourceQuestion[]
}

/** A server on 127.0.0.1 that answers as it is told, closed when the test ends. */
export async function localSource(
  answer: (question: SourceQuestion, response: ServerResponse) => void,
): Promise<LocalSource> {
  const questions: SourceQuestion[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url: target = '', headers } = request
      const question = { method, target, headers, body: Buffer.concat(chunks).toString('utf8') }
      questions.push(question)
      answer(question, response)
    })
  })
  const port = await listen(server)
  onTestFinished(async () => {
    server.closeAllConnections()
    await close(server)
  })
  return { url: `http://127.0.0.1:${port}`, questions }
}

/** Answers every question with one JSON document. */
export function jsonSource(document: unknown): Promise<LocalSource> {
  return localSource((_question, response) => {
    response.setHeader('content-type', 'application/json; charset=utf-8')
    response.end(JSON.stringify(document))
  })
}

/** The base URL of a port nothing listens on. */
export async function unreachableUrl(): Promise<string> {
  const server = createTcpServer()
  const port = await listen(server)
  await close(server)
  return `http://127.0.0.1:${port}`
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve, reject) => server.close((error) => (error ? reject(error) : resolve())))
}

/** A service that is told of jobs, as healthchecks.io is; it is closed when the test ends. */
interface PingService {
  url: string
  /** What came, `METHOD path?query`, with what was said. */
  pings: { what: string; said: string }[]
}

/** @param answers how each ping is answered; 200 unless another is named */
export async function startPingService(
  answers: (response: ServerResponse, count: number) => void = (response) => response.end('OK'),
): Promise<PingService> {
  const pings: PingService['pings'] = []
  const server = createServer((request, response) => {
    void text(request).then((said) => {
      pings.push({ what: `${request.method} ${request.url}`, said })
      answers(response, pings.length)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, pings }
}
