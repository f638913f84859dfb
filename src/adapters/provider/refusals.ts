import type { ChatCompletionCreateParamsStreaming } from 'openai/resources/chat/completions'
import { parseJson } from '../../domain/json.ts'
import { REASONING_FIELDS } from '../completion-message.ts'
import type { FailedRound } from './upstream.ts'

/** Parts of requests that engines refuse, and the errors that tell it (docs/decisions/0029-provider-streams.md). */

/** The parts of a request that differ between providers. */
export interface RequestForm {
  /** OpenAI's own models refuse `max_tokens`, and `strict` tools are its alone. */
  isOpenAi: boolean
  /** Parts that the provider refused. */
  refused: ReadonlySet<string>
}

export type RequestBody = Omit<ChatCompletionCreateParamsStreaming, 'model' | 'stream'> & { stream?: true }

/** Members of tool schemas that only help the model: the arguments are checked again. */
export const SCHEMA_MEMBERS: readonly string[] = ['maxItems', 'minimum', 'maximum']

/** The system message as a part; without it the instructions begin the first message of the user. */
export const SYSTEM = 'system'

/** The stream as a part; without it the completion comes whole. Engines refuse it for a model, or beside tools. */
export const STREAM = 'stream'
const STREAM_REFUSED = /\bstream(?:ing|ed)?\b|流式/i

/** A request with results of tools and without tools, as a part; with it, the tools that were called are sent. */
export const NO_TOOLS = 'no_tools'

/** Empty content of messages with calls, as a part; it is replaced by words. */
export const EMPTY_CONTENT = 'empty_content'
const EMPTY_REFUSED =
  /\bnon-?(?:empty|whitespace)\b|(?:\bnot|cannot|n't|\bis|\bare) (?:allowed to )?(?:be )?(?:an? )?(?:empty|blank)\b|\bempty (?:string|content|text|message)|为空|too[ _]short|zero-length|\b(?:at least|fewer than|less than) (?:1|one) (?:char|content|token)|\bcontents?\b.*\b(?:required|missing|greater than (?:0|zero)|between 1 and|at least 1)\b|\b(?:must have(?: an?| some)?|has no|missing) (?:content|text|message)\b/i

/** Calls without `reasoning_content`, as a part; they get their reasoning under that name, or words. */
export const NO_REASONING = 'no_reasoning'
const REASONING_REQUIRED =
  /\b(?:reasoning\w*|thinking)\b.*\b(?:missing|absent|empty|null|require[ds]?|mandatory|needed|(?:passed|sent|given) back|returned|preserved)\b|(?:\b(?:missing|without|lacks?|needs?|expected|include|provide|(?:pass|send) back)\b|缺少).*\breasoning/is

/** Names of the token limit. */
const TOKEN_LIMITS: readonly string[] = ['max_completion_tokens', 'max_tokens']

/**
 * Fields of a request or of its messages that engines refuse; the loss of the first costs least. Of the token limits,
 * one replaces the other.
 */
const OPTIONAL_FIELDS: readonly string[] = [
  'store',
  'stream_options',
  'tool_choice',
  ...REASONING_FIELDS,
  ...TOKEN_LIMITS,
]

/** Errors about the order of messages, of which both the system message and messages with calls may be the cause. */
const ORDER_REFUSED =
  /\b(?:roles?|user|assistant)\b.*\b(?:alternat(?:e|es|ing)|consecutive)\b|\balternat(?:e|es|ing)\b.*\b(?:roles?|user|assistant)\b|\bconsecutive\b.*\b(?:roles?|user|assistant|messages?)\b|\bsame role\b|\bonly user\b.*\broles?\b/i

/** Errors name these parts in several ways, and in sentences about other things too. */
const SYSTEM_REFUSED =
  /\b(?:system|developer)\b(?:['"`\s]+\w+){0,2}['"`\s]+(?:roles?|messages?|instructions?|prompts?)\b|\broles?\b.*\b(?:system|developer)\b|\b(?:first|starts?|begins?)\b.*\buser\b|\bmessages\W{1,3}0\W{1,3}role\b|\bvariant\W+system\b|\bsystem\W*角色/is

/**
 * Messages with calls and with their results, as a part; they are sent as text. Templates may know no such messages, one
 * call in each, or ids of one form, and a gateway may lose what a model requires back with its calls.
 */
export const CALL_MESSAGES = 'call_messages'
const CALL_MESSAGES_REFUSED =
  /\broles?\b.*\btool\b|\btool\b.*\broles?\b|\btool messages?\b|\bvariant\W+tool\b|\blast message\b.*\b(?:must|should|role)\b|\bmessages\W{1,3}\d+\W{1,3}(?:tool\W)?(?:role|name)\b|\btool[ _-]?calls?\b|\btool_call_ids?\b|\bfunction[_ ](?:call|response)\b|\bthought_?signature|\bthinking\b.*\btool_use\b/is

/** Templates that fail name a place of their own. Tools, and then calls, are what most of them do not expect. */
const TEMPLATE_FAILED = /\bjinja|\b(?:chat|tool)[ _]template|\btemplate error|\{%/i

const TOOLS = /\btools?(?:\b|_|config|choice)|\bfunctions?(?:\b|_)|工具|函数/i
const IS_UNSUPPORTED =
  /support|require|permit|allow|accept|enable|available|disabled|cannot|can't|implemented|capab|compatible|extra|forbid|unknown|unexpected|recogni|not (?:a )?valid|unable|has no|must be (?:absent|false|omitted)|should be null|not (?:be )?(?:set|used|expected)|deprecat|turned off|invalid (?:param|field|arg|name|for)|不支持/i
const IS_TOO_LONG =
  /too (?:long|large|many)|(?:longer|greater|larger|more) than|exceed|(?:context|maximum)(?: \w+)? (?:length|window|size)|(?:token|output) limit/i

/** Errors about what the model wrote, and about a fault, also have words of {@link TOOLS} and {@link IS_UNSUPPORTED}. */
const IS_NO_REFUSAL =
  /tool_use_failed|failed to (?:parse|call|generate)|tool call validation|unexpected (?:token|end)|temporarily/i

/** Names of parts of a field that errors name instead. */
const ALIASES: Readonly<Record<string, string>> = { stream_options: 'stream_options|include_usage' }

/** The status of an error in a stream. */
const INVALID_STATUS = /"(?:code|status|status_code)":"?(?:400|422)\b/

/** True if the provider found the request invalid, so that any part of it may be the cause. */
export function isInvalidRequest(
  failed: Pick<FailedRound, 'code' | 'refusal'>,
): failed is { code: FailedRound['code']; refusal: string } {
  if (failed.refusal === null) return false
  return (
    /^http_4(?:00|22)$/.test(failed.code) || (failed.code === 'failed' && INVALID_STATUS.test(failed.refusal))
  )
}

/**
 * The part to send a declined request without, or with its replacement; null if the error names none that it had.
 * Errors of other statuses count only for tools, calls, the stream and the system message.
 */
export function refusedPart(
  failed: Pick<FailedRound, 'code' | 'refusal'>,
  form: RequestForm,
  body: RequestBody,
): string | null {
  if (failed.refusal === null) return null
  const error = errorText(failed.refusal)
  const isInvalid = isInvalidRequest(failed)
  const names = (part: string): boolean => {
    const name = (ALIASES[part] ?? part).replaceAll('_', '[_ ]?')
    return isInvalid && new RegExp(String.raw`\b(?:${name})\b`, 'i').test(error)
  }
  const hasTools = 'tools' in body
  const isUnsupported = IS_UNSUPPORTED.test(error) && !IS_TOO_LONG.test(error)
  // An error about the value of the token limit uses the name in the request, never the other one.
  const namesOtherLimit =
    TOKEN_LIMITS.some((each) => names(each) && !hasField(body, each)) && !IS_TOO_LONG.test(error)
  const isRefused = (each: string): boolean =>
    TOKEN_LIMITS.includes(each) ? namesOtherLimit || (names(each) && isUnsupported) : names(each)
  const lacksReasoning = body.messages.some(
    (message) => 'tool_calls' in message && !('reasoning_content' in message),
  )
  if (isInvalid && REASONING_REQUIRED.test(error) && lacksReasoning) return NO_REASONING
  const field = OPTIONAL_FIELDS.find((each) => hasField(body, each) && isRefused(each) && !isKept(each, form))
  if (field !== undefined) return field
  const hasEmptyContent = body.messages.some(({ content }) => content === '')
  if (isInvalid && EMPTY_REFUSED.test(error) && hasEmptyContent) return EMPTY_CONTENT
  const schemas = JSON.stringify(body.tools ?? [])
  const member = SCHEMA_MEMBERS.find((each) => names(each) && schemas.includes(`"${each}":`))
  if (member !== undefined && isUnsupported) return member
  const isAboutOrder = ORDER_REFUSED.test(error)
  const hasSystem = body.messages[0]?.role === 'system'
  if (hasSystem && (isAboutOrder || SYSTEM_REFUSED.test(error))) return SYSTEM
  if (IS_TOO_LONG.test(error) || IS_NO_REFUSAL.test(error)) return null
  if (STREAM in body && STREAM_REFUSED.test(error) && isUnsupported) return STREAM
  const isTemplate = TEMPLATE_FAILED.test(error)
  const refusesCalls = isTemplate || isAboutOrder || CALL_MESSAGES_REFUSED.test(error)
  if (hasField(body, 'tool_calls') && refusesCalls) return CALL_MESSAGES
  if (hasTools && isTemplate) return 'tools'
  if (!TOOLS.test(error)) return null
  if (hasTools) return isUnsupported ? 'tools' : null
  return isInvalid && hasField(body, 'tool_calls') ? NO_TOOLS : null
}

function hasField(body: RequestBody, field: string): boolean {
  return field in body || body.messages.some((message) => field in message)
}

function isKept(field: string, form: RequestForm): boolean {
  // OpenAI stores completions unless `store` is false.
  if (field === 'store') return form.isOpenAi
  // Without any limit the cost of a call has no bound.
  return TOKEN_LIMITS.includes(field) && form.refused.has(tokenLimit(form.isOpenAi))
}

export function tokenLimit(isOpenAi: boolean): 'max_tokens' | 'max_completion_tokens' {
  return isOpenAi ? 'max_completion_tokens' : 'max_tokens'
}

/** Deeper parts of an error name nothing. */
const ERROR_MAX_DEPTH = 12

const REPEATED_MEMBERS = new Set(['input', 'failed_generation'])

/** The same within a text: Python's form of a list of errors, and a value after the name of its field. */
const REPEATED_VALUE = /(?:'input'|, value): .*/s

/**
 * The texts of an error's body: JSON within texts is decoded, places of the request are joined by dots, and the input
 * and the model's text, which some engines repeat, are left out.
 */
function errorText(error: unknown, depth = 0): string {
  if (depth > ERROR_MAX_DEPTH) return ''
  if (typeof error === 'string') {
    const decoded = /^\s*[[{"]/.test(error) ? parseJson(error) : undefined
    return decoded === undefined ? error.replace(REPEATED_VALUE, '') : errorText(decoded, depth + 1)
  }
  if (typeof error !== 'object' || error === null) return String(error)
  if (Array.isArray(error)) {
    const isPlace = error.every((part) => typeof part !== 'object')
    return error.map((part) => errorText(part, depth + 1)).join(isPlace ? '.' : '\n')
  }
  const members = Object.entries(error).filter(([name]) => !REPEATED_MEMBERS.has(name))
  return members.map(([name, value]) => `${name}: ${errorText(value, depth + 1)}`).join('\n')
}
