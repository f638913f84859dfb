import { z } from 'zod'
import { parseInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { plainText } from './plain-text.ts'
import { describeIssues, rowText } from './row.ts'
import { itemsOfKey } from './source.ts'
import type { ItemRef } from './source.ts'

/** The text of an item, kept with where and when it was read (docs/articles.md). */
export interface Article {
  source: string
  sourceId: string
  /** As {@link plainText} leaves it, and not empty. */
  text: string
  /** How the text was read: `<where>:<how>`, and for a page its final URL after a space. */
  provenance: string
  fetchedAt: Instant
}

/** An article of a file, whose key may name several items, likeliest first; at least one. */
export interface KeyedArticle extends Omit<Article, 'source' | 'sourceId'> {
  items: readonly ItemRef[]
}

export type ParsedArticle = { kind: 'article'; article: KeyedArticle } | { kind: 'bad'; reason: string }

/** Longest provenance, in UTF-16 code units. */
const PROVENANCE_MAX_LENGTH = 4_096

const articleRow = z.object({
  key: rowText.transform((value, context) => {
    const items = itemsOfKey(value)
    if (items.length === 0) {
      const message = 'must be a save key, <prefix>-<sourceId> of a known source, of at most 132 characters'
      context.addIssue({ code: 'custom', message })
    }
    return items
  }),
  text: rowText
    .transform(plainText)
    .refine((value) => value !== '', 'is empty, or nothing is left of it as plain text'),
  fetchedAt: rowText.transform((value, context) => {
    const instant = parseInstant(value)
    if (instant === null) context.addIssue({ code: 'custom', message: 'must be an ISO-8601 instant' })
    return instant ?? z.NEVER
  }),
  provenance: rowText
    .refine((value) => value.trim() !== '', 'is empty')
    .refine(
      (value) => value.length <= PROVENANCE_MAX_LENGTH,
      `is longer than ${PROVENANCE_MAX_LENGTH} characters`,
    ),
})

/**
 * One decoded NDJSON row to an article, its text made plain, or why not (docs/importing.md).
 *
 * @param row the value JSON.parse gave for the line
 */
export function parseArticle(row: unknown): ParsedArticle {
  if (typeof row !== 'object' || row === null || Array.isArray(row)) {
    return { kind: 'bad', reason: 'not a JSON object' }
  }
  const parsed = articleRow.safeParse(row)
  if (!parsed.success) return { kind: 'bad', reason: describeIssues(parsed.error) }
  const { key: items, ...values } = parsed.data
  return { kind: 'article', article: { items, ...values } }
}
