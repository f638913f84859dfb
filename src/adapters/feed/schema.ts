import { blob, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { AnySQLiteColumn } from 'drizzle-orm/sqlite-core'

/** Tables of the feed database; migrations/feed defines and explains their indexes. */

/** Columns and primary key of a table with one row per item. */
const item = { source: text('source').notNull(), sourceId: text('source_id').notNull() }
const byItem = ({ source, sourceId }: Record<keyof typeof item, AnySQLiteColumn>) => [
  primaryKey({ columns: [source, sourceId] }),
]

export const signals = sqliteTable(
  'signals',
  {
    ...item,
    day: text('day').notNull(),
    title: text('title').notNull(),
    url: text('url'),
    points: integer('points'),
    comments: integer('comments'),
    publishedAt: integer('published_at'),
    titleProvenance: text('title_provenance'),
  },
  (table) => [primaryKey({ columns: [table.source, table.sourceId, table.day] })],
)

export const events = sqliteTable(
  'events',
  {
    ...item,
    firstDay: text('first_day').notNull(),
    lastDay: text('last_day').notNull(),
    earliestPublishedAt: integer('earliest_published_at'),
    latestPublishedAt: integer('latest_published_at'),
  },
  byItem,
)

export const sourceDays = sqliteTable(
  'source_days',
  { day: text('day').notNull(), source: text('source').notNull() },
  (table) => [primaryKey({ columns: [table.day, table.source] })],
)

export const verifiedTitles = sqliteTable(
  'verified_titles',
  {
    ...item,
    title: text('title').notNull(),
    provenance: text('provenance').notNull(),
    verifiedAt: integer('verified_at').notNull(),
  },
  byItem,
)

/** Has one row: a number that grows with every import that changes something. */
export const revision = sqliteTable('revision', {
  id: integer('id').primaryKey(),
  number: integer('number').notNull(),
})

export const itemDetails = sqliteTable(
  'item_details',
  {
    ...item,
    author: text('author'),
    tags: text('tags').notNull(),
    description: text('description'),
    collectedAt: integer('collected_at').notNull(),
  },
  byItem,
)

export const articles = sqliteTable('articles', {
  id: integer('id').primaryKey(),
  ...item,
  text: text('text').notNull(),
  provenance: text('provenance').notNull(),
  fetchedAt: integer('fetched_at').notNull(),
})

/** Responses of sources with their validators, by URL. */
export const keptResponses = sqliteTable('kept_answers', {
  url: text('url').primaryKey(),
  etag: text('etag'),
  lastModified: text('last_modified'),
  body: text('body').notNull(),
  keptAt: integer('kept_at').notNull(),
})

/** Hosts of sources, and the end of the pause they requested. */
export const sourcePauses = sqliteTable('source_pauses', {
  host: text('host').primaryKey(),
  pausedUntil: integer('paused_until').notNull(),
})

export const snapshots = sqliteTable('snapshots', {
  id: text('id').primaryKey(),
  generatedAt: integer('generated_at').notNull(),
  feeds: text('feeds').notNull(),
})

export const snapshotFeeds = sqliteTable(
  'snapshot_feeds',
  {
    snapshotId: text('snapshot_id').notNull(),
    sort: text('sort').notNull(),
    part: integer('part').notNull(),
    payload: blob('payload').notNull(),
  },
  (table) => [primaryKey({ columns: [table.snapshotId, table.sort, table.part] })],
)

export const articleTries = sqliteTable(
  'article_tries',
  {
    ...item,
    tries: integer('tries').notNull(),
    reason: text('reason').notNull(),
    triedAt: integer('tried_at').notNull(),
    nextTryAt: integer('next_try_at'),
  },
  byItem,
)

/** Events that the search index does not contain yet. */
export const searchPending = sqliteTable(
  'search_pending',
  {
    ...item,
    mark: integer('mark').notNull(),
  },
  byItem,
)

/** Has one row: the active set of index tables, and the progress of a rebuild of the other. */
export const searchState = sqliteTable('search_state', {
  id: integer('id').primaryKey(),
  step: integer('step').notNull(),
  active: text('active').notNull(),
  format: integer('format').notNull(),
  nextNumber: integer('next_number').notNull(),
  build: integer('build'),
  afterSource: text('after_source').notNull(),
  afterSourceId: text('after_source_id').notNull(),
})

/** The two sets of the search index have the same columns. */
const searchDocuments = {
  id: integer('id').primaryKey(),
  ...item,
  title: text('title').notNull(),
  url: text('url'),
  page: text('page'),
  firstDay: text('first_day').notNull(),
  lastDay: text('last_day').notNull(),
  publishedAt: integer('published_at'),
  points: integer('points'),
  comments: integer('comments'),
  words: text('words').notNull(),
}

export const searchDocumentsA = sqliteTable('search_documents_a', searchDocuments)
export const searchDocumentsB = sqliteTable('search_documents_b', searchDocuments)
