import { AGENT_API_VERSION, AGENT_CONTRACTS, AGENT_DOCS } from '../agent/contracts.ts'
import {
  atomContract,
  FEED_API_VERSION,
  FEED_DOCS,
  jsonFeedContract,
  liveContract,
  rssContract,
} from '../feed/contract.ts'
import {
  SEARCH_API_VERSION,
  SEARCH_DOCS,
  searchContract,
  similarContract,
  trendContract,
} from '../feed/search-contracts.ts'
import { MCP_API_VERSION, MCP_DOCS, mcpContract } from '../mcp/contract.ts'
import { FREE_MODELS_API_VERSION, FREE_MODELS_CONTRACTS, FREE_MODELS_DOCS } from '../models/contracts.ts'
import { openApiDocument } from '../openapi.ts'
import { HISTORY_API_VERSION, HISTORY_DOCS, historyContract } from '../year/contract.ts'
import {
  headContract,
  indexContract,
  ledgerContract,
  legacyLedgerContract,
} from '../year/ledger-contracts.ts'
import type { PublishedDocument } from './reference.ts'

type Contracts = Parameters<typeof openApiDocument>[1]

interface Interface {
  path: string
  title: string
  summary: string
  version: string
  contracts: Contracts
}

/** The public interfaces, in the order in which they are shown. */
const INTERFACES: readonly Interface[] = [
  {
    path: HISTORY_DOCS,
    title: 'Top Year feed history',
    summary: 'Replays archived Top Year publications as they were, byte for byte.',
    version: HISTORY_API_VERSION,
    contracts: [historyContract, ledgerContract, legacyLedgerContract, headContract, indexContract],
  },
  {
    path: FEED_DOCS,
    title: 'Live feed',
    summary: 'Serves what trends now and in the last day, week and month, also as RSS, Atom and JSON Feed.',
    version: FEED_API_VERSION,
    contracts: [liveContract, rssContract, atomContract, jsonFeedContract],
  },
  {
    path: SEARCH_DOCS,
    title: 'Search',
    summary: 'Finds stored items, items like another, and the trends of items and terms.',
    version: SEARCH_API_VERSION,
    contracts: [searchContract, similarContract, trendContract],
  },
  {
    path: FREE_MODELS_DOCS,
    title: 'Free model recommendation',
    summary: 'Which free text model of a model-routing service to use now, and the shortlist behind it.',
    version: FREE_MODELS_API_VERSION,
    contracts: FREE_MODELS_CONTRACTS,
  },
  {
    path: AGENT_DOCS,
    title: 'Agent chat',
    summary: 'Answers questions about the stored feed, as a stream of events, with read-only access to it.',
    version: AGENT_API_VERSION,
    contracts: AGENT_CONTRACTS,
  },
  {
    path: MCP_DOCS,
    title: 'Model Context Protocol',
    summary: 'Gives the read-only tools of the chat agent to other programs.',
    version: MCP_API_VERSION,
    contracts: [mcpContract],
  },
]

/** Every interface with its OpenAPI document. */
export function publishedDocuments(demo: boolean): PublishedDocument[] {
  return INTERFACES.map(({ path, title, summary, version, contracts }) => {
    const info = { title: demo ? `DEMO: ${title}` : title, version, description: summary }
    return { path, title, summary, document: openApiDocument(info, contracts) }
  })
}
