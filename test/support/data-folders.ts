import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { addDays } from '../../src/domain/time.ts'
import type { Day } from '../../src/domain/time.ts'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import { dash, temporaryFolder } from './dash.ts'
import { storiesOf } from './ndjson.ts'
import { publishDays, reopenWorkspace } from './workspace.ts'

/** A data folder on which the next publish is that of `day`. */
export interface PreparedFolder {
  folder: string
  day: Day
  /** The days already published, which nothing may lose. */
  earlier: Day[]
}

/**
 * A data folder with signals imported, ready for the publish of the last complete day.
 *
 * @param earlierDays how many days before it are published already; with none the ledger is still to be created
 */
export async function preparedFolder(earlierDays = 0, stories = 200): Promise<PreparedFolder> {
  const day = lastCompleteDay(Date.now())
  const folder = join(temporaryFolder(), 'data')
  const earlier = Array.from({ length: earlierDays }, (_, index) => addDays(day, index - earlierDays))
  const stdin = storiesOf(earlier[0] ?? day, stories)
  const imported = await dash(['import', 'signals', '-', '--data-dir', folder], { stdin })
  expect(imported.code).toBe(0)
  if (earlier.length > 0) {
    const workspace = reopenWorkspace(folder)
    await publishDays(workspace, earlier)
    workspace.close()
  }
  return { folder, day, earlier }
}

/** Lets `work` have a copy of a folder, which is removed afterwards. */
export async function withCopy<T>(
  folder: string,
  name: string,
  work: (copy: string) => Promise<T>,
): Promise<T> {
  const copy = `${folder}-${name}`
  cpSync(folder, copy, { recursive: true })
  try {
    return await work(copy)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/** Runs `work` on each item, `lanes` at a time, and gives the results in the order of the items. */
export async function inLanes<Item, Result>(
  items: readonly Item[],
  lanes: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const queue = items.entries()
  const lane = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await work(item, index)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return results
}
