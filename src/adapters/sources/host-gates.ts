import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'

export interface HostLimits {
  /** Maximum number of open requests to one host. */
  concurrency: number
  /** Maximum total time spent on pauses requested by one host, in milliseconds. Beyond it the host is not requested. */
  maxWaitMs: number
}

interface GateOptions {
  limits: HostLimits
  clock: Clock
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** Loads the end of a pause that a host requested in an earlier run, or null. */
  loadPause: (host: string) => Promise<Instant | null>
}

interface Host {
  limit: LimitFunction
  /** Earliest time of the next request. */
  notBefore: Instant
  waitedMs: number
  /** Set if the wait would be too long: until then requests fail immediately. */
  closedUntil: Instant
  /** Settles when the pause of an earlier run is loaded. */
  pauseLoaded: Promise<void> | null
}

/**
 * Limits the rate and the number of open requests per host, for all callers. The HTTP agent has no limit of its
 * own: a request queued there would spend its time limit waiting, and could miss a pause.
 */
export class HostGates {
  readonly #hosts = new Map<string, Host>()
  readonly #options: GateOptions

  constructor(options: GateOptions) {
    this.#options = options
  }

  /**
   * Runs one request when its turn has come and all pauses of the host are over.
   *
   * @throws SourceUnavailable without a request, while the host requires a longer pause than allowed
   */
  async run<T>(url: string, signal: AbortSignal, send: () => Promise<T>): Promise<T> {
    const { clock, sleep, loadPause } = this.#options
    const host = this.#host(url)
    host.pauseLoaded ??= loadPause(hostOf(url)).then(
      (until) => void (until !== null && this.pause(url, until)),
    )
    await host.pauseLoaded
    return host.limit(async () => {
      for (;;) {
        signal.throwIfAborted()
        const now = clock()
        if (host.closedUntil > now)
          throw new SourceUnavailable(`${url}: not requested`, { retryAt: host.closedUntil })
        if (host.notBefore <= now) return send()
        await sleep(host.notBefore - now, signal)
      }
    })
  }

  /**
   * Delays all requests to a host until an instant.
   *
   * @returns false if the wait would be too long: requests to the host then fail until that instant
   */
  pause(url: string, until: Instant): boolean {
    const { clock, limits } = this.#options
    const host = this.#host(url)
    const extraMs = until - Math.max(clock(), host.notBefore)
    if (extraMs <= 0) return true
    if (host.waitedMs + extraMs > limits.maxWaitMs) {
      host.closedUntil = Math.max(host.closedUntil, until)
      return false
    }
    host.waitedMs += extraMs
    host.notBefore = until
    return true
  }

  #host(url: string): Host {
    const name = hostOf(url)
    const limit = pLimit(this.#options.limits.concurrency)
    const host = this.#hosts.get(name) ?? {
      limit,
      notBefore: 0,
      waitedMs: 0,
      closedUntil: 0,
      pauseLoaded: null,
    }
    this.#hosts.set(name, host)
    return host
  }
}

/** Returns the host and port of a URL. */
export function hostOf(url: string): string {
  return new URL(url).host
}
