import { afterAll, beforeAll } from 'vitest'
import { evaluationsContract } from '../adapters/state/evaluations-contract.ts'
import { connectEvaluations } from '../adapters/state/open-chat.ts'
import { startSqld } from '../support/sqld.ts'
import type { Sqld } from '../support/sqld.ts'

let sqld: Sqld

beforeAll(async () => {
  sqld = await startSqld()
})
afterAll(() => sqld.stop())

evaluationsContract('a libSQL server', async () => {
  await sqld.empty()
  return connectEvaluations(sqld.url)
})
