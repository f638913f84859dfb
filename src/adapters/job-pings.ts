import type { Job } from '../domain/job-run.ts'
import type { JobMonitor } from '../domain/ports.ts'
import { openConnections } from './http.ts'
import type { Connections } from './http.ts'

/** What services of this kind keep of a message. */
const MESSAGE_MAX_BYTES = 10_000

const CONNECT_TIMEOUT_MS = 3_000

/** How long one ping may take. */
const PING_MS = 5_000

/** The end is said twice when it is not taken: a start that is missed is made up for by the end. */
const END_TRIES = 2

export interface JobPingsOptions {
  /** Address of the check; `{job}` in it stands for the job. */
  url: string
  pingMs?: number
}

/**
 * A service of the kind of healthchecks.io: `/start`, `/<exit status>`, `/log`, by POST with the message as the body
 * (docs/monitoring.md#pings). Redirections are not followed.
 */
export function openJobPings({ url, pingMs = PING_MS }: JobPingsOptions): JobMonitor {
  const connections = openConnections({ connect: { timeout: CONNECT_TIMEOUT_MS } })
  const ping = (job: Job, what: string, message: string): Promise<void> =>
    send(connections, pingUrl(url, job, what), cut(message), pingMs)
  return {
    started: (job) => ping(job, 'start', ''),
    notify: (job, message) => ping(job, 'log', message),
    async ended(job, exitCode, message) {
      for (let tried = 1; ; tried += 1) {
        try {
          return await ping(job, String(exitCode), message)
        } catch (error) {
          if (tried === END_TRIES) throw error
        }
      }
    },
    close: () => connections.close(),
  }
}

/** The path goes before a query, in which services take options of a check. */
function pingUrl(url: string, job: Job, what: string): URL {
  const address = new URL(url.replaceAll('{job}', job))
  address.pathname = `${address.pathname.replace(/\/+$/, '')}/${what}`
  return address
}

async function send(connections: Connections, url: URL, body: string, timeoutMs: number): Promise<void> {
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  const status = await connections.exchange({ url, headers, body, timeoutMs }, ({ statusCode }) => statusCode)
  if (status < 200 || status > 299) throw new Error(`it answered ${status}`)
}

/** The end of a long message says how it ended. */
function cut(message: string): string {
  const bytes = Buffer.from(message)
  if (bytes.byteLength <= MESSAGE_MAX_BYTES) return message
  const from = bytes.byteLength - MESSAGE_MAX_BYTES
  return new TextDecoder().decode(bytes.subarray(from)).replace(/^\uFFFD+/, '')
}
