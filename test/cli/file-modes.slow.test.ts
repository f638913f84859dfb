import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { dash, serve, temporaryFolder } from '../support/dash.ts'

/** The usual umask of a login shell, which lets all users read new files. */
const wrapper = ['sh', '-c', 'umask 022; exec "$@"', 'sh'] as const

const DAY_MS = 86_400_000

/** Returns the paths below a folder with their modes, in octal. */
function modesOf(folder: string): [string, string][] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.map((entry) => {
    const path = join(entry.parentPath, entry.name)
    return [relative(folder, path), modeOf(path)]
  })
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}

test('init lets all users enter the parents of a data folder that it creates, and only its owner the folder', async () => {
  const cwd = temporaryFolder()
  const data = ['--data-dir', join(cwd, 'srv/dash/data')]
  expect((await dash(['init', '--yes', ...data], { cwd, wrapper })).code).toBe(0)
  expect(['srv', 'srv/dash', 'srv/dash/data'].map((path) => modeOf(join(cwd, path)))).toEqual([
    '755',
    '755',
    '700',
  ])
})

test('only the owner may read files in a data folder, whatever created them', async () => {
  const cwd = temporaryFolder()
  const publishedAt = new Date(Date.now() - 2 * DAY_MS).toISOString()
  const row = {
    source: 'hn',
    sourceId: '1',
    day: publishedAt.slice(0, 10),
    title: 'One',
    url: null,
    points: 1,
  }
  writeFileSync(join(cwd, 'day.ndjson'), JSON.stringify({ ...row, comments: 0, publishedAt }))
  const provenance = ['--title-provenance', 'hn:firebase-item']
  const data = ['--data-dir', join(cwd, 'data')]
  expect(
    (await dash(['import', 'signals', 'day.ndjson', ...provenance, ...data], { cwd, wrapper })).code,
  ).toBe(0)
  expect((await dash(['publish-year', '--once', ...data], { cwd, wrapper })).code).toBe(0)
  const server = await serve(data, { cwd, wrapper })
  await (await fetch(`${server.url}/api/search?q=one`)).text()
  expect((await dash(['copy-archive', '--to', join(cwd, 'copy'), ...data], { cwd, wrapper })).code).toBe(0)
  const key = ['log-key', 'new', join(cwd, 'data/log.key')]
  const env = { DASH_BASE_URL: 'https://dash.example' }
  expect((await dash(key, { cwd, wrapper, env })).code).toBe(0)
  const modes = modesOf(cwd).filter(([path]) => /^(?:data|copy)/.test(path))
  expect(modes.map(([path]) => path)).toEqual(
    expect.arrayContaining([
      'data/state.db',
      'data/state.db-wal',
      'data/ledger.db',
      'data/log.key.signed',
      'data/objects/sha256',
      'copy',
    ]),
  )
  expect(modes.filter(([, mode]) => !/^[0-7]00$/.test(mode))).toEqual([])
})
