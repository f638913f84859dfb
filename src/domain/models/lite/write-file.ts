import { z } from 'zod'
import type { ModelReply } from '../reply.ts'

/** Name of the one tool that the files task offers. */
export const WRITE_FILE = 'write_file'

const writeFileSchema = z.strictObject({
  path: z.string().describe('Relative path of the file, with forward slashes'),
  content: z.string().describe('The whole content of the file'),
})

// Some services refuse a schema that names its own draft.
const { $schema: _draft, ...parameters } = z.toJSONSchema(writeFileSchema, { target: 'draft-7' })

/** The tool as a request offers it; its calls are held against the same schema. */
export const WRITE_FILE_TOOL = {
  name: WRITE_FILE,
  description: 'Writes one text file. Folders are made as needed; a file that is there is replaced.',
  parameters: parameters as Record<string, unknown>,
}

/** What a reply's calls did. A call that is not valid, or whose path is not safe, writes nothing. */
export interface WrittenFiles {
  /** Content by path, without a leading `./`. */
  files: ReadonlyMap<string, string>
  calls: number
  /** Calls of the tool that was offered, sound or not. */
  callsOfTool: number
  /** The three ways in which a call is not valid, each call counted once, in this order. */
  unknownName: number
  invalidJson: number
  schemaMismatch: number
  unsafePaths: number
}

/** Carries out the calls of a reply, on a map. */
export function writeFiles({ toolCalls }: Pick<ModelReply, 'toolCalls'>): WrittenFiles {
  const files = new Map<string, string>()
  const counts = { unknownName: 0, invalidJson: 0, schemaMismatch: 0, unsafePaths: 0 }
  for (const call of toolCalls) {
    const outcome = readCall(call)
    if (typeof outcome === 'string') counts[outcome] += 1
    else files.set(outcome.path, outcome.content)
  }
  const callsOfTool = toolCalls.length - counts.unknownName
  return { files, calls: toolCalls.length, callsOfTool, ...counts }
}

type CallProblem = 'unknownName' | 'invalidJson' | 'schemaMismatch' | 'unsafePaths'

function readCall(call: {
  name: string
  arguments: string
}): { path: string; content: string } | CallProblem {
  if (call.name !== WRITE_FILE) return 'unknownName'
  const parsed = parseJson(call.arguments)
  if (parsed === undefined) return 'invalidJson'
  const checked = writeFileSchema.safeParse(parsed)
  if (!checked.success) return 'schemaMismatch'
  const path = safePath(checked.data.path)
  return path === null ? 'unsafePaths' : { path, content: checked.data.content }
}

/**
 * A path below the working folder without its leading `./`, or null for any that could lead elsewhere: absolute, with
 * `..`, `~` or a drive letter in front, with a backslash, NUL or another control character, or longer than 255.
 */
export function safePath(path: string): string | null {
  const segments = path.split('/')
  const leading = /^(?:\/|~|[A-Za-z]:)/.test(path)
  if (leading || /[\\\p{Cc}]/u.test(path) || path.length > 255) return null
  if (segments.includes('..')) return null
  const kept = segments.filter((segment) => segment !== '' && segment !== '.')
  return kept.length === 0 || path.endsWith('/') ? null : kept.join('/')
}

/** The forms in which models print a call that they should have made. */
const CALLS_AS_TEXT = [
  /<\/?(?:minimax:)?tool_calls?>/i,
  /<\|?(?:tool_call|tool▁call|python_tag)/i,
  /<function(?:=|_calls?>|>)|<invoke name=/i,
  /\[TOOL_CALLS\]/,
  /<\|channel\|>[^<]*to=/,
  /"(?:name|function|tool)"\s*:\s*"(?:functions\.)?write_file"/,
  /\bwrite_file\s*\(/,
]

/** True for text that looks like a call of a tool. */
export function looksLikeCall(text: string): boolean {
  return CALLS_AS_TEXT.some((form) => form.test(text))
}

/** undefined for a text that is no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
