import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'

/** Until when a host asked to be left alone in an earlier run, or null. */
export type Recall = (host: string) => Promise<Instant | null>

export interface HostLimits {
  /** Questions open at one host at a time. */
  atOnce: number
  /** Time that may be waited for one host in all because it asked for it; beyond that it is left alone. */
  longestWaitMs: number
}

interface Host {
  open: number
  waiting: (() => void)[]
  /** Nothing is asked before. */
  notBefore: Instant
  waitedMs: number
  /** Set when a wait would be too long: until then nothing is asked at all. */
  closedUntil: Instant
  /** Settles when what is remembered of the host is known; null before anybody asked. */
  recalled: Promise<void> | null
}

/**
 * How often and how many at a time each host is asked, over all its callers. The agent is given no limit of its own: a
 * question that waited there would spend the time it has for its answer, and miss a pause.
 */
export class HostGates {
  readonly #hosts = new Map<string, Host>()
  readonly #limits: HostLimits
  readonly #clock: Clock
  readonly #sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly #recall: Recall

  constructor(
    limits: HostLimits,
    clock: Clock,
    sleep: (ms: number, signal: AbortSignal) => Promise<void>,
    recall: Recall,
  ) {
    this.#limits = limits
    this.#clock = clock
    this.#sleep = sleep
    this.#recall = recall
  }

  /**
   * Runs one question when its turn has come and every pause the host asked for is over.
   *
   * @throws SourceUnavailable without asking, while the host wants to be left alone for longer than may be waited
   */
  async pass<T>(url: string, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    const host = this.#host(url)
    host.recalled ??= this.#recallPause(url)
    await host.recalled
    await this.#enter(host)
    try {
      for (;;) {
        signal.throwIfAborted()
        const now = this.#clock()
        if (host.closedUntil > now) {
          throw new SourceUnavailable(`${url}: not asked`, { retryAt: host.closedUntil })
        }
        if (host.notBefore <= now) return await ask()
        await this.#sleep(host.notBefore - now, signal)
      }
    } finally {
      leave(host)
    }
  }

  /**
   * Keeps every question from a host until an instant.
   *
   * @returns false when that would be too long to wait: then the host is not asked at all until then
   */
  pause(url: string, until: Instant): boolean {
    const host = this.#host(url)
    const more = until - Math.max(this.#clock(), host.notBefore)
    if (more <= 0) return true
    if (host.waitedMs + more > this.#limits.longestWaitMs) {
      host.closedUntil = Math.max(host.closedUntil, until)
      return false
    }
    host.waitedMs += more
    host.notBefore = until
    return true
  }

  async #recallPause(url: string): Promise<void> {
    const until = await this.#recall(hostOf(url))
    if (until !== null) this.pause(url, until)
  }

  async #enter(host: Host): Promise<void> {
    if (host.open < this.#limits.atOnce) {
      host.open += 1
      return
    }
    // Whoever leaves hands over its place.
    await new Promise<void>((resolve) => host.waiting.push(resolve))
  }

  #host(url: string): Host {
    const name = hostOf(url)
    let host = this.#hosts.get(name)
    if (!host) {
      host = { open: 0, waiting: [], notBefore: 0, waitedMs: 0, closedUntil: 0, recalled: null }
      this.#hosts.set(name, host)
    }
    return host
  }
}

function leave(host: Host): void {
  const next = host.waiting.shift()
  if (next) next()
  else host.open -= 1
}

/** The host and port of a URL; a URL that cannot be parsed is refused by whoever asks it. */
export function hostOf(url: string): string {
  try {
    return new URL(url).host
  } catch {
    return url
  }
}
