import { FEED_CONTRACTS } from './feed-contracts.ts'
import { feedInMemory } from './open-feed.ts'

for (const contract of FEED_CONTRACTS) contract('memory', feedInMemory)
