/** The kind of a fault: the effect does not happen, or it happens and its result is lost. */
type FaultKind = 'lost' | 'done-but-reported-lost'

export interface Fault {
  /** Which of all effects, counted from 0. */
  effect: number
  kind: FaultKind
}

class InjectedFault extends Error {
  override readonly name = 'InjectedFault'
}

/** Counts the effects of several ports together and makes one of them fail. */
export class FaultPlan {
  readonly effects: string[] = []
  readonly #fault: Fault | null

  constructor(fault: Fault | null) {
    this.#fault = fault
  }

  /** The same port, whose asynchronous functions count as effects. */
  wrap<T extends object>(name: string, port: T): T {
    return new Proxy(port, {
      get: (target, property, receiver): unknown => {
        const member: unknown = Reflect.get(target, property, receiver)
        if (typeof member !== 'function') return member
        return (...args: unknown[]): Promise<unknown> => {
          const run = async (): Promise<unknown> => Reflect.apply(member, target, args)
          return this.#strike(`${name}.${String(property)}`, run)
        }
      },
    })
  }

  async #strike(effect: string, run: () => Promise<unknown>): Promise<unknown> {
    const number = this.effects.push(effect) - 1
    if (number !== this.#fault?.effect) return run()
    if (this.#fault.kind === 'done-but-reported-lost') await run()
    throw new InjectedFault(`${effect} ${this.#fault.kind}`)
  }
}

/**
 * Runs a check with a fault at each effect of a clean run, of both kinds.
 *
 * @param effects of a clean run, of which there must be more than `atLeast`
 */
export async function atEachEffect(
  effects: readonly string[],
  atLeast: number,
  check: (fault: Fault) => Promise<void>,
): Promise<void> {
  if (effects.length <= atLeast) throw new Error(`only ${effects.length} effects`)
  for (const kind of ['lost', 'done-but-reported-lost'] as const)
    for (const [effect, name] of effects.entries())
      await check({ effect, kind }).catch((error: unknown) => {
        throw new Error(`effect ${effect}, ${name}, ${kind}`, { cause: error })
      })
}

/** The result of a run, or null if its fault ended it. */
export async function unlessStruck<T>(running: Promise<T>): Promise<T | null> {
  return running.catch((error: unknown) => {
    if (!(error instanceof InjectedFault)) throw error
    return null
  })
}
