import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'

export interface HostLimits {
  /** Requests open at one host at a time. */
  concurrency: number
  /** Time that may be waited for one host in all because it asked for it; beyond that it is left alone. */
  maxWaitMs: number
}

interface GateOptions {
  limits: HostLimits
  clock: Clock
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** Until when a host asked to be left alone in an earlier run, or null. */
  loadPause: (host: string) => Promise<Instant | null>
}

interface Host {
  limit: LimitFunction
  /** No request is sent before. */
  notBefore: Instant
  waitedMs: number
  /** Set when a wait would be too long: until then no request is sent at all. */
  closedUntil: Instant
  /** Settles when the pause of an earlier run is known. */
  pauseLoaded: Promise<void> | null
}

/**
 * How often and how many at a time each host is asked, over all its callers. The agent is given no limit of its own: a
 * request that waited there would spend the time it has for its response, and miss a pause.
 */
export class HostGates {
  readonly #hosts = new Map<string, Host>()
  readonly #options: GateOptions

  constructor(options: GateOptions) {
    this.#options = options
  }

  /**
   * Runs one request when its turn has come and every pause the host asked for is over.
   *
   * @throws SourceUnavailable without asking, while the host wants to be left alone for longer than may be waited
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
          throw new SourceUnavailable(`${url}: not asked`, { retryAt: host.closedUntil })
        if (host.notBefore <= now) return send()
        await sleep(host.notBefore - now, signal)
      }
    })
  }

  /**
   * Keeps every request from a host until an instant.
   *
   * @returns false when that would be too long to wait: then the host is not asked at all until then
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

/** The host and port of a URL. */
export function hostOf(url: string): string {
  return new URL(url).host
}
