import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { expect, test } from 'vitest'
import { DAY, replay } from '../../support/replay/live-world.ts'
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
