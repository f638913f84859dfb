import type { InStatement } from '@libsql/client'
import { z } from 'zod'
import { isSha256Hex } from '../../domain/digest.ts'
import { LIVE_SORTS, LONGEST_PERIOD_MS } from '../../domain/feed/live-sort.ts'
import type { FeedEvent } from '../../domain/feed/columns.ts'
import { isInstantOf } from '../../domain/feed/snapshot.ts'
import type { SealedSnapshot, Snapshot, SnapshotFeed, SnapshotSaving } from '../../domain/feed/snapshot.ts'
import { isTitleTooLong, saveKey } from '../../domain/feed/source.ts'
import { OBJECT_MAX_BYTES, storageDamaged } from '../../domain/refusal.ts'
import { dayOf } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { asJsonRows, decodeJsonRows, insertRow, selectJsonRows } from '../sqlite/rows.ts'
import type { SqlReader, StoreClient } from '../sqlite/rows.ts'
import { REVISION, readEvents, readVerifiedTitles } from './window.ts'

/** The snapshots of the live periods, and the events they are ranked from. */

export function liveEvents(client: StoreClient, now: Instant): Promise<FeedEvent[]> {
  return client.snapshot(REVISION, async (reader) => {
    const range = { windowStart: now - LONGEST_PERIOD_MS, windowEnd: now + 1, asOfDay: dayOf(now) }
    const events = await readEvents(reader, range)
    const titles = await readVerifiedTitles(
      reader,
      events.filter(({ titleProvenance }) => titleProvenance === null),
    )
    return events.map((event) => {
      const verified = titles.get(saveKey(event.source, event.sourceId))
      if (event.titleProvenance !== null || !verified || isTitleTooLong(verified.title)) return event
      return { ...event, title: verified.title, titleProvenance: verified.provenance }
    })
  })
}

/** Number of snapshots kept, including the newest. */
const KEPT_SNAPSHOTS = 10

/** Bytes of a payload per row. */
const PART_BYTES = 1024 * 1024

/** Inserts a snapshot only if it is the latest; otherwise its parts are deleted as unreferenced. */
const INSERT_SNAPSHOT = `
  INSERT INTO snapshots (id, generated_at, feeds)
  SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM snapshots WHERE generated_at >= ?2)
  ON CONFLICT DO NOTHING`

const DELETE_LATER = 'DELETE FROM snapshots WHERE generated_at > ?'

const DELETE_OLD = `
  DELETE FROM snapshots
  WHERE id NOT IN (SELECT id FROM snapshots ORDER BY generated_at DESC, id DESC LIMIT ${KEPT_SNAPSHOTS})`

const DELETE_PARTS = 'DELETE FROM snapshot_feeds WHERE snapshot_id NOT IN (SELECT id FROM snapshots)'

const NEWEST = asJsonRows(
  'id, generated_at, feeds',
  'SELECT id, generated_at, feeds FROM snapshots ORDER BY generated_at DESC, id DESC LIMIT 1',
)

type NewestRow = [id: string, generatedAt: number, feeds: string]

const SELECT_PART = 'SELECT payload FROM snapshot_feeds WHERE snapshot_id = ? AND sort = ? AND part = ?'

export async function saveSnapshot(
  client: StoreClient,
  { snapshot, payloads }: SealedSnapshot,
  { discardLater }: { discardLater: boolean },
): Promise<SnapshotSaving> {
  const { id, generatedAt, feeds } = snapshot
  const feedsJson = JSON.stringify(feeds.map(({ sort, sha256, byteSize }) => [sort, sha256, byteSize]))
  const deletions: InStatement[] = discardLater ? [{ sql: DELETE_LATER, args: [generatedAt] }] : []
  const results = await client.batch([
    ...deletions,
    { sql: INSERT_SNAPSHOT, args: [id, generatedAt, feedsJson] },
    ...[...payloads].flatMap(([sort, bytes]) => insertParts(id, sort, bytes)),
    DELETE_OLD,
    DELETE_PARTS,
    NEWEST,
  ])
  const newest = decodeJsonRows(results.at(-1)?.rows[0]?.[0], 'the newest snapshot') as NewestRow[]
  for (const [newestId, newestAt] of newest) {
    const time = isInstantOf(newestId, newestAt) ? newestAt : null
    if (newestId !== id || time === null) return { saved: false, newest: { id: newestId, generatedAt: time } }
  }
  const discarded = discardLater ? (results[0]?.rowsAffected ?? 0) : 0
  return { saved: true, removed: discarded + (results.at(-3)?.rowsAffected ?? 0) }
}

function insertParts(id: string, sort: string, bytes: Uint8Array): InStatement[] {
  const count = Math.ceil(bytes.byteLength / PART_BYTES)
  return Array.from({ length: count }, (_, part) => {
    const payload = bytes.slice(part * PART_BYTES, (part + 1) * PART_BYTES)
    return insertRow('snapshot_feeds', { snapshotId: id, sort, part, payload }, 'ON CONFLICT DO NOTHING')
  })
}

const describedFeeds = z
  .array(z.tuple([z.enum(LIVE_SORTS), z.string().refine(isSha256Hex), z.int().min(1).max(OBJECT_MAX_BYTES)]))
  .refine((feeds) => LIVE_SORTS.every((sort) => feeds.filter(([listed]) => listed === sort).length === 1))

/**
 * Reads the snapshot with the latest instant; null if there is none.
 *
 * @throws Refusal `storage_damaged` if its row is invalid
 */
export async function newestSnapshot(reader: SqlReader): Promise<Snapshot | null> {
  const rows = (await selectJsonRows(reader, NEWEST, [], 'the newest snapshot')) as NewestRow[]
  const [row] = rows
  if (!row) return null
  const [id, generatedAt, feedsJson] = row
  if (!isInstantOf(id, generatedAt))
    throw storageDamaged(`the stored time of snapshot ${id} does not match its id: ${generatedAt}`)
  return { id, generatedAt, feeds: parseFeeds(id, feedsJson) }
}

function parseFeeds(id: string, feedsJson: string): SnapshotFeed[] {
  try {
    const feeds = describedFeeds.parse(JSON.parse(feedsJson))
    return feeds.map(([sort, sha256, byteSize]) => ({ sort, sha256, byteSize }))
  } catch (cause) {
    throw storageDamaged(`the row of snapshot ${id} does not match its feeds`, cause)
  }
}

export async function snapshotFeed(
  reader: SqlReader,
  id: string,
  { sort, byteSize }: SnapshotFeed,
): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = []
  for (let part = 0; part * PART_BYTES < byteSize; part += 1) {
    const { rows } = await reader.execute({ sql: SELECT_PART, args: [id, sort, part] })
    const payload = rows[0]?.[0]
    if (!(payload instanceof ArrayBuffer)) return null
    parts.push(new Uint8Array(payload))
  }
  return parts.length === 1 ? (parts[0] ?? null) : Buffer.concat(parts)
}
