import type { ServerResponse } from 'node:http'

/** Ways for a source to misbehave. */
export const FAULTS = {
  /** Takes the question and says nothing. */
  slow: () => undefined,
  /** Sends an answer that never ends, a space at a time. */
  drip(response) {
    response.writeHead(200, JSON_TYPE)
    const drip = setInterval(() => response.write(' '), 5)
    response.once('close', () => clearInterval(drip))
  },
  /** Too many questions; come back in an hour. */
  limited: (response) => response.writeHead(429, { ...JSON_TYPE, 'retry-after': '3600' }).end('{}'),
  failing: (response) => response.writeHead(500, JSON_TYPE).end('{"error":"internal"}'),
  html: (response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Hold on</title>'),
  truncated: (response, body) => response.writeHead(200, JSON_TYPE).end(body.slice(0, body.length / 2)),
  /** Ten million bytes of valid JSON. */
  huge(response, body) {
    response.writeHead(200, JSON_TYPE)
    const padding = ' '.repeat(100_000)
    let left = 100
    const more = (): void => {
      while (left > 0 && !response.destroyed) {
        left -= 1
        if (!response.write(padding)) {
          response.once('drain', more)
          return
        }
      }
      if (!response.destroyed) response.end(body)
    }
    more()
  },
  reset: (response) => response.socket?.resetAndDestroy(),
  /** Sends everybody, with what they carry, to another place. */
  redirecting: (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/elsewhere' }).end(),
  /** Valid JSON that is no answer. */
  'other-shape': (response) => response.writeHead(200, JSON_TYPE).end('{"error":"something else"}'),
} satisfies Record<string, (response: ServerResponse, body: string) => unknown>

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }

export type Fault = keyof typeof FAULTS
