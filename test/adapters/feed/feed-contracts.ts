import { articlesContract } from './articles-contract.ts'
import { detailsContract } from './details-contract.ts'
import { importContract } from './import-contract.ts'
import { itemsContract } from './items-contract.ts'
import { liveFeedContract } from './live-feed-contract.ts'
import { searchContract } from './search-contract.ts'
import { snapshotContract } from './snapshot-contract.ts'
import { sourceMemoryContract } from './source-memory-contract.ts'
import { titlesContract } from './titles-contract.ts'
import { windowContract } from './window-contract.ts'

/** Everything a feed database promises, whichever engine holds it. */
export const FEED_CONTRACTS = [
  titlesContract,
  importContract,
  windowContract,
  detailsContract,
  articlesContract,
  sourceMemoryContract,
  liveFeedContract,
  snapshotContract,
  searchContract,
  itemsContract,
]
