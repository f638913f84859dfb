import { SAVE_KEY_MAX_LENGTH } from '../feed/source.ts'

/** What bounds a turn (docs/agent-tools.md). Lengths are in code points, sizes in bytes of UTF-8. */

/** Longest body of a chat request. */
export const BODY_MAX_BYTES = 32_768

/** How many of the latest messages are read, and how long each may be. */
export const MESSAGES_READ = 12
export const MESSAGE_MAX_LENGTH = 2_000

export const SCOPE_KEY_MAX_LENGTH = SAVE_KEY_MAX_LENGTH

export const PRE_PROMPT_MAX_LENGTH = 500
export const INTERESTS_MAX = 10
export const INTEREST_MAX_LENGTH = 40

/** How often a model is asked in one turn; the last time it is given no tools. */
export const MAX_ROUNDS = 4

/** Tool calls that are run in one turn. */
export const MAX_CALLS = 8

/** Longest that one call may take. */
export const CALL_TIMEOUT_MS = 3_000

/** Largest result of one call, and of all calls of a turn together. */
export const RESULT_MAX_BYTES = 8_192
export const TURN_RESULTS_MAX_BYTES = 32_768

/** Largest data block a turn begins with, its marking included. */
export const GROUNDING_MAX_BYTES = 8_192

/** Longest arguments a model may write to one call, in UTF-16 code units. */
export const ARGUMENTS_MAX_LENGTH = 4_096

/** Money in millionths of a US dollar: an integer, so that sums are exact (decisions, part 6). */
export type MicroUsd = number
