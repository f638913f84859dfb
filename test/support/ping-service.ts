import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** A service that is told of jobs, as healthchecks.io is; it is closed when the test ends. */
export interface PingService {
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
