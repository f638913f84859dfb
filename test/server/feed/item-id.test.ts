import { expect, test } from 'vitest'
import { itemId, uuidV5 } from '../../../src/server/feed/feeds.ts'

test('makes UUIDs of version 5 as RFC 9562 shows them', () => {
  const dns = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
  expect(uuidV5(dns, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2')
})

test('gives a save key the id it has always had', () => {
  expect(itemId('hn-29135559')).toBe('urn:uuid:4aa3f1ca-aa1f-570b-949a-5ceb73dc4185')
  expect(itemId('hn-29135558')).not.toBe(itemId('hn-29135559'))
})
