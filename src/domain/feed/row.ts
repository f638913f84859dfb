import { z } from 'zod'
import { firstCodePoints } from '../agent/untrusted-text.ts'
import { byteLengthOf } from '../byte-length.ts'

/** Longest title of an event, in code points (docs/importing.md). */
export const TITLE_MAX_LENGTH = 1_000

/** Longest URL of an event, in bytes of UTF-8. */
export const URL_MAX_BYTES = 4_096

/** Longest provenance of a title, in code points. */
export const TITLE_PROVENANCE_MAX_LENGTH = 256

/** A text of an imported row: what a database of UTF-8 text keeps as it is. */
export const rowText = z
  .string()
  .refine((value) => !value.includes('\0'), 'contains a NUL character')
  .refine((value) => value.isWellFormed(), 'is not well-formed Unicode (half of a surrogate pair)')

/** What is wrong with a row, field by field, in one line. */
export function describeIssues(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join('.') || 'row'}: ${issue.message}`).join('; ')
}

/** True for a title longer than an event may have. */
export function isTitleTooLong(title: string): boolean {
  return title.length > TITLE_MAX_LENGTH && firstCodePoints(title, TITLE_MAX_LENGTH).length < title.length
}

/** True for a URL longer than an event may have. */
export function isUrlTooLong(url: string): boolean {
  // UTF-8 takes at most three bytes for a UTF-16 unit, so most URLs need not be measured.
  return url.length > URL_MAX_BYTES / 3 && (url.length > URL_MAX_BYTES || byteLengthOf(url) > URL_MAX_BYTES)
}

/** True for a provenance longer than a title may have. */
export function isTitleProvenanceTooLong(provenance: string): boolean {
  const length = TITLE_PROVENANCE_MAX_LENGTH
  return provenance.length > length && firstCodePoints(provenance, length).length < provenance.length
}
