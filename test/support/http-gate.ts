import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A server between a client and another server. */
export interface HttpGate {
  url: string
  /** Bodies of all requests, in order. */
  bodies: string[]
  /** Does what `meet` wants with the next request whose body contains `text`; all others pass. */
  once(text: string, meet: Meeting): void
}

/**
 * @param pass asks the server behind and resolves when it has answered; the client gets that answer from `answer`,
 *   changed as it likes
 * @param cut breaks the connection to the client off
 */
type Meeting = (
  pass: () => Promise<void>,
  answer: (change?: (text: string) => string) => void,
  cut: () => void,
) => Promise<void>

export async function httpGate(target: string): Promise<HttpGate> {
  const bodies: string[] = []
  const waiting: { text: string; meet: Meeting }[] = []

  const handle = async (
    path: string,
    body: string,
    type: string,
    response: ServerResponse,
  ): Promise<void> => {
    let answered: { status: number; type: string; bytes: Buffer } | null = null
    const pass = async (): Promise<void> => {
      const reply = await fetch(`${target}${path}`, {
        method: 'POST',
        headers: { 'content-type': type },
        body,
      })
      const bytes = Buffer.from(await reply.arrayBuffer())
      answered = { status: reply.status, type: reply.headers.get('content-type') ?? '', bytes }
    }
    const answer = (change?: (text: string) => string): void => {
      if (!answered) throw new Error('nothing to answer with')
      const bytes = change ? change(answered.bytes.toString('utf8')) : answered.bytes
      response.writeHead(answered.status, { 'content-type': answered.type }).end(bytes)
    }
    const index = waiting.findIndex(({ text }) => body.includes(text))
    const [met] = index < 0 ? [] : waiting.splice(index, 1)
    if (met) return met.meet(pass, answer, () => response.socket?.destroy())
    await pass()
    answer()
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8')
      bodies.push(body)
      handle(request.url ?? '/', body, request.headers['content-type'] ?? '', response).catch(() =>
        response.socket?.destroy(),
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    bodies,
    once: (text, meet) => void waiting.push({ text, meet }),
  }
}
