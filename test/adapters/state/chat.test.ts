import { answerCacheContract } from './answer-cache-contract.ts'
import { chatLedgerContract } from './chat-ledger-contract.ts'
import { chatInFile, chatInMemory } from './open-chat.ts'

chatLedgerContract('a file', chatInFile)
chatLedgerContract('memory', chatInMemory)
answerCacheContract('a file', chatInFile)
answerCacheContract('memory', chatInMemory)
