import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { addDays } from '../../../../src/domain/time.ts'
import type { ExportReport } from '../../../../src/jobs/archive/export-archive.ts'
import { dash, temporaryFolder } from '../../../support/dash.ts'
import type { RunOptions } from '../../../support/dash.ts'
import { signedWorkspace } from '../../../support/exports.ts'
import { serveFiles } from '../../../support/static-host.ts'
import { AS_OF } from '../../../support/workspace.ts'

const DAYS = [AS_OF, addDays(AS_OF, 1)]

/** A login shell lets all users read new files; cron may not. */
const wrapper = ['sh', '-c', 'umask 077; exec "$@"', 'sh'] as const

function exportOf({ folder }: { folder: string }, args: readonly string[], options: RunOptions = {}) {
  return dash(['export', ...args, '--data-dir', folder], options)
}

/** Returns everything below a folder that some user may not read. */
function unreadable(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => {
    const stat = statSync(join(folder, name))
    return (stat.mode & (stat.isDirectory() ? 0o005 : 0o004)) === 0
  })
}

test('an export creates its folder, and all users may read it whatever the umask is', async () => {
  const workspace = await signedWorkspace(DAYS)
  const site = join(temporaryFolder(), 'new', 'site')
  const first = await exportOf(workspace, [site], { wrapper })
  expect(first).toMatchObject({
    code: 0,
    stdout: 'exported: dash.example/tlog/year, 2 entries; 10 files written\n',
    stderr: '',
  })
  expect(unreadable(site)).toEqual([])
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

test('an export at a static host is sound', async () => {
  const site = temporaryFolder()
  await exportOf(await signedWorkspace(DAYS), [site])
  const { url } = await serveFiles(site)
  const args = ['verify-archive', '--url', url, '--state', join(temporaryFolder(), 'state')]
  expect(await dash(args)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^sound: 2 publications, /) as unknown,
  })
})

test('a target that overlaps the object store is refused', async () => {
  const workspace = await signedWorkspace([AS_OF])
  for (const target of [workspace.folder, workspace.objectsPath, join(workspace.objectsPath, 'site')]) {
    const { code, stderr } = await exportOf(workspace, [target])
    expect([code, stderr]).toEqual([64, expect.stringContaining('overlaps the object store')])
  }
  expect(existsSync(join(workspace.objectsPath, 'site'))).toBe(false)
})
