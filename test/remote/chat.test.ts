import { afterAll, beforeAll } from 'vitest'
import { answerCacheContract } from '../adapters/state/answer-cache-contract.ts'
import { chatLedgerContract } from '../adapters/state/chat-ledger-contract.ts'
import { connectChat } from '../adapters/state/open-chat.ts'
import type { OpenChat } from '../adapters/state/open-chat.ts'
import { startSqld } from '../support/sqld.ts'
import type { Sqld } from '../support/sqld.ts'

let sqld: Sqld

beforeAll(async () => {
  sqld = await startSqld()
})
afterAll(() => sqld.stop())

const open = async (): Promise<OpenChat> => {
  await sqld.empty()
  return connectChat(sqld.url)
}

chatLedgerContract('a libSQL server', open)
answerCacheContract('a libSQL server', open)
