import { z } from 'zod'
import { isHttpUrl } from '../text.ts'
import { asJsonObject } from '../json.ts'
import { parseDay, parseInstant } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import {
  describeIssues,
  isTitleProvenanceTooLong,
  isTitleTooLong,
  isUrlTooLong,
  readAs,
  rowText,
  typeMessage,
  TITLE_MAX_LENGTH,
  TITLE_PROVENANCE_MAX_LENGTH,
  URL_MAX_BYTES,
  isKnownSource,
  SAVE_KEY_MAX_LENGTH,
  saveKey,
} from './source.ts'
import type { ItemRef } from './source.ts'

/** One observation of one event on one UTC day (docs/importing.md). */
export interface Signal extends ItemRef {
  day: Day
  title: string
  url: string | null
  points: number | null
  comments: number | null
  publishedAt: Instant | null
  /** Channel by which the owning source verified the title; null for a legacy row. */
  titleProvenance: string | null
}

export type ParsedSignal =
  | { kind: 'signal'; signal: Signal; vouched: boolean }
  | { kind: 'unknown-source'; source: string }
  | { kind: 'bad'; reason: string }

const PROVENANCE_TOO_LONG = `is longer than ${TITLE_PROVENANCE_MAX_LENGTH} characters`

const count = z.int({ error: typeMessage('must be an integer or null') }).nullable()

const signalRow = z.object({
  sourceId: rowText.refine((value) => value !== '', 'is empty'),
  day: rowText.transform(readAs(parseDay, 'must be a real YYYY-MM-DD day')),
  title: rowText
    .refine((value) => value.trim() !== '', 'is empty')
    .refine((value) => !isTitleTooLong(value), `is longer than ${TITLE_MAX_LENGTH} characters`),
  url: rowText
    .refine(isHttpUrl, 'must be an absolute http(s) URL or null')
    .refine((value) => !isUrlTooLong(value), `is longer than ${URL_MAX_BYTES} bytes`)
    .nullable(),
  points: count,
  comments: count,
  publishedAt: rowText.transform(readAs(parseInstant, 'must be an ISO-8601 instant or null')).nullable(),
  titleProvenance: rowText
    .refine((value) => !isTitleProvenanceTooLong(value), PROVENANCE_TOO_LONG)
    .optional(),
})

/**
 * Parses one decoded NDJSON row to a signal, or to the reason why it is invalid (docs/importing.md).
 *
 * @param row the value of JSON.parse for the line
 * @param vouchedProvenance provenance for rows without their own, `<source>:<channel>`, or null
 */
export function parseSignal(row: unknown, vouchedProvenance: string | null): ParsedSignal {
  const bad = (reason: string): ParsedSignal => ({ kind: 'bad', reason })
  const members = asJsonObject(row)
  if (members === null) return bad('not a JSON object')
  const { source } = members
  if (typeof source !== 'string' || source === '') return bad('source: must be a nonempty string')
  if (!isKnownSource(source)) return { kind: 'unknown-source', source }
  const parsed = signalRow.safeParse(row)
  if (!parsed.success) return bad(describeIssues(parsed.error))
  const { titleProvenance, ...values } = parsed.data
  const provenance = titleProvenance ?? vouchedProvenance
  if (provenance !== null && isTitleProvenanceTooLong(provenance))
    return bad(`titleProvenance: ${PROVENANCE_TOO_LONG}`)
  if (provenance !== null && !vouchesFor(provenance, source))
    return bad(
      `titleProvenance: ${JSON.stringify(provenance)} must be ${source}:<channel>, with the source of its row`,
    )
  const keyLength = Array.from(saveKey(source, values.sourceId)).length
  if (keyLength > SAVE_KEY_MAX_LENGTH)
    return bad(`sourceId: the save key has ${keyLength} characters; the maximum is ${SAVE_KEY_MAX_LENGTH}`)
  const vouched = titleProvenance === undefined && vouchedProvenance !== null
  return { kind: 'signal', signal: { source, ...values, titleProvenance: provenance }, vouched }
}

/** True for a provenance `<source>:<channel>` of this source. */
function vouchesFor(provenance: string, source: string): boolean {
  return provenance.startsWith(`${source}:`) && provenance.slice(source.length + 1).trim() !== ''
}

/** Numbers of new, changed and unchanged signals. */
export interface ImportCounts {
  inserted: number
  replaced: number
  unchanged: number
}

/** Adds the counts of a batch to those of the batches before. */
export function addCounts(total: ImportCounts, batch: ImportCounts): void {
  total.inserted += batch.inserted
  total.replaced += batch.replaced
  total.unchanged += batch.unchanged
}
