import type { z } from 'zod'

/** Groups of variables, in the order in which pages and files show them. */
export const GROUPS = {
  stores: 'Stores',
  server: 'Server',
  sources: 'Sources',
  articles: 'Article texts',
  models: 'Free models',
  chat: 'Chat',
  'chat-limits': 'Limits of the chat',
  verification: 'Human verification',
  monitoring: 'Monitoring',
  program: 'The program itself',
} as const

/** What a person is told of a variable. */
interface About {
  group: keyof typeof GROUPS
  /** What it does, in one phrase; names of variables, commands and values between backticks. */
  meaning: string
  /** What holds while nothing is set, where that is not simply nothing. */
  unset?: string
  /** True for what may also stand in a file that `<NAME>_FILE` names, and is never shown. */
  secret?: true
  /** The flag that wins over it. */
  flag?: string
  /** Place in the documents that says more, as `docs/collecting.md#tokens`. */
  page?: string
}

/** One variable of the environment: its rule, and what a person is told of it. */
export interface Variable<Rule extends z.ZodType = z.ZodType> extends About {
  rule: Rule
  /** The default as it would be written; null: unset. */
  standard: string | null
}

/** A variable that may be left unset. */
export function optional<Rule extends z.ZodType>(
  rule: Rule,
  about: About,
): Variable<z.ZodOptional<Rule>> & { standard: null } {
  return { ...about, rule: rule.optional(), standard: null }
}

/**
 * A variable with a default.
 *
 * @param standard the default as it would be written; it is held to the rule like every other value
 */
export function defaulted<Rule extends z.ZodType<unknown, string>>(
  rule: Rule,
  standard: z.input<Rule>,
  about: Omit<About, 'unset' | 'secret'>,
): Variable<z.ZodPrefault<Rule>> {
  return { ...about, rule: rule.prefault(standard), standard }
}
