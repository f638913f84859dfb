import { statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Client } from '@libsql/client'

/**
 * How a write of a file is kept when its transaction has ended (decisions/0001 and 0027).
 *
 * - `rollback`: against a power cut
 * - `wal`: likewise, in a database that has a write-ahead log
 * - `wal-fast`: against the death of the process; against a power cut from {@link syncLog} on
 */
export type Journal = 'rollback' | 'wal' | 'wal-fast'

/**
 * FULL does not sync the folder a rollback journal is deleted from, so that a power cut could bring the journal back and
 * undo what was acknowledged. A log is never written back by a commit, but by {@link shortenLog} and by the last
 * connection that closes, which keep writers out meanwhile: this SQLite can lose commits of a log that is begun anew
 * while it is written back.
 */
export const JOURNAL_SETTINGS = {
  rollback: 'PRAGMA synchronous = EXTRA',
  wal: 'PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = EXTRA',
  'wal-fast': 'PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL',
} satisfies Record<Journal, string>

export function logOf(databasePath: string): string {
  return `${databasePath}-wal`
}

/** Resolves when a power cut can take nothing that is in a log. Nobody waits for it: neither writers nor this thread. */
export async function syncLog(path: string): Promise<void> {
  await sync(path, 'r+')
  await sync(dirname(path), 'r')
}

async function sync(path: string, flags: string): Promise<void> {
  const file = await openThere(path, flags)
  try {
    await file?.sync()
  } finally {
    await file?.close()
  }
}

/** A log that is not there holds nothing. */
async function openThere(path: string, flags: string): Promise<Awaited<ReturnType<typeof open>> | null> {
  try {
    return await open(path, flags)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

/** A log grows to this size before it is written back, which holds up this thread and every writer. */
const LOG_MAX_BYTES = 32 * 1024 * 1024

/** How long writing a log back waits for whoever writes or reads, in milliseconds; this thread waits too. */
const LOG_WAIT_MS = 250

export function isLongLog(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_MAX_BYTES
}

/** Writes a log back and empties it, unless somebody stands in the way for long: then it is asked for again later. */
export async function shortenLog(client: Client): Promise<void> {
  const { rows } = await client.execute('PRAGMA busy_timeout')
  await client.executeMultiple(`PRAGMA busy_timeout = ${LOG_WAIT_MS}`)
  try {
    await client.execute('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    await client.executeMultiple(`PRAGMA busy_timeout = ${Number(rows[0]?.[0])}`)
  }
}
