import { fieldsOf, textOf } from './fields.ts'
import type { Fields } from './fields.ts'

interface Call {
  id: string
  name: string
  arguments: string
}

/**
 * Puts tool calls together from what chat completions stream of them. Parts belong together by their index; engines
 * that send whole calls leave it out or give the same one to all of them, and then another id begins another call.
 */
export class CallParts {
  readonly #calls: Call[] = []
  readonly #byIndex = new Map<unknown, Call>()

  add(part: Fields): void {
    const told = fieldsOf(part['function']) ?? {}
    const id = textOf(part['id'])
    const call = this.#callOf(part['index'], id)
    if (call.id === '') call.id = id
    if (call.name === '') call.name = textOf(told['name'])
    const given = told['arguments']
    // Some engines send the arguments as an object instead of its text.
    call.arguments += typeof given === 'string' ? given : given ? JSON.stringify(given) : ''
  }

  /** In the order in which they began. */
  all(): readonly Call[] {
    return this.#calls
  }

  #callOf(index: unknown, id: string): Call {
    const open = index === undefined || index === null ? this.#calls.at(-1) : this.#byIndex.get(index)
    const continues = open && (id === '' || (open.id === id && index !== undefined && index !== null))
    if (continues) return open
    const call = { id: '', name: '', arguments: '' }
    this.#calls.push(call)
    this.#byIndex.set(index, call)
    return call
  }
}
