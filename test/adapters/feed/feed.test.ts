import { FEED_CONTRACTS } from './feed-contracts.ts'
import { openFeedWithoutProcess } from './open-feed.ts'

for (const contract of FEED_CONTRACTS) contract('a file', openFeedWithoutProcess)
