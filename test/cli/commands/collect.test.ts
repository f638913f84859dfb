import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { expect, test } from 'vitest'
import type { LiveSource } from '../../../src/domain/ports.ts'
import { collectSources } from '../../../src/jobs/collect-sources.ts'
import { DAY, NOW, replay } from '../../support/replay/live-world.ts'
import { storiesOf } from '../../support/signals.ts'
import { run } from '../../support/dash.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

test('a collection stores the details of a batch before its signals, so that every item has details', async () => {
  const world = await replay()
  const folder = join(await temporaryFolder(), 'data')
  mkdirSync(folder)
  const stdin = storiesOf(DAY, 1)
  expect((await run(['import', 'signals', '-', '--data-dir', folder], { stdin })).code).toBe(0)
  const client = createClient({ url: `file:${join(folder, 'feed.db')}` })
  await client.execute(
    "CREATE TRIGGER no_details BEFORE INSERT ON item_details BEGIN SELECT RAISE(ABORT, 'no details'); END",
  )
  const args = ['collect', '--source', 'lobsters', '--json', '--data-dir', folder]
  const { code, stderr } = await run(args, { env: { ...world.env, DASH_ARTICLE_MAX_PER_RUN: '0' } })
  const { rows } = await client.execute('SELECT DISTINCT source FROM signals')
  client.close()
  expect([code, stderr]).toEqual([74, expect.stringContaining('no details')])
  expect(rows).toEqual([expect.objectContaining({ source: 'hn' })])
})

test('a collection whose store fails stops every other source before its next batch', async () => {
  const MOST = 1_000
  const fault = new Error('the disk is gone')
  const batch = (source: string): never =>
    ({ signals: [{ source }], details: [], badRows: [], failures: [], skews: [] }) as never
  let read = 0
  const endless: LiveSource = {
    source: 'hn',
    missingSettings: [],
    async *read(_day, signal) {
      for (; read < MOST && !signal.aborted; read += 1) {
        await new Promise(setImmediate)
        yield batch('hn')
      }
    },
  }
  const failing: LiveSource = {
    source: 'lobsters',
    missingSettings: [],
    async *read() {
      await new Promise(setImmediate)
      yield batch('lobsters')
    },
  }
  const importSignals = ([signal]: readonly { source: string }[]) =>
    signal?.source === 'hn'
      ? Promise.resolve({ inserted: 1, replaced: 0, unchanged: 0 })
      : Promise.reject(fault)
  const ports = {
    feed: { importSignals, saveDetails: () => Promise.resolve() },
    clock: () => NOW,
    onProgress: () => undefined,
  }
  const collecting = collectSources(ports, [endless, failing], new AbortController().signal)
  await expect(collecting).rejects.toBe(fault)
  expect(read).toBeLessThan(10)
})
