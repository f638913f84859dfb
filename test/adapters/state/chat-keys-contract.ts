import { describe, expect, test } from 'vitest'
import { keyCaller } from '../../../src/domain/agent/credentials.ts'
import { claimOf, DAY, NOW } from './chat-claims.ts'
import type { OpenState, StateOpener } from './open-chat.ts'

const KEY = { name: 'server', digest: 'd'.repeat(64), perDay: 5, perMinute: 3, createdAt: NOW }

/** An empty store, and its keys as another process sees them. */
async function openKeys(
  open: StateOpener,
): Promise<Pick<OpenState, 'ledger' | 'keys'> & { others: OpenState['keys'] }> {
  const { ledger, keys, another } = await open()
  return { ledger, keys, others: another().keys }
}

/** The keys of the chat, on any engine. */
export function chatKeysContract(engine: string, open: StateOpener): void {
  describe(`the keys of the chat in ${engine}`, () => {
    test('a key is found by its digest alone, and its name is free again when it is revoked', async () => {
      const { keys, others } = await openKeys(open)
      expect(await keys.create(KEY)).toBe(true)
      expect(await others.create({ ...KEY, digest: 'e'.repeat(64) })).toBe(false)
      expect(await others.find(KEY.digest)).toEqual({ id: 1, perDay: 5, perMinute: 3 })
      expect(await keys.find('server')).toBeNull()
      expect(await others.revoke('server', NOW + 1)).toBe(true)
      expect([await keys.revoke('server', NOW + 2), await keys.find(KEY.digest)]).toEqual([false, null])
      expect(await keys.create({ ...KEY, digest: 'e'.repeat(64), createdAt: NOW + 3 })).toBe(true)
      expect(await keys.list(DAY)).toEqual([
        { name: 'server', perDay: 5, perMinute: 3, createdAt: NOW, revokedAt: NOW + 1, usedToday: 0 },
        { name: 'server', perDay: 5, perMinute: 3, createdAt: NOW + 3, revokedAt: null, usedToday: 0 },
      ])
    })

    test('an admission with a revoked or unknown key is refused and stores nothing', async () => {
      const { ledger, keys, others } = await openKeys(open)
      await keys.create(KEY)
      const claim = claimOf({ key: 1, address: keyCaller(1) })
      expect(await ledger.admit(claim)).toMatchObject({ admitted: true })
      expect(await keys.list(DAY)).toMatchObject([{ usedToday: 1 }])
      await others.revoke('server', NOW)
      const refused = { admitted: false, scope: 'key', retryAfterSeconds: 0 }
      expect(await ledger.admit(claim)).toEqual(refused)
      expect(await ledger.admit(claimOf({ key: 2, address: keyCaller(2) }))).toEqual(refused)
      expect(await ledger.spending(DAY)).toEqual({ settled: 0, reserved: 1_000 })
      expect(await keys.list(DAY)).toMatchObject([{ usedToday: 1 }])
    })
  })
}
