import { readFileSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import FeedParser from 'feedparser'
import type { Item } from 'feedparser'
import { validateXML } from 'xmllint-wasm'
import { z } from 'zod'
import type { FeedEvent } from '../../../src/domain/feed/columns.ts'
import type { LiveFeed } from '../../../src/domain/feed/live-items.ts'
import type { ItemDetails } from '../../../src/domain/feed/live-source.ts'
import { rankLivePeriods } from '../../../src/domain/feed/live-sort.ts'
import { sealSnapshot } from '../../../src/domain/feed/snapshot.ts'
import type { SealedSnapshot } from '../../../src/domain/feed/snapshot.ts'
import type { FeedStore } from '../../../src/domain/ports.ts'
import { NOW } from '../../support/signals.ts'

/** Seals events and their details as of an instant. */
export function sealEvents(
  events: readonly FeedEvent[],
  at = NOW,
  details: ReadonlyMap<string, ItemDetails> = new Map(),
  previous: readonly LiveFeed[] = [],
): SealedSnapshot {
  return sealSnapshot(rankLivePeriods(events, at), details, at, previous)
}

/** As {@link sealEvents}, and stores the snapshot. */
export async function keepSnapshot(
  feed: FeedStore,
  ...args: Parameters<typeof sealEvents>
): Promise<SealedSnapshot> {
  const sealed = sealEvents(...args)
  expect(await feed.saveSnapshot(sealed, { discardLater: false })).toMatchObject({ saved: true })
  return sealed
}

/** One item as a feed parser reads it. */
interface ParsedItem {
  id: string | null
  title: string | null
  link: string | null
  publishedAt: string | null
}

/** Reads a feed with sax, with access to the elements by lower-case name. */
export async function readWithSax(
  text: string,
): Promise<(ParsedItem & { element: (name: string) => Record<string, unknown> | undefined })[]> {
  const items: Awaited<ReturnType<typeof readWithSax>> = []
  const parser = new FeedParser({ addmeta: false, resume_saxerror: false })
  const take = new Writable({
    objectMode: true,
    write(item: Item, _encoding, done) {
      const fields = item as unknown as Record<string, Record<string, unknown> | undefined>
      const title = (fields['rss:title'] ?? fields['atom:title'])?.['#']
      items.push({
        id: item.guid,
        title: typeof title === 'string' ? title : null,
        link: item.link,
        publishedAt: item.pubdate?.toISOString() ?? null,
        element: (name) => fields[name],
      })
      done()
    },
  })
  await pipeline(Readable.from([Buffer.from(text)]), parser, take)
  return items
}

/** Errors of libxml2 for a document by the grammar of its format (test/fixtures/feeds). */
export async function libxmlErrors(xml: string, format: 'rss' | 'atom'): Promise<string[]> {
  const grammar = fileURLToPath(new URL(`../../fixtures/feeds/${format}.rng`, import.meta.url))
  const schema = readFileSync(grammar, 'utf8')
  const { valid, errors, rawOutput } = await validateXML({ xml, schema, extension: 'relaxng' })
  if (valid) return []
  return errors.length > 0 ? errors.map(({ rawMessage }) => rawMessage) : [rawOutput]
}

const address = z.string().regex(/^https?:\/\/[^\s]+$/)
const authors = z.array(z.strictObject({ name: z.string().min(1), url: address.optional() })).optional()

/** The rules of JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/) for the members that are sent. */
const JSON_FEED = z.strictObject({
  version: z.literal('https://jsonfeed.org/version/1.1'),
  title: z.string(),
  home_page_url: address,
  feed_url: address,
  description: z.string().optional(),
  authors,
  items: z.array(
    z
      .strictObject({
        id: z.string().min(1),
        url: address.optional(),
        title: z.string().optional(),
        content_text: z.string().optional(),
        content_html: z.string().optional(),
        date_published: z.iso.datetime(),
        authors,
        tags: z.array(z.string()).optional(),
      })
      .refine(({ content_text, content_html }) => (content_text ?? content_html) !== undefined, 'no content'),
  ),
})

/** Violations of the rules of JSON Feed. */
export function jsonFeedErrors(text: string): string[] {
  const errors: string[] = []
  // An extension is an object whose name begins with an underscore and has no dot.
  const feed: unknown = JSON.parse(text, (name, value: unknown) => {
    if (!name.startsWith('_')) return value
    if (typeof value !== 'object' || name.includes('.')) errors.push(`${name} is no extension`)
    return undefined
  })
  const { data, error } = JSON_FEED.safeParse(feed)
  const ids = data?.items.map(({ id }) => id) ?? []
  if (new Set(ids).size !== ids.length) errors.push('an id stands twice')
  return [...errors, ...(error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`)]
}
