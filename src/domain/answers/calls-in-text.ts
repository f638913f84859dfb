import { asJsonObject, jsonText } from '../text.ts'
import { decodeJson } from './written-json.ts'

/**
 * Tool calls that engines without a parser for a model leave in the text of its answer. A mark right behind a backquote
 * is text.
 */

/** A call as a model wrote it. */
interface CallInText {
  name: string
  arguments: string
}

/** A streaming filter that removes tool calls. The result does not depend on where the text is split into chunks. */
export interface CallFilter {
  /** Returns the text of the answer so far; keeps back what may belong to a call. */
  push(chunk: string): string
  /** Returns the remaining text. */
  end(): string
  readonly calls: readonly CallInText[]
}

const OPENING = '<tool_call>'
const BEGUN = /(?<!`)<tool_call>/
const CALL = /(?<!`)<tool_call>([^]*?)<\/tool_call>/
/** The last mark may be missing: for some models it is what ends the answer. */
const LAST_CALL = /(?<!`)<tool_call>([^]*)/

/** A longer one is text. */
const CALL_MAX_LENGTH = 20_000

/** @param isTool returns whether a name is one of a tool; a call of another name is text */
export function callFilter(isTool: (name: string) => boolean): CallFilter {
  const calls: CallInText[] = []
  let pending = ''

  /** Returns the text up to the end of the calls that a pattern finds. */
  const take = (pattern: RegExp): string => {
    let text = ''
    for (let found = pattern.exec(pending); found !== null; found = pattern.exec(pending)) {
      const [whole, written = ''] = found
      const call = parseCall(written)
      const isCall = isTool(call.name)
      if (isCall) calls.push(call)
      text += pending.slice(0, found.index) + (isCall ? '' : whole)
      pending = pending.slice(found.index + whole.length)
    }
    return text
  }

  return {
    push(chunk) {
      pending += chunk
      const text = take(CALL)
      const start = startOfCall(pending)
      const kept = pending.length - start > CALL_MAX_LENGTH ? pending.length : start
      const shown = text + pending.slice(0, kept)
      pending = pending.slice(kept)
      return shown
    },
    end() {
      const text = take(LAST_CALL) + pending
      pending = ''
      return text
    },
    calls,
  }
}

/** The place of the opening mark of a call, or of a part of it at the end; the length of the text if there is none. */
function startOfCall(text: string): number {
  const start = text.search(BEGUN)
  if (start >= 0) return start
  const [part = ''] = /(?:<[a-z_]*)?$/.exec(text) ?? []
  if (!OPENING.startsWith(part)) return text.length
  const end = text.length - part.length
  return text[end - 1] === '`' ? end - 1 : end
}

/** The name of a call that is not JSON, before its parameters. */
const NAME = /^\s*(?:<function=)?([\w.-]+)>?\s*(?:<|$)/

const PARAMETER =
  /<parameter=([\w-]+)>([^]*?)<\/parameter>|<arg_key>([^]*?)<\/arg_key>\s*<arg_value>([^]*?)<\/arg_value>/g

function parseCall(written: string): CallInText {
  const { name, arguments: value, parameters } = asJsonObject(decodeJson(written)) ?? {}
  if (typeof name === 'string') {
    const given = value ?? parameters ?? {}
    return { name, arguments: typeof given === 'string' ? given : jsonText(given) }
  }
  const members = Array.from(
    written.matchAll(PARAMETER),
    ([, first = '', text = '', second = first, other = text]) => [second.trim(), other.trim()],
  )
  return { name: NAME.exec(written)?.[1] ?? '', arguments: jsonText(Object.fromEntries(members)) }
}
