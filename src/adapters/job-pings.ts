import type { Job } from '../domain/job-run.ts'
import { openHttpClient } from './http.ts'
import type { HttpClient } from './http.ts'

/**
 * A monitoring service for jobs, which alerts when a job fails or does not run. Every call throws when the service does
 * not accept the message in time.
 */
export interface JobMonitor {
  started(job: Job): Promise<void>
  /** @param message result of the run, for a person */
  ended(job: Job, exitCode: number, message: string): Promise<void>
  /** Sends a message about a job that is neither its end nor a success. */
  notify(job: Job, message: string): Promise<void>
  close(): Promise<void>
}

/** Bytes of a message that services of this kind store. */
const MESSAGE_MAX_BYTES = 10_000

const CONNECT_TIMEOUT_MS = 3_000

/** Time limit of one ping. */
const PING_TIMEOUT_MS = 5_000

/** The ping of a job's end is retried once. A start is not: the end makes up for a missed one. */
const END_ATTEMPTS = 2

export interface JobPingsOptions {
  /** URL of the check; `{job}` is replaced by the name of the job. */
  url: string
  timeoutMs?: number
}

/**
 * A monitor with the protocol of healthchecks.io: POST to `/start`, `/<exit status>` and `/log` with the message as
 * the body (docs/monitoring.md#pings). Redirects are not followed.
 */
export function openJobPings({ url, timeoutMs = PING_TIMEOUT_MS }: JobPingsOptions): JobMonitor {
  const http = openHttpClient({ connect: { timeout: CONNECT_TIMEOUT_MS } })
  const ping = (job: Job, suffix: string, message: string): Promise<void> =>
    send(http, pingUrl(url, job, suffix), keepEnd(message), timeoutMs)
  return {
    started: (job) => ping(job, 'start', ''),
    notify: (job, message) => ping(job, 'log', message),
    async ended(job, exitCode, message) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await ping(job, String(exitCode), message)
        } catch (error) {
          if (attempt === END_ATTEMPTS) throw error
        }
      }
    },
    close: () => http.close(),
  }
}

/** The suffix is added to the path, before the query: services take options of a check there. */
function pingUrl(url: string, job: Job, suffix: string): URL {
  const address = new URL(url.replaceAll('{job}', job))
  address.pathname = `${address.pathname.replace(/\/+$/, '')}/${suffix}`
  return address
}

async function send(http: HttpClient, url: URL, body: string, timeoutMs: number): Promise<void> {
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  const status = await http.exchange({ url, headers, body, timeoutMs }, ({ statusCode }) => statusCode)
  if (status < 200 || status > 299) throw new Error(`responded with ${status}`)
}

/** Keeps the end of a long message, because the outcome is reported there. */
function keepEnd(message: string): string {
  const bytes = Buffer.from(message)
  if (bytes.byteLength <= MESSAGE_MAX_BYTES) return message
  const from = bytes.byteLength - MESSAGE_MAX_BYTES
  return new TextDecoder().decode(bytes.subarray(from)).replace(/^\uFFFD+/, '')
}
