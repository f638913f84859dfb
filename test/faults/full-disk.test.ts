import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { chat, chatBody, sessionOf } from '../support/agent.ts'
import { dash, serve, temporaryFolder } from '../support/dash.ts'
import { startProvider } from '../support/provider.ts'
import { storiesOf } from '../support/signals.ts'
import { audit } from './attack.ts'

/** A separate disk that is small enough to fill; needs root. */
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

/** Fills a disk to its last byte, and returns the file that does. */
function fill(disk: string): string {
  const ballast = join(disk, 'ballast')
  const page = Buffer.alloc(4_096)
  expect(() => {
    for (;;) appendFileSync(ballast, page)
  }).toThrow('ENOSPC')
  return ballast
}

test('a full disk of the state database is reported by server, status and doctor exactly while turns fail', async () => {
  const disk = smallDisk(8_192)
  const provider = await startProvider('answer')
  const env = {
    DASH_STATE_URL: pathToFileURL(join(disk, 'state.db')).href,
    DASH_SESSION_SECRET: 'a secret of thirty-two bytes, or more',
    OPENAI_BASE_URL: provider.url,
    DASH_CHAT_MODEL: 'test-model',
    DASH_CHAT_MIN_GAP_MS: '0',
    DASH_CHAT_BURST_PER_MINUTE: '1000',
    DASH_CHAT_MESSAGES_PER_DAY: '1000',
    DASH_CHAT_MESSAGES_PER_SESSION: '1000',
  }
  const at = ['--data-dir', temporaryFolder()]
  const serving = await serve(at, { env })
  const token = await sessionOf(serving)
  const turn = async (): Promise<number> => {
    const response = await chat(serving, chatBody('Hello'), { token })
    await response.text()
    return response.status
  }
  const readHealth = async (): Promise<unknown[]> => {
    const ready = await fetch(`${serving.url}/readyz`)
    const status = (await (await fetch(`${serving.url}/api/agent/status`)).json()) as Record<string, unknown>
    return [ready.status, status['ok'], status['budget']]
  }
  expect([await turn(), await readHealth()]).toEqual([200, [200, true, 'ok']])
  const ballast = fill(disk)
  // Frames that fit in the existing log can still be written.
  while ((await turn()) === 200);
  expect(await readHealth()).toEqual([503, false, 'unknown'])
  expect(await (await fetch(`${serving.url}/readyz`)).json()).toMatchObject({
    checks: { state: 'unavailable' },
  })
  expect((await fetch(`${serving.url}/healthz`)).status).toBe(200)
  const doctor = await dash(['doctor', '--offline', '--json', ...at], { env })
  expect(doctor.code).toBe(74)
  expect(doctor.stdout).toContain(`0 MiB free at ${disk}`)
  rmSync(ballast)
  await expect.poll(readHealth, { timeout: 60_000 }).toEqual([200, true, 'ok'])
  expect(await turn()).toBe(200)
})

test('a publish on a full disk fails with 74 and leaves no partial result; with space the next one publishes', async () => {
  const disk = smallDisk(4_096)
  const day = lastCompleteDay(Date.now())
  const data = join(disk, 'data')
  const stdin = storiesOf(day, 500)
  expect((await dash(['import', 'signals', '-', '--data-dir', data], { stdin: '' })).code).toBe(0)
  // The publish is refused before an attempt; the ledger exists from now on.
  expect((await dash(['publish-year', '--once', '--data-dir', data])).code).toBe(1)
  expect((await dash(['import', 'signals', '-', '--data-dir', data], { stdin })).code).toBe(0)
  const ballast = join(disk, 'ballast')
  const free = Number(
    spawnSync('df', ['--output=avail', '-k', disk], { encoding: 'utf8' }).stdout.split('\n')[1],
  )
  // Space for the attempt, but not for the object.
  writeFileSync(ballast, Buffer.alloc((free - 40) * 1024))
  const full = await dash(['publish-year', '--once', '--json', '--data-dir', data])
  expect([full.code, JSON.parse(full.stdout)]).toMatchObject([
    74,
    { outcome: 'failed', attempt: 1, sha256: null },
  ])
  expect(full.stderr).toContain('error: the disk is full; free some space')
  expect(await audit(data, day)).toMatchObject({ damage: '', publications: [], gaps: [], attempts: 1 })
  rmSync(ballast)
  const next = await dash(['publish-year', '--once', '--json', '--data-dir', data])
  expect((JSON.parse(next.stdout) as PublishReport).outcome).toBe('published')
  expect(await audit(data, day)).toMatchObject({ damage: '', publications: [day], attempts: 2 })
})
