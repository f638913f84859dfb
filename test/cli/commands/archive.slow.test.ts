import { mkdirSync, symlinkSync, writeFileSync, existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { run, temporaryFolder } from '../../support/dash.ts'
import { filesOfFolder } from '../../support/temporary-folder.ts'
import { AS_OF, publishDays, publishedWorkspace, sampleSignals } from '../../support/workspace.ts'
import { signedWorkspace } from '../../support/exports.ts'
import { addDays } from '../../../src/domain/time.ts'
import type { CopyReport } from '../../../src/jobs/archive/copy-archive.ts'
import type { ExportReport } from '../../../src/jobs/archive/export-archive.ts'

/** Creates two publications and a gap. */
const DAYS = [addDays(AS_OF, -2), AS_OF]

function copy({ folder }: { folder: string }, to: readonly string[], cwd = '/') {
  return run(['copy-archive', '--data-dir', folder, '--json', '--to', ...to], { cwd })
}

test('a copy in a new data folder passes its audit', async () => {
  const source = await publishedWorkspace(DAYS)
  const target = join(temporaryFolder(), 'new', 'data')
  const first = await copy(source, [target])
  expect([first.code, first.stderr]).toEqual([0, ''])
  const copied = { copied: 3, unchanged: 0 }
  expect(JSON.parse(first.stdout)).toMatchObject({ objects: { copied: 2 }, heads: copied, entries: copied })
  const audit = await run(['verify-archive', '--data-dir', target, '--json'])
  expect([audit.code, JSON.parse(audit.stdout)]).toMatchObject([0, { ok: true, findings: [], objects: 2 }])
})

test('an env file may name both halves of the target', async () => {
  const source = await publishedWorkspace([AS_OF])
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'ledger'))
  mkdirSync(join(folder, 'feed'))
  const urlOf = (...path: string[]): string => pathToFileURL(join(folder, ...path)).href
  const urls = { LEDGER: urlOf('ledger', 'l.db'), FEED: urlOf('feed', 'f.db'), STORE: urlOf('store') }
  const lines = Object.entries(urls).map(([name, url]) => `DASH_${name}_URL=${url}\n`)
  writeFileSync(join(folder, 'target.env'), lines.join(''))
  const { code, stdout } = await copy(source, ['target.env'], folder)
  expect([code, (JSON.parse(stdout) as CopyReport).entries]).toEqual([0, { copied: 1, unchanged: 0 }])
  expect(filesOfFolder(join(folder, 'store'))).toEqual(filesOfFolder(source.objectsPath))
})

test('the archive itself, under any name, and one half of a target are refused', async () => {
  const source = await publishedWorkspace([AS_OF])
  const link = join(temporaryFolder(), 'link')
  symlinkSync(source.folder, link)
  for (const to of [[source.folder], [`${source.folder}/.`], [link]]) {
    const { code, stderr } = await copy(source, to)
    expect([code, stderr], to.join(' ')).toEqual([64, expect.stringContaining('the archive itself')])
  }
  for (const to of [
    ['http://127.0.0.1:1'],
    ['s3://bucket/prod.env'],
    [join(source.folder, 'a'), join(source.folder, 'b')],
  ]) {
    const { code, stderr } = await copy(source, to)
    expect([code, stderr]).toEqual([64, expect.stringContaining('is not one whole target')])
  }
})

test('a missing env file as target is refused, and no folder gets its name', async () => {
  const missing = join(temporaryFolder(), 'target.env')
  const { code, stderr } = await copy(await publishedWorkspace([AS_OF]), [missing])
  expect([code, stderr]).toEqual([64, expect.stringContaining(`--to "${missing}" cannot be read`)])
  expect(existsSync(missing)).toBe(false)
})

const exportOf = ({ folder }: { folder: string }, args: readonly string[]) =>
  run(['export', ...args, '--data-dir', folder])

test('an export creates a folder that all users may read, and the next one writes nothing', async () => {
  const workspace = await signedWorkspace([AS_OF, addDays(AS_OF, 1)])
  const site = join(temporaryFolder(), 'new', 'site')
  // A login shell lets all users read new files; cron may not.
  const umask = process.umask(0o077)
  onTestFinished(() => void process.umask(umask))
  const stdout = 'exported: dash.example/tlog/year, 2 entries; 10 files written\n'
  expect(await exportOf(workspace, [site])).toEqual({ code: 0, stdout, stderr: '' })
  expect(statSync(site).mode & 0o777).toBe(0o755)
  expect(readdirSync(site).sort()).toEqual(['_headers', 'index.json', 'objects', 'tlog'])
  const again = await exportOf(workspace, [site, '--json'])
  expect(JSON.parse(again.stdout)).toMatchObject({
    files: 10,
    written: 0,
    unchanged: 10,
    bytes: 0,
    checkpoint: { origin: 'dash.example/tlog/year', size: 2 },
  } satisfies Partial<ExportReport>)
})

test('an export says how many entries a publisher without its key left out, and the doctor warns', async () => {
  const { log: _key, ...unsigned } = await signedWorkspace([AS_OF])
  const day = addDays(AS_OF, 1)
  await unsigned.feed.importSignals(sampleSignals(day))
  await publishDays(unsigned, [day])
  const { code, stderr } = await exportOf(unsigned, [join(temporaryFolder(), 'site')])
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/^not exported: 1 entry without a signed checkpoint; /),
  ])
  const doctor = await run(['doctor', '--offline', '--data-dir', unsigned.folder])
  expect(doctor.stdout).toContain('warning log.signed: the newest checkpoint has 1 of 2 entries\n')
})

test('a target that overlaps the object store is refused', async () => {
  const workspace = await signedWorkspace([AS_OF])
  for (const target of [workspace.folder, workspace.objectsPath, join(workspace.objectsPath, 'site')]) {
    const { code, stderr } = await exportOf(workspace, [target])
    expect([code, stderr]).toEqual([64, expect.stringContaining('overlaps the object store')])
  }
  const copied = await copy(workspace, [join(workspace.objectsPath, 'site')])
  expect([copied.code, copied.stderr]).toEqual([64, expect.stringContaining('overlaps the object store')])
  expect(existsSync(join(workspace.objectsPath, 'site'))).toBe(false)
})
