/** Ends a round that stays silent for too long; `expired` tells by which limit. */
export class Silence {
  expired: 'first_event' | 'idle' | null = null
  readonly #onExpired: () => void
  #timer: NodeJS.Timeout | null = null

  constructor(onExpired: () => void) {
    this.#onExpired = onExpired
  }

  /** From now on there may be `ms` milliseconds of silence. */
  watch(limit: 'first_event' | 'idle', ms: number): void {
    this.stop()
    this.#timer = setTimeout(() => {
      this.expired = limit
      this.#onExpired()
    }, ms)
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}
