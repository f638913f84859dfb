import { expect, test } from 'vitest'
import { startSweeper } from '../../../src/server/agent/service.ts'
import { silentLog } from '../../support/api-client.ts'
import { startAgent } from '../../support/agent.ts'

const AT = Date.parse('2026-11-21T00:20:00Z')

test.each([
  [1_800, true],
  [600, false],
])(
  'a server with sessions of %i s keeps the callers of the day before at 00:20: %s',
  async (seconds, kept) => {
    const { ledger } = await startAgent()
    await ledger.makeSalt('2026-11-20', '2026-11-20')
    await startSweeper(ledger, () => AT, silentLog, seconds)()
    expect((await ledger.salt('2026-11-20')) !== null).toBe(kept)
  },
)
