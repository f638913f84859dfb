import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { run, temporaryFolder } from '../../../support/dash.ts'

const NEW = ['new', '--name', 'open-webui', '--per-day', '500', '--per-minute', '20']

const keysIn =
  (folder: string) =>
  (...args: string[]): ReturnType<typeof run> =>
    run(['chat-key', ...args, '--data-dir', folder])

test('a key is printed once, stored as a digest, listed with its quota and revoked by its name', async () => {
  const folder = temporaryFolder()
  const keys = keysIn(folder)
  const created = await keys(...NEW)
  const key = created.stdout.trim()
  expect([created.code, key]).toEqual([0, expect.stringMatching(/^dck_[\w-]{43}$/)])
  expect(created.stderr).toContain('shown only now')
  expect(created.stderr).not.toContain(key)
  for (const name of readdirSync(folder).filter((each) => each.startsWith('state.db')))
    expect(readFileSync(join(folder, name), 'latin1').includes(key)).toBe(false)

  const createdAt: unknown = expect.stringMatching(/^20.*Z$/)
  const listed = { name: 'open-webui', perDay: 500, perMinute: 20, usedToday: 0, createdAt, revokedAt: null }
  expect(JSON.parse((await keys('list', '--json')).stdout)).toEqual([listed])
  expect((await keys('list')).stdout).toMatch(/^open-webui: 0 of 500 used today, 20 a minute, created 20/)

  const revoke = async (): Promise<unknown> =>
    JSON.parse((await keys('revoke', 'open-webui', '--json')).stdout) as unknown
  expect(await revoke()).toEqual({ name: 'open-webui', revoked: true })
  expect(await revoke()).toEqual({ name: 'open-webui', revoked: false })
  expect((await keys('list')).stdout).toMatch(/^open-webui: revoked 20/)
  const again = await keys(...NEW, '--json')
  const another: unknown = expect.stringMatching(/^dck_/)
  expect(JSON.parse(again.stdout)).toEqual({ name: 'open-webui', key: another })
})

test('a taken name and an unknown name end with 1', async () => {
  const keys = keysIn(temporaryFolder())
  await keys(...NEW)
  const taken: unknown = expect.stringContaining('dash chat-key revoke open-webui')
  expect(await keys(...NEW)).toMatchObject({ code: 1, stdout: '', stderr: taken })
  const unknown = 'error: no key has the name other; dash chat-key list shows all keys\n'
  expect(await keys('revoke', 'other')).toMatchObject({ code: 1, stderr: unknown })
})

test.each([
  [['--name', 'a b', '--per-day', '1', '--per-minute', '1'], '--name "a b" must be 1 to 64 letters'],
  [['--name', 'a', '--per-day', '0', '--per-minute', '1'], '--per-day "0" must be a whole number from 1'],
  [['--name', 'a', '--per-day', '1', '--per-minute', '1.5'], '--per-minute "1.5" must be a whole number'],
  [['--name', 'a', '--per-day', '1'], "'--per-minute <n>' not specified"],
  [['--name', 'a', '--per-day', '1', '--per-minute', '1', '--quiet'], '--quiet would hide the key'],
])('chat-key new %j is a usage error and makes no database', async (flags, says) => {
  const folder = temporaryFolder()
  const { code, stdout, stderr } = await keysIn(folder)('new', ...flags)
  expect([code, stdout, stderr]).toEqual([64, '', expect.stringContaining(says)])
  expect(existsSync(join(folder, 'state.db'))).toBe(false)
})

test('list and revoke make no database', async () => {
  const folder = temporaryFolder()
  const keys = keysIn(folder)
  expect((await keys('list')).stdout).toBe('no keys; create one with dash chat-key new\n')
  expect(JSON.parse((await keys('list', '--json')).stdout)).toEqual([])
  expect((await keys('revoke', 'a')).code).toBe(1)
  expect(readdirSync(folder)).toEqual([])
})
