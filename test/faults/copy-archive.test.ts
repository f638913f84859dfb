import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { addDays } from '../../src/domain/time.ts'
import { dash, temporaryFolder } from '../support/dash.ts'
import { filesOfFolder } from '../support/temporary-folder.ts'
import { listSyscalls, strike } from '../support/attack.ts'
import type { SyscallPoint } from '../support/attack.ts'
import { AS_OF, publishedWorkspace, reopenWorkspace } from '../support/workspace.ts'

/** Number of kills: enough for every step of a copy, and few enough for a suite. */
const STRUCK = 24

test('a copy killed at any of its system calls serves nothing or everything, and continues when repeated', async () => {
  const source = await publishedWorkspace([addDays(AS_OF, -2), AS_OF])
  const target = join(temporaryFolder(), 'target')
  const args = ['copy-archive', '--data-dir', source.folder, '--to', target, '--json']
  const changing = (await listSyscalls(args, target)).filter(({ changes }) => changes)
  expect(changing.length).toBeGreaterThan(STRUCK)
  const step = changing.length / STRUCK
  const moments = Array.from({ length: STRUCK }, (_, nth) => changing[Math.floor(nth * step)] as SyscallPoint)
  const rowsFound = new Set<number>()
  let fired = 0
  for (const point of moments) {
    const where = `${point.call} ${point.nth}: ${point.path}`
    const struck = await strike(args, target, { point, fault: 'KILL' }, () =>
      rmSync(target, { recursive: true, force: true }),
    )
    if (struck.fired) fired += 1
    const rows = existsSync(join(target, 'ledger.db')) ? await rowsOf(target) : 0
    rowsFound.add(rows)
    const audit = await dash(['verify-archive', '--data-dir', target, '--json'])
    if (rows > 0) expect([rows, audit.code], where).toEqual([3, 0])
    const again = await dash(args)
    expect([again.code, again.stderr], where).toEqual([0, ''])
    expect((await dash(['verify-archive', '--data-dir', target, '--quiet'])).code, where).toBe(0)
    expect(finished(target), where).toEqual(filesOfFolder(source.objectsPath))
  }
  expect(fired).toBe(STRUCK)
  expect([...rowsFound].sort()).toEqual([0, 3])
})

async function rowsOf(folder: string): Promise<number> {
  return (await reopenWorkspace(folder).ledger.read()).rows.length
}

/** Returns the files of the store without unfinished files of a killed writer. */
function finished(folder: string): Record<string, string> {
  const files = Object.entries(filesOfFolder(join(folder, 'objects')))
  return Object.fromEntries(files.filter(([name]) => !name.includes('.writing-')))
}
