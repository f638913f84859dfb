import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { parseFeed } from '@rowanmanning/feed-parser'
import FeedParser from 'feedparser'
import { validateXML } from 'xmllint-wasm'
import type { FeedEvent } from '../../src/domain/feed/columns.ts'
import type { ItemDetails } from '../../src/domain/feed/live-source.ts'
import { rankLivePeriods } from '../../src/domain/feed/rank-live.ts'
import { sealSnapshot } from '../../src/domain/feed/snapshot.ts'
import type { SealedSnapshot } from '../../src/domain/feed/snapshot.ts'
import type { FeedStore } from '../../src/domain/ports.ts'
import { NOW } from './signals.ts'

/** Seals events, and what their sources say of them, as of an instant. */
export function sealEvents(
  events: readonly FeedEvent[],
  at = NOW,
  details: ReadonlyMap<string, ItemDetails> = new Map(),
): SealedSnapshot {
  return sealSnapshot(rankLivePeriods(events, at), details, at)
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

/** What a feed reader makes of one item, whichever parser it stands on. */
interface ReadItem {
  id: string | null
  title: string | null
  link: string | null
  publishedAt: string | null
}

/** A reader on fast-xml-parser. It decodes entities of HTML in titles once more than XML asks for. */
export function readWithFastXml(text: string): { title: string | null; items: ReadItem[] } {
  const { title, items } = parseFeed(text)
  return {
    title,
    items: items.map((item) => ({
      id: item.id,
      title: item.title,
      link: item.url,
      publishedAt: item.published?.toISOString() ?? null,
    })),
  }
}

/** A reader on sax, with the elements as they stand in the document, their names in lower case. */
export async function readWithSax(
  text: string,
): Promise<(ReadItem & { element: (name: string) => Record<string, unknown> | undefined })[]> {
  const parser = new FeedParser({ addmeta: false, resume_saxerror: false })
  const failed = new Promise<never>((_, reject) => void parser.once('error', reject))
  failed.catch(() => undefined)
  Readable.from([Buffer.from(text)]).pipe(parser)
  const items: Awaited<ReturnType<typeof readWithSax>> = []
  const read = async (): Promise<void> => {
    for await (const item of parser) {
      const fields = item as unknown as Record<string, Record<string, unknown> | undefined>
      const title = fields['rss:title'] ?? fields['atom:title']
      items.push({
        id: item.guid,
        title: typeof title?.['#'] === 'string' ? title['#'] : null,
        link: item.link,
        publishedAt: item.pubdate?.toISOString() ?? null,
        element: (name) => fields[name],
      })
    }
  }
  await Promise.race([read(), failed])
  return items
}

/** What libxml2 finds wrong with a document by the grammar of its format (test/fixtures/feeds). */
export async function complaintsOfLibxml(text: string, format: 'rss' | 'atom'): Promise<string[]> {
  const schema = readFileSync(
    fileURLToPath(new URL(`../fixtures/feeds/${format}.rng`, import.meta.url)),
    'utf8',
  )
  const { valid, errors, rawOutput } = await validateXML({ xml: text, schema, extension: 'relaxng' })
  const complaints = errors.map(({ rawMessage }) => rawMessage)
  return valid || complaints.length > 0 ? complaints : [rawOutput]
}

const ITEM_MEMBERS = new Set([
  'id',
  'url',
  'external_url',
  'title',
  'content_html',
  'content_text',
  'summary',
  'image',
  'banner_image',
  'date_published',
  'date_modified',
  'authors',
  'tags',
  'language',
  'attachments',
])

const FEED_MEMBERS = new Set([
  'version',
  'title',
  'home_page_url',
  'feed_url',
  'description',
  'user_comment',
  'next_url',
  'icon',
  'favicon',
  'authors',
  'language',
  'expired',
  'hubs',
  'items',
])

/** What breaks the rules of JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/). */
export function complaintsOfJsonFeed(text: string): string[] {
  const complaints: string[] = []
  const check = (holds: boolean, what: string): void => void (holds || complaints.push(what))
  const isUrl = (value: unknown): boolean => typeof value === 'string' && /^https?:\/\/[^\s]+$/.test(value)
  const known = (value: Record<string, unknown>, names: ReadonlySet<string>, where: string): void => {
    for (const [name, member] of Object.entries(value)) {
      if (!name.startsWith('_')) check(names.has(name), `${where} has the unknown member ${name}`)
      else check(typeof member === 'object' && !name.includes('.'), `${where}.${name} is no extension`)
    }
  }
  const authors = (value: unknown, where: string): void => {
    if (value === undefined) return
    check(Array.isArray(value), `${where}.authors is no array`)
    for (const author of value as Record<string, unknown>[])
      check(Boolean(author['name'] ?? author['url'] ?? author['avatar']), `${where} has an empty author`)
  }
  const feed = JSON.parse(text) as Record<string, unknown>
  known(feed, FEED_MEMBERS, 'the feed')
  check(feed['version'] === 'https://jsonfeed.org/version/1.1', 'the version is not 1.1')
  check(typeof feed['title'] === 'string', 'the feed has no title')
  check(isUrl(feed['feed_url']) && isUrl(feed['home_page_url']), 'the feed has no addresses')
  authors(feed['authors'], 'the feed')
  check(Array.isArray(feed['items']), 'the feed has no items')
  const items = feed['items'] as Record<string, unknown>[]
  check(new Set(items.map(({ id }) => id)).size === items.length, 'an id stands twice')
  for (const [index, item] of items.entries()) {
    const where = `item ${index}`
    known(item, ITEM_MEMBERS, where)
    check(typeof item['id'] === 'string' && item['id'] !== '', `${where} has no id`)
    check(typeof (item['content_text'] ?? item['content_html']) === 'string', `${where} has no content`)
    check(item['url'] === undefined || isUrl(item['url']), `${where} has a bad url`)
    const date = item['date_published']
    check(typeof date === 'string' && !Number.isNaN(Date.parse(date)), `${where} has a bad date`)
    authors(item['authors'], where)
    const tags = (item['tags'] ?? []) as unknown[]
    check(Array.isArray(tags) && tags.every((tag) => typeof tag === 'string'), `${where} has bad tags`)
  }
  return complaints
}
