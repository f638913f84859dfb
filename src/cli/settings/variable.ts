import type { z } from 'zod'

export interface Variable<Rule extends z.ZodType = z.ZodType> {
  rule: Rule
  /** Default in the form of an env file; null: unset. */
  standard: string | null
  /** Set for a secret: it is never shown, and `<NAME>_FILE` may name a file that contains it. */
  secret?: true
  /** Effect in one phrase; names of variables, commands and values are in backticks. */
  meaning: string
  /** Description of the default if it is not a constant. */
  unset?: string
  /** Section of the documents about it, such as `docs/collecting.md#tokens`. */
  page?: string
  /** Question of `dash init` about it. */
  question?: string
  /** Suggested answer to that question if it is not the default. */
  suggestion?: string
}

type More = Pick<Variable, 'page' | 'question' | 'suggestion'>

export function optional<Rule extends z.ZodType>(
  rule: Rule,
  meaning: string,
  more: More & Pick<Variable, 'unset'> = {},
): Variable<z.ZodOptional<Rule>> {
  return { rule: rule.optional(), standard: null, meaning, ...more }
}

export function secret<Rule extends z.ZodType>(
  rule: Rule,
  meaning: string,
  more: More = {},
): Variable<z.ZodOptional<Rule>> {
  return { ...optional(rule, meaning, more), secret: true }
}

/** @param standard the default as it would be written; it is parsed like every other value */
export function preset<Rule extends z.ZodType<unknown, string>>(
  rule: Rule,
  standard: z.input<Rule>,
  meaning: string,
  more: More = {},
): Variable<z.ZodPrefault<Rule>> {
  return { rule: rule.prefault(standard), standard, meaning, ...more }
}
