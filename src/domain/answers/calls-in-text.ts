import { asJsonObject, jsonText } from '../json.ts'
import { decodeJson } from './written-json.ts'

/**
 * Tool calls that engines without a parser for a model leave in the text of its answer: between the marks of its template,
 * or as JSON or a list of calls that is the whole answer. A mark right behind a backquote is text.
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

/** The marks around calls in the templates of models. The last end mark may be missing: for some it ends the answer. */
const ENDS: ReadonlyMap<string, string> = new Map([
  ...[
    'tool_call',
    'tool_calls',
    'minimax:tool_call',
    'seed:tool_call',
    'function_calls',
    '｜DSML｜function_calls',
    '｜DSML｜tool_calls',
    'TOOLCALL',
  ].map((name): [string, string] => [`<${name}>`, `</${name}>`]),
  ['<function=', '</function>'],
  ['<|tool_call|>', '<|/tool_call|>'],
  ['<|tool_call>', '<tool_call|>'],
  ['<|tool_call_start|>', '<|tool_call_end|>'],
  ['<|START_ACTION|>', '<|END_ACTION|>'],
  ['<|tool_calls_section_begin|>', '<|tool_calls_section_end|>'],
  ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'],
  ['<|python_tag|>', '<|eom_id|>'],
  ['[TOOL_CALLS]', '</s>'],
])
const OPENINGS = [...ENDS.keys()]
const OPENING = new RegExp(
  `(?<!\`)(?:${OPENINGS.map((mark) => mark.replace(/[[\]|]/g, String.raw`\$&`)).join('|')})`,
)
const OPENING_MAX_LENGTH = Math.max(...OPENINGS.map((mark) => mark.length))

/** The beginning of an answer that may be a call without marks: JSON, also in a fence or a list, or a list of calls. */
const MAY_BE_CALL =
  /^\s*(?:`{0,2}$|\[\w{0,64}(?:$|\()|(?:```\w{0,9}\s{0,9})?\[?\s{0,9}(?:$|\{(?:[^]{0,20}$|\s{0,9}"(?:type|name|function)")))/
const HAS_ARGUMENTS = /"(?:arguments|parameters)"|^\s*\[\w{1,64}\(/

/** A longer one is text. */
const CALL_MAX_LENGTH = 20_000

/** @param isTool returns whether a name is one of a tool; a call of another name is text */
export function callFilter(isTool: (name: string) => boolean): CallFilter {
  const calls: CallInText[] = []
  let pending = ''
  let hasText = false

  /** Returns the text up to the end of the calls that are whole, or that the end of the text ends. */
  const take = (isEnd: boolean): string => {
    let text = ''
    for (let found = OPENING.exec(pending); found !== null; found = OPENING.exec(pending)) {
      const [opening] = found
      const closing = ENDS.get(opening) ?? ''
      const start = found.index + opening.length
      const end = pending.indexOf(closing, start)
      if (end < 0 && !isEnd) break
      const after = end < 0 ? pending.length : end + closing.length
      const written = parseCalls(pending.slice(start, end < 0 ? after : end), isTool)
      calls.push(...written)
      text += pending.slice(0, written.length > 0 ? found.index : after)
      pending = pending.slice(after)
    }
    return text
  }

  return {
    push(chunk) {
      pending += chunk
      const text = take(false)
      const isCall = !hasText && text === '' && MAY_BE_CALL.test(pending)
      const start = isCall ? 0 : startOfCall(pending)
      const kept = pending.length - start > CALL_MAX_LENGTH ? pending.length : start
      const shown = text + pending.slice(0, kept)
      pending = pending.slice(kept)
      hasText ||= shown !== ''
      return shown
    },
    end() {
      const isCall = !hasText && MAY_BE_CALL.test(pending) && HAS_ARGUMENTS.test(pending)
      const written = isCall ? parseCalls(pending, isTool) : []
      calls.push(...written)
      const text = written.length > 0 ? '' : take(true) + pending
      pending = ''
      return text
    },
    calls,
  }
}

/** The calls in the format of gpt-oss, which stand among its thoughts. */
export function callsInChannels(text: string, isTool: (name: string) => boolean): CallInText[] {
  const found = text.matchAll(
    / to=functions\.([\w-]{1,64})[^{]{0,80}<\|message\|>([^]*?)(?=<\|(?:call|end)\|>|$)/g,
  )
  return Array.from(found, ([, name = '', written = '']) => ({ name, arguments: written })).filter(
    ({ name }) => isTool(name),
  )
}

/** The place of the opening mark of a call, or of a part of it at the end; the length of the text if there is none. */
function startOfCall(text: string): number {
  const start = text.search(OPENING)
  if (start >= 0) return start
  for (let at = Math.max(0, text.length - OPENING_MAX_LENGTH); at < text.length; at += 1)
    if (OPENINGS.some((mark) => mark.startsWith(text.slice(at)))) return text[at - 1] === '`' ? at - 1 : at
  return text.endsWith('`') ? text.length - 1 : text.length
}

/** A name before its parameters. Behind another word it is a mention. */
const NAME = /(?<![\w.-]|[^\s,] )[\w.-]{1,64}(?![\w.-])(?=(?:["'>`\s]|:\d{1,9}\b|json\b){0,40}(?:$|[<[{(]))/g

const PARAMETER =
  /<parameter(?:=| name=")([\w-]+)"?(?: [^>]*)?>([^]*?)<\/parameter>|<arg_key>([^]*?)<\/arg_key>\s*<arg_value>([^]*?)<\/arg_value>/g

/** The calls of tools in JSON, one or a list. */
function jsonCalls(text: string, isTool: (name: string) => boolean): CallInText[] {
  const decoded = [decodeJson(text)].flat().map((call) => {
    const { function: inner = call } = asJsonObject(call) ?? {}
    const { name, tool_name: named, arguments: value, parameters } = asJsonObject(inner) ?? {}
    const given = value ?? parameters ?? {}
    return { name: String(name ?? named), arguments: typeof given === 'string' ? given : jsonText(given) }
  })
  return decoded.filter(({ name }) => isTool(name))
}

/** The calls of tools between two marks: JSON with their names, or each name before its parameters. */
function parseCalls(written: string, isTool: (name: string) => boolean): CallInText[] {
  const text = written.replaceAll('<|"|>', '"').replaceAll('｜DSML｜', '')
  const named = jsonCalls(text, isTool)
  if (named.length > 0) return named
  const names = [...text.matchAll(NAME)].filter(([name]) => isTool(name))
  return names.map(({ 0: name, index }, place) => {
    const rest = text.slice(index + name.length, names[place + 1]?.index)
    const members = Array.from(
      rest.matchAll(PARAMETER),
      ([, first = '', value = '', second = first, other = value]) => [second.trim(), other.trim()],
    )
    // The arguments of Python have names and values too.
    const json = rest.replace(/^\s*\(([^]*)\)[^)]*$/, '{$1}')
    const given = members.length > 0 ? Object.fromEntries(members) : asJsonObject(decodeJson(json))
    return { name, arguments: jsonText(given ?? {}) }
  })
}
