import { afterAll, beforeAll } from 'vitest'
import { appendOnlyContract } from '../adapters/ledger/append-only-contract.ts'
import { damageContract } from '../adapters/ledger/damage-contract.ts'
import { foundingContract } from '../adapters/ledger/founding-contract.ts'
import { leaseContract } from '../adapters/ledger/lease-contract.ts'
import { ledgerContract } from '../adapters/ledger/ledger-contract.ts'
import { connectLedger } from '../adapters/ledger/open-ledger.ts'
import type { OpenLedger } from '../adapters/ledger/open-ledger.ts'
import { startSqld } from '../support/sqld.ts'
import type { Sqld } from '../support/sqld.ts'

let sqld: Sqld

beforeAll(async () => {
  sqld = await startSqld()
})
afterAll(() => sqld.stop())

async function openEmpty(): Promise<OpenLedger> {
  await sqld.empty()
  return connectLedger(sqld.url)
}

for (const contract of [
  ledgerContract,
  leaseContract,
  damageContract,
  appendOnlyContract,
  foundingContract,
]) {
  contract('a libSQL server', openEmpty)
}
