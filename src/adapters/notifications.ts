import { createHmac } from 'node:crypto'
import type { IpRange } from '../domain/address.ts'
import type { Job } from '../domain/jobs.ts'
import type { RunStep, ChangeDelivery } from '../domain/models/changes.ts'
import type { ChangeReceiver, Clock } from '../domain/ports.ts'
import { messageOf, networkReason } from '../domain/refusal.ts'
import { openGuardedConnections, asPageProblem } from './articles/page-client.ts'
import { TimeLimitExceeded, openHttpClient } from './http.ts'
import type { HttpClient } from './http.ts'

/** Pauses between the tries of a message, in milliseconds; there is one try more than pauses. */
const PAUSES_MS = [1_000, 5_000]

const TRY_TIMEOUT_MS = 5_000

/** No message is begun later than this after the first. */
const DELIVERY_MAX_MS = 60_000

export interface WebhookMessage {
  /** The same for every try, so that a receiver drops repeats. */
  id: string
  /** JSON. */
  body: string
}

export interface WebhookOptions {
  url: string
  /** Key of the signature. */
  key: Uint8Array
  /** Private addresses that may be reached. */
  allowed: readonly IpRange[]
  messagesOf: (step: RunStep) => readonly WebhookMessage[]
  clock: Clock
  /** Rejects with the signal's reason. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  timeoutMs?: number
}

interface FailedTry {
  why: string
  /** False if another try cannot succeed. */
  isTemporary: boolean
}

/**
 * Opens a receiver of changes with the protocol of Standard Webhooks (docs/free-models.md#webhook). A message is sent
 * again after a network error, a timeout, 408, 429 or 5xx. Redirects are not followed, and private addresses are
 * refused. The path of the URL may hold a key: no message repeats it. No queue is kept: after the last try, the feed of changes
 * is the way to catch up.
 */
export function openWebhook(options: WebhookOptions): ChangeReceiver & { close(): Promise<void> } {
  const { url, key, allowed, messagesOf, clock, sleep, timeoutMs = TRY_TIMEOUT_MS } = options
  const http = openGuardedConnections(allowed)
  const { host } = new URL(url)

  const post = async ({ id, body }: WebhookMessage, signal: AbortSignal): Promise<FailedTry | null> => {
    const headers = { ...HEADERS, ...signatureHeaders(id, body, key, clock()) }
    try {
      const status = await http.exchange({ url, headers, body, timeoutMs, signal }, (got) => got.statusCode)
      return failureOf(status)
    } catch (error) {
      return { why: reasonOf(error), isTemporary: !isRefused(error) }
    }
  }

  const deliver = async (message: WebhookMessage, signal: AbortSignal): Promise<string | null> => {
    for (let tries = 1; ; tries += 1) {
      const failed = await post(message, signal)
      if (failed === null) return null
      signal.throwIfAborted()
      const pauseMs = failed.isTemporary ? PAUSES_MS[tries - 1] : undefined
      if (pauseMs === undefined) return `${host} ${failed.why} (${tries === 1 ? '1 try' : `${tries} tries`})`
      await sleep(pauseMs, signal)
    }
  }

  return {
    async send(step, signal): Promise<ChangeDelivery> {
      const startedAt = clock()
      let delivered = 0
      const ended = (failure: string | null): ChangeDelivery => ({
        changes: step.changes.length,
        delivered,
        failure,
      })
      try {
        for (const message of messagesOf(step)) {
          if (clock() - startedAt > DELIVERY_MAX_MS)
            return ended(`${host} took more than ${DELIVERY_MAX_MS / 1000} s`)
          const failure = await deliver(message, signal)
          if (failure !== null) return ended(failure)
          delivered += 1
        }
        return ended(null)
      } catch (error) {
        return ended(signal.aborted ? 'the delivery was interrupted' : `${host}: ${messageOf(error)}`)
      }
    },
    close: () => http.close(),
  }
}

const HEADERS = { 'content-type': 'application/json' }

/** The headers of one try (Standard Webhooks, Signature scheme): the timestamp is that of the try, in seconds. */
function signatureHeaders(
  id: string,
  body: string,
  key: Uint8Array,
  now: number,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1000))
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}

function failureOf(status: number): FailedTry | null {
  if (status >= 200 && status <= 299) return null
  const isRedirect = status >= 300 && status <= 399
  return {
    why: `responded with ${status}${isRedirect ? '; redirects are not followed' : ''}`,
    isTemporary: status === 408 || status === 429 || status >= 500,
  }
}

function isRefused(error: unknown): boolean {
  return asPageProblem(error, '').why === 'private'
}

function reasonOf(error: unknown): string {
  if (error instanceof TimeLimitExceeded) return `gave ${error.message}`
  if (!isRefused(error)) return `cannot be reached (${networkReason(error)})`
  return `is refused: ${asPageProblem(error, '').message}; see DASH_MODEL_WEBHOOK_ALLOW_PRIVATE`
}

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
