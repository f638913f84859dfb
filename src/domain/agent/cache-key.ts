import { sha256Hex } from '../digest.ts'
import type { ChatRequest } from './chat-request.ts'
import type { Grounding } from './grounding.ts'
import type { ToolDefinition } from './model-call.ts'
import { turnInput } from './prompt.ts'

/** Grows when an answer of before would be wrong for another reason than what is digested. */
const KEY_VERSION = 2

/** Stands for the token of the data block, the one part of the input that is another in every turn. */
const ANY_TOKEN = ''

export interface CacheKeyParts {
  /** The model that would answer. */
  model: string
  instructions: string
  tools: readonly ToolDefinition[]
  maxOutputTokens: number
  request: ChatRequest
  grounding: Grounding
}

/**
 * The digest of everything that shapes an answer (docs/decisions/0031-untrusted-text.md): two turns with one key would ask
 * a model the same about the same data. It covers the input as the model gets it, the whole conversation included, so that
 * what a caller makes up as history shapes nobody's answer but their own.
 *
 * @returns null when the answer must not be kept: it is shaped by a user's own words beside the conversation, or by data
 *   that is changing
 */
export function cacheKey(parts: CacheKeyParts): string | null {
  const { model, instructions, tools, maxOutputTokens, request, grounding } = parts
  const { settings, sort, itemKey } = request
  if (settings.prePrompt !== '' || settings.interests.length > 0) return null
  if (grounding.revision === null || model === '') return null
  return sha256Hex(
    JSON.stringify([
      KEY_VERSION,
      model,
      sha256Hex(instructions),
      sha256Hex(JSON.stringify(tools)),
      maxOutputTokens,
      [grounding.scope, grounding.scope === 'item' ? itemKey : null, sort],
      [grounding.revision, grounding.day],
      turnInput(request, grounding, ANY_TOKEN),
    ]),
  )
}
