import type { ToolRound } from '../../domain/agent/model-call.ts'
import { fieldsOf } from './fields.ts'

/** Longest id and name of a call that every provider takes back. */
const ID_MAX_LENGTH = 64
const NAME_PATTERN = /^[\w-]{1,64}$/

/** Stands for the result of a call that nobody answered: a provider declines a round with an open call. */
const NOT_RUN = '{"error":"not_run"}'

/** Gives each call of a turn an id of its own, since models repeat them; the first one keeps what the model gave. */
export function callIds(rounds: readonly ToolRound[]): (given: unknown) => string {
  const used = new Set(rounds.flatMap(({ results }) => results.map(({ call }) => call.callId)))
  let next = 1
  return (given) => {
    let id = typeof given === 'string' && given.length <= ID_MAX_LENGTH ? given : ''
    while (id === '' || used.has(id)) {
      id = `call_${used.size}_${next}`
      next += 1
    }
    used.add(id)
    return id
  }
}

/** A call as it is given back: providers decline names they do not allow and arguments that are no JSON object. */
export function replayable(call: { name: string; arguments: string }): { name: string; arguments: string } {
  return {
    name: NAME_PATTERN.test(call.name) ? call.name : 'unknown',
    arguments: isObject(call.arguments) ? call.arguments : '{}',
  }
}

function isObject(text: string): boolean {
  try {
    return fieldsOf(JSON.parse(text)) !== null
  } catch {
    return false
  }
}

/** The results of a round by the ids of its calls. */
export function resultsOf({ results }: ToolRound): (callId: string) => string {
  const outputs = new Map(results.map(({ call, output }) => [call.callId, output]))
  return (callId) => outputs.get(callId) ?? NOT_RUN
}
