import { networkOf } from '../domain/client-address.ts'

/** Most requests of one IPv4 address or IPv6 /48 that are handled at once. */
const HANDLED_MAX = 16

/**
 * Most requests of one network whose handling starts in one turn of the event loop, so that a turn stays short: the system
 * accepts one new connection in each.
 */
const STARTED_MAX = 4

/** Lets the requests of each network be handled a few at a time; the others wait in the order of their arrival. */
export interface RequestTurns {
  /**
   * Handles a request when it is its turn.
   *
   * @param handle gets a function that ends the turn, of which further calls have no effect: the response is made, or the
   *   request waits for something else
   */
  take(address: string, handle: (endTurn: () => void) => void): void
}

/** The requests of one network. */
class NetworkTurns {
  readonly #waiting: ((endTurn: () => void) => void)[] = []
  readonly #onIdle: () => void
  #handled = 0
  /** Requests whose handling started in this turn of the event loop. */
  #started = 0

  constructor(onIdle: () => void) {
    this.#onIdle = onIdle
  }

  take(handle: (endTurn: () => void) => void): void {
    this.#waiting.push(handle)
    this.#startSome()
  }

  #startSome(): void {
    while (this.#handled < HANDLED_MAX && this.#started < STARTED_MAX) {
      const handle = this.#waiting.shift()
      if (handle === undefined) return
      if (this.#started === 0) setImmediate(() => this.#nextTurn())
      this.#started += 1
      this.#start(handle)
    }
  }

  #start(handle: (endTurn: () => void) => void): void {
    let hasTurn = true
    this.#handled += 1
    handle(() => {
      if (!hasTurn) return
      hasTurn = false
      this.#handled -= 1
      this.#startSome()
      this.#endIfIdle()
    })
  }

  #nextTurn(): void {
    this.#started = 0
    this.#startSome()
    this.#endIfIdle()
  }

  #endIfIdle(): void {
    if (this.#handled === 0 && this.#started === 0) this.#onIdle()
  }
}

export function requestTurns(): RequestTurns {
  const byNetwork = new Map<string, NetworkTurns>()
  return {
    take(address, handle) {
      const network = networkOf(address)
      let turns = byNetwork.get(network)
      if (turns === undefined) {
        turns = new NetworkTurns(() => byNetwork.delete(network))
        byNetwork.set(network, turns)
      }
      turns.take(handle)
    },
  }
}
