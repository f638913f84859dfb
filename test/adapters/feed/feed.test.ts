import { expect, test } from 'vitest'
import { rarestUnits, toWordUnits } from '../../../src/adapters/feed/ranked-documents.ts'
import { FEED_CONTRACTS } from './feed-contracts.ts'
import { openFeedWithoutProcess } from './open-feed.ts'

for (const contract of FEED_CONTRACTS) contract('a file', openFeedWithoutProcess)

test.each([
  [{ rare: 7_999, other: 1 }, ['other', 'rare']],
  [{ rare: 7_999, other: 8_000 }, ['rare']],
  [{ common: 8_001, unknown: 0 }, ['common']],
])('of the alternatives %o the rarest stay up to 8,000 titles, and at least one', (titles, words) => {
  const counts = { items: 9_000, of: new Map(Object.entries(titles)) }
  expect(rarestUnits(toWordUnits(Object.keys(titles)), counts).flatMap((unit) => unit.words)).toEqual(words)
})
