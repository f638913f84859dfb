import { z } from 'zod'
import { formatInstant } from '../time.ts'
import { COLUMN_LENGTH } from './columns.ts'
import type { Scored } from './columns.ts'
import { discussionUrl, hypeProviderOf } from './source.ts'

/** The fields that items of every published ranking have, live and archived (docs/api.md). */

export const instantSchema = z.iso.datetime({ precision: 3 }).describe('ISO-8601 with milliseconds and Z')
export const nonBlankText = z.string().regex(/\S/)

export const itemFields = {
  key: z.string().min(1).describe('save key, `<prefix>-<sourceId>`'),
  source: z.string().min(1),
  provider: z.string().optional().describe('hype items only: the provider'),
  sourceId: z.string().min(1).describe("the source's own id"),
  rank: z.int().min(1).max(COLUMN_LENGTH).describe('rank in this list; 1 is first'),
  title: nonBlankText,
  url: z.string().nullable().describe('link of the item; null for a text post'),
  discussionUrl: z.string().nullable().describe('page of the discussion; null outside the news sources'),
  points: z.int().describe('latest stored points, karma or provider unit'),
  comments: z.int().nullable(),
  publishedAt: instantSchema.describe("the event's own publication time"),
  percentile: z.number().gt(0).lt(1).describe('midpoint percentile (L + E/2) / n inside its source'),
}

type ListedItem = z.infer<z.ZodObject<typeof itemFields>>

/** An event in a list, as {@link itemFields} publish it. */
export function listedItem(
  { event, key, percentile }: Scored,
  rank: number,
  title: string = event.title,
): ListedItem {
  const { source, sourceId, url, points, comments } = event
  const provider = hypeProviderOf(source)
  return {
    key,
    source,
    ...(provider === null ? {} : { provider }),
    sourceId,
    rank,
    title,
    url,
    discussionUrl: discussionUrl(source, sourceId),
    points,
    comments,
    publishedAt: formatInstant(event.publishedAt),
    percentile,
  }
}

/** The list of code-hosting items, which has no items yet. */
export const githubSchema = z.object({ status: z.literal('collecting'), items: z.array(z.never()).max(0) })
