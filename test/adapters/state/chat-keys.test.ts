import { expect, test } from 'vitest'
import { digestOfKey, formatChatKey } from '../../../src/domain/agent/credentials.ts'
import { chatKeysContract } from './chat-keys-contract.ts'
import { chatInFile, chatInMemory } from './open-chat.ts'

chatKeysContract('a file', chatInFile)
chatKeysContract('memory', chatInMemory)

test('only a text in the form of a key has a digest', () => {
  const key = formatChatKey(new Uint8Array(32).fill(255))
  expect(digestOfKey(key)).toMatch(/^[0-9a-f]{64}$/)
  for (const other of ['', `${key}x`, key.slice(1), ` ${key}`, key.replace('dck', 'DCK'), `${key}\n`])
    expect(digestOfKey(other)).toBeNull()
})
