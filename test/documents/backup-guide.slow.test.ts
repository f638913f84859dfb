import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import { dash, serve, temporaryFolder } from '../support/dash.ts'
import { SAMPLE_ARCHIVE } from '../support/legacy-archive.ts'
import { storiesOf } from '../support/ndjson.ts'
import { shell, shellBlocks } from '../support/shell.ts'

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** What the guide calls `dash`. */
const DASH = `dash() { "${process.execPath}" "${PROGRAM}" "$@"; }\nset -e\n`

const [backUp = '', copyFeed = '', keepHead = '', restore = '', ...others] = shellBlocks('docs/backup.md')

/** A folder with a data folder in it that holds an older archive and yesterday's publication. */
async function place(): Promise<string> {
  const folder = temporaryFolder()
  const data = ['--data-dir', join(folder, 'dash-data')]
  const stdin = storiesOf(lastCompleteDay(Date.now()), 5)
  for (const [args, input] of [
    [['import', 'archive', SAMPLE_ARCHIVE, ...data], ''],
    [['import', 'signals', '-', ...data], stdin],
  ] as const) {
    expect(await dash(args, { stdin: input })).toMatchObject({ code: 0 })
  }
  return folder
}

async function publish(folder: string): Promise<void> {
  const published = await dash(['publish-year', '--once', '--data-dir', join(folder, 'dash-data')])
  expect(published).toMatchObject({ code: 0 })
}

async function answerOf(dataDir: string): Promise<Buffer> {
  const { url } = await serve(['--data-dir', dataDir])
  const response = await fetch(`${url}/api/feed/history?sort=year`)
  expect(response.status).toBe(200)
  return Buffer.from(await response.arrayBuffer())
}

test('the drill restores an archive that is sound and answers with the same bytes', async () => {
  expect(others).toEqual([])
  const folder = await place()
  await publish(folder)
  const said = await shell([DASH, backUp, copyFeed, keepHead, restore].join('\n'), folder)
  expect(said.lines.at(-1)).toMatch(/^sound: 7 publications, 7 objects/)
  expect(said.code).toBe(0)
  expect(await answerOf(join(folder, 'dash-restored'))).toEqual(await answerOf(join(folder, 'dash-data')))

  const again = await shell([DASH, backUp].join('\n'), folder)
  expect(again).toMatchObject({ code: 0, lines: [expect.stringContaining('0 objects, 0 ledger rows')] })
})

test('the drill finds a backup that is older than the head that was kept', async () => {
  const folder = await place()
  expect(await shell([DASH, backUp].join('\n'), folder)).toMatchObject({ code: 0 })
  const older = join(folder, 'older')
  cpSync(join(folder, 'dash-backup'), older, { recursive: true })
  await publish(folder)
  expect(await shell([DASH, backUp, copyFeed, keepHead].join('\n'), folder)).toMatchObject({ code: 0 })
  cpSync(join(folder, 'dash-backup', 'feed.db'), join(older, 'feed.db'))
  const said = await shell([DASH, restore].join('\n'), folder, { BACKUP: older })
  expect(said.code).toBe(65)
  expect(said.lines.join('\n')).toMatch(/head_mismatch \.\/kept-head\.json: .*the ledger ends at entry/)
})

test('a damaged backup is refused before anything of it is served', async () => {
  const folder = await place()
  await publish(folder)
  expect(await shell([DASH, backUp, copyFeed, keepHead].join('\n'), folder)).toMatchObject({ code: 0 })
  const objects = join(folder, 'dash-backup', 'archive', 'objects', 'sha256')
  const object = readdirSync(objects, { recursive: true, encoding: 'utf8' }).find((name) =>
    /\/[0-9a-f]{64}$/.test(name),
  )
  const damage = `chmod u+w "${join(objects, object ?? '')}"; printf x >> "${join(objects, object ?? '')}"`
  const said = await shell([DASH, damage, restore].join('\n'), folder)
  expect(said.code).toBe(74)
  expect(said.lines.at(-1)).toMatch(/^error: object [0-9a-f]{64} of .* has \d+ bytes instead of \d+$/)
  const { url } = await serve(['--data-dir', join(folder, 'dash-restored')])
  expect((await fetch(`${url}/api/feed/history?sort=year`)).status).toBe(404)
})
