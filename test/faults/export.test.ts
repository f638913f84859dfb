import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { addDays } from '../../src/domain/time.ts'
import { listSyscalls, strike } from '../support/attack.ts'
import type { SyscallPoint } from '../support/attack.ts'
import { dash, temporaryFolder } from '../support/dash.ts'
import { signedWorkspace } from '../support/exports.ts'
import { filesOfFolder } from '../support/temporary-folder.ts'
import { AS_OF } from '../support/workspace.ts'

/** Number of kills: enough for every kind of file, and few enough for a suite. */
const STRUCK = 24

const DAYS = [AS_OF, addDays(AS_OF, 1)]

test('an export killed at any of its system calls has no checkpoint without its files, and continues when repeated', async () => {
  const { folder } = await signedWorkspace(DAYS)
  const whole = join(temporaryFolder(), 'whole')
  expect((await dash(['export', whole, '--data-dir', folder])).code).toBe(0)
  const expected = filesOfFolder(whole)
  const target = join(temporaryFolder(), 'target')
  const args = ['export', target, '--data-dir', folder, '--json']
  const changing = (await listSyscalls(args, target)).filter(({ changes }) => changes)
  expect(changing.length).toBeGreaterThan(STRUCK)
  const step = changing.length / STRUCK
  const moments = Array.from({ length: STRUCK }, (_, nth) => changing[Math.floor(nth * step)] as SyscallPoint)
  let fired = 0
  for (const point of moments) {
    const where = `${point.call} ${point.nth}: ${point.path}`
    const struck = await strike(args, target, { point, fault: 'KILL' }, () =>
      rmSync(target, { recursive: true, force: true }),
    )
    if (struck.fired) fired += 1
    const cut = existsSync(target) ? finished(target) : {}
    if ('tlog/year/checkpoint' in cut) expect(cut, where).toEqual(expected)
    for (const [name, bytes] of Object.entries(cut)) expect(bytes, `${name} at ${where}`).toBe(expected[name])
    const again = await dash(args)
    expect([again.code, again.stderr], where).toEqual([0, ''])
    // The repeated export also removes what the killed one left unfinished.
    expect(filesOfFolder(target), where).toEqual(expected)
  }
  expect(fired).toBe(STRUCK)
})

test('an export to a full disk ends with 74, keeps what it wrote, and continues when there is space', async () => {
  const { folder } = await signedWorkspace(DAYS)
  const disk = join(temporaryFolder(), 'disk')
  mkdirSync(disk)
  const mount = (...options: string[]): void => expect(spawnSync('mount', options).status).toBe(0)
  mount('-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', disk)
  onTestFinished(() => void spawnSync('umount', ['-l', disk]))
  const site = join(disk, 'site')
  const full = await dash(['export', site, '--data-dir', folder])
  expect([full.code, full.stderr]).toEqual([74, expect.stringContaining('the disk is full')])
  expect(Object.keys(filesOfFolder(site))).not.toContain('tlog/year/checkpoint')
  mount('-o', 'remount,size=1024k', disk)
  expect((await dash(['export', site, '--data-dir', folder])).code).toBe(0)
  expect(Object.keys(filesOfFolder(site))).toContain('tlog/year/checkpoint')
})

/** Returns the files of an export without unfinished files of a killed writer. */
function finished(folder: string): Record<string, string> {
  const files = Object.entries(filesOfFolder(folder))
  return Object.fromEntries(files.filter(([name]) => !name.includes('.writing-')))
}
