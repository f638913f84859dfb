import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Client } from '@libsql/client'
import { onTestFinished } from 'vitest'
import { libsqlFeed } from '../../../src/adapters/feed/feed.ts'
import { database } from '../../../src/adapters/libsql/database.ts'
import { migrationsOf } from '../../../src/adapters/libsql/migrations.ts'
import type { FeedStore } from '../../../src/domain/ports.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { rawClient } from '../libsql/lock-holder.ts'

export interface OpenFeed {
  feed: FeedStore
  path: string
  /** A client past the store, for what somebody else may do to its file. */
  raw: () => Client
}

/** A feed store in a folder of the test's own, closed and removed when it ends. */
export async function openFeed(): Promise<OpenFeed> {
  return reopenFeed(join(await temporaryFolder(), 'feed.db'))
}

export function reopenFeed(path: string): OpenFeed {
  const { feed, close } = storeAt(path)
  onTestFinished(close)
  return { feed, path, raw: () => rawClient(pathToFileURL(path).href) }
}

/** What gives one empty store after the other, for properties with many runs; each must be closed. */
export async function feedFactory(): Promise<() => Promise<{ feed: FeedStore; close: () => void }>> {
  const folder = await temporaryFolder()
  const empty = join(folder, 'empty.db')
  const { feed, close } = storeAt(empty)
  await feed.ping()
  close()
  let copies = 0
  return async () => {
    const path = join(folder, `copy-${(copies += 1)}.db`)
    await copyFile(empty, path)
    return storeAt(path)
  }
}

function storeAt(path: string): { feed: FeedStore; close: () => void } {
  const migrationsFolder = migrationsOf('feed')
  const store = database({
    url: pathToFileURL(path).href,
    migrationsFolder,
    nativeBusyMs: 10,
    retryMs: 5_000,
  })
  return { feed: libsqlFeed(store), close: () => store.close() }
}
