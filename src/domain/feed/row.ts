import { z } from 'zod'

/** A text of an imported row: what a database of UTF-8 text keeps as it is. */
export const rowText = z
  .string()
  .refine((value) => !value.includes('\0'), 'contains a NUL character')
  .refine((value) => value.isWellFormed(), 'is not well-formed Unicode (half of a surrogate pair)')

/** What is wrong with a row, field by field, in one line. */
export function describeIssues(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join('.') || 'row'}: ${issue.message}`).join('; ')
}
