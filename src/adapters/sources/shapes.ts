import { z } from 'zod'
import { parseInstant } from '../../domain/time.ts'
import { AnswerProblem } from './source-client.ts'

/** A list as a source answers it: its rows are looked at one by one, so that a wrong one costs only itself. */
export const listOfRows = z.array(z.unknown()).min(1)

/** An ISO-8601 instant, as epoch milliseconds. */
export const instant = z.string().transform((text, context) => {
  const at = parseInstant(text)
  if (at !== null) return at
  context.addIssue({ code: 'custom', message: 'must be an ISO-8601 instant' })
  return z.NEVER
})

/** Epoch seconds, up to the year 2100. */
export const unixSeconds = z.number().min(0).max(4_102_444_800)

/** What is wrong with a value, in one line. */
export function describeIssues(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join('.') || 'row'}: ${message}`).join('; ')
}

/** What a request reads its answer by, from a zod shape. */
export function shapeReader<T>(shape: z.ZodType<T>): (answer: unknown) => T {
  return (answer) => {
    const parsed = shape.safeParse(answer)
    if (parsed.success) return parsed.data
    const why = describeIssues(parsed.error).slice(0, 300)
    throw new AnswerProblem(`its answer has another shape than expected (${why})`)
  }
}
