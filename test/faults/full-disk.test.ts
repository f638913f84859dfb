import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { lastCompleteDay, windowEnding } from '../../src/domain/year/window.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { audit } from '../support/archive-audit.ts'
import { dash, temporaryFolder } from '../support/dash.ts'
import { storiesOf } from '../support/ndjson.ts'
import { reopenWorkspace } from '../support/workspace.ts'

/** A disk of its own, small enough to fill; needs root. */
function smallDisk(kibibytes: number): string {
  const disk = join(temporaryFolder(), 'disk')
  mkdirSync(disk)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kibibytes}k`, 'tmpfs', disk], {
    encoding: 'utf8',
  })
  expect([mounted.status, mounted.stderr]).toEqual([0, ''])
  onTestFinished(() => void spawnSync('umount', ['-l', disk]))
  return disk
}

test('a disk that fills during an import keeps what was stored, and the import goes on when there is room', async () => {
  const disk = smallDisk(4_096)
  const day = lastCompleteDay(Date.now())
  const data = join(disk, 'data')
  const full = await dash(['import', 'signals', '-', '--data-dir', data], { stdin: storiesOf(day, 20_000) })
  expect(full.code).toBe(74)
  expect(full.stderr).toContain('the disk is full')
  expect(full.stderr.trimEnd().split('\n')).toHaveLength(1)
  const stored = (await reopenWorkspace(data).feed.readWindow(windowEnding(day))).events.length
  expect(stored % 5_000).toBe(0)
  expect(stored).toBeLessThan(20_000)
  spawnSync('mount', ['-o', 'remount,size=32768k', disk])
  const again = await dash(['import', 'signals', '-', '--data-dir', data, '--json'], {
    stdin: storiesOf(day, 20_000),
  })
  expect(JSON.parse(again.stdout)).toMatchObject({ inserted: 20_000 - stored, unchanged: stored })
})

test('a publish on a full disk fails with 74 and leaves nothing half done; with room the next one publishes', async () => {
  const disk = smallDisk(4_096)
  const day = lastCompleteDay(Date.now())
  const data = join(disk, 'data')
  expect(
    (await dash(['import', 'signals', '-', '--data-dir', data], { stdin: storiesOf(day, 500) })).code,
  ).toBe(0)
  expect((await dash(['publish-year', '--dry-run', '--data-dir', data])).code).toBe(0)
  const ballast = join(disk, 'ballast')
  const free = Number(
    spawnSync('df', ['--output=avail', '-k', disk], { encoding: 'utf8' }).stdout.split('\n')[1],
  )
  // Room for the attempt, but not for the object.
  writeFileSync(ballast, Buffer.alloc((free - 40) * 1024))
  const full = await dash(['publish-year', '--once', '--json', '--data-dir', data])
  expect([full.code, JSON.parse(full.stdout)]).toMatchObject([
    74,
    { outcome: 'failed', attempt: 1, sha256: null },
  ])
  expect(await audit(data, day)).toMatchObject({ sound: true, publications: [], gaps: [], attempts: 1 })
  rmSync(ballast)
  const next = await dash(['publish-year', '--once', '--json', '--data-dir', data])
  expect((JSON.parse(next.stdout) as PublishReport).outcome).toBe('published')
  expect(await audit(data, day)).toMatchObject({ sound: true, publications: [day], attempts: 2 })
})
