import type { Clock } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { formatInstant } from '../../domain/time.ts'
import { historyQuerySchema, parseHistoryQuery } from '../../domain/year/history.ts'
import type { HistoryRefusal } from '../../domain/year/history.ts'
import { yearEnvelopeSchema } from '../../domain/year/schema.ts'
import { respondPublished } from '../respond.ts'
import { publicAccess, route } from '../route.ts'
import type { Contract, Route } from '../route.ts'
import type { ProvedPublications } from './proved-publications.ts'

/** `GET /api/feed/history`: parses the query, verifies the publication and serves its archived bytes. */
export function historyRoute(publications: ProvedPublications, clock: Clock): Route {
  return route(historyContract, async (event) => {
    const { at } = parseHistoryQuery(event.url.searchParams, clock())
    const publication = await publications.latestAt(at)
    if (!publication) throw new Refusal<HistoryRefusal>('year_history_not_found')
    const requestHeaders = { 'x-year-history-requested-at': formatInstant(at) }
    return respondPublished(event, historyContract.headers, publication.published, requestHeaders)
  })
}

/** Path of the page that documents this interface. */
export const HISTORY_DOCS = '/docs/api/top-year-history'

const REFUSALS = {
  invalid_sort: { status: 400, when: '`sort` is missing, given twice, or not `year`' },
  invalid_at: {
    status: 400,
    when: '`at` is empty, given twice, not a real UTC instant of the stated form, or more than five minutes ahead',
  },
  year_history_not_found: { status: 404, when: 'no Year publication existed at or before `at`' },
  method_not_allowed: { status: 405, when: 'any method but GET and OPTIONS; the answer has `Allow: GET`' },
  year_history_storage_unavailable: {
    status: 503,
    when: 'the ledger or the object store cannot be opened or reached',
  },
  year_history_archive_corrupt: {
    status: 503,
    when: 'the selected manifest or object fails verification, or the ledger does not match its chain or its head',
  },
  year_history_lookup_failed: { status: 503, when: 'any other failure of the lookup' },
} satisfies Record<HistoryRefusal, { status: number; when: string }>

/** `GET /api/feed/history` (docs/api.md). */
export const historyContract: Contract<HistoryRefusal> = {
  path: '/api/feed/history',
  operationId: 'getYearHistory',
  tag: 'Year',
  summary: 'Replay the Year publication that was current at a past time',
  description: [
    'Answers with the newest Top Year publication whose publication time is at or before `at`, byte for byte as it',
    'was archived. Nothing is rebuilt, and no other publication ever stands in for one that is missing or damaged.',
    'The ETag is the SHA-256 of the body: `curl -s URL | sha256sum` prints it.',
    'The schema below is that of `top-year-v3`; older publications keep the layout of their own version.',
  ].join(' '),
  query: historyQuerySchema,
  success: yearEnvelopeSchema,
  successDescription: 'The publication envelope, verbatim from the archive',
  successHeaders: {
    'Cache-Control': '`public, max-age=300, stale-while-revalidate=3600`',
    ETag: "strong: the archived object's SHA-256 in hexadecimal, quoted",
    'Last-Modified': "the selected manifest's publication time, to the second",
    'X-Year-History-Requested-At': 'the lookup time, normalized',
    'Content-Digest': 'SHA-256 of the content (RFC 9530)',
    'Repr-Digest': 'SHA-256 of the representation (RFC 9530)',
    Link: 'the documentation and the OpenAPI description',
  },
  refusals: REFUSALS,
  storage: {
    storage_unavailable: 'year_history_storage_unavailable',
    storage_damaged: 'year_history_archive_corrupt',
  },
  fault: 'year_history_lookup_failed',
  ...publicAccess(HISTORY_DOCS, ['ETag', 'Last-Modified', 'Link', 'X-Year-History-Requested-At']),
}
