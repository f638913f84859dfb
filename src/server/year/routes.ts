import type { H3Event } from 'h3'
import { z } from 'zod'
import type { Clock } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { formatInstant } from '../../domain/time.ts'
import { staticObjectPath } from '../../domain/year/log/static-layout.ts'
import {
  formatHttpDate,
  historyQuerySchema,
  parseHistoryQuery,
  historyIndexSchema,
  headSchema,
} from '../../domain/year/history/history.ts'
import type { HistoryRefusal } from '../../domain/year/history/history.ts'
import type { ProvedLedger } from '../../domain/year/chain.ts'
import { yearEnvelopeSchema, yearItemSchema } from '../../domain/year/schema.ts'
import {
  PUBLISHED_HEAD,
  PUBLISHED_LEDGER,
  PUBLISHED_LEGACY_LEDGER,
} from '../../domain/year/published-ledger.ts'
import { onceFor } from '../../domain/once.ts'
import { BUSY_REFUSAL } from '../computed-requests.ts'
import type { Compute } from '../computed-requests.ts'
import { CSV_TYPE, csvContract, namedCsv, writeListsCsv } from '../csv.ts'
import type { FeedHost } from '../feed/feeds.ts'
import { IMMUTABLE, JSON_TYPE, publishedBody, respondPublished } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import {
  METHOD_NOT_ALLOWED,
  invalidValues,
  publicAccess,
  publishedHeaders,
  publishedRoute,
  route,
} from '../route.ts'
import type { Contract, Route } from '../route.ts'
import { HISTORY_CACHE, envelopeOf } from './proved-publications.ts'
import type { ProvedPublication, ProvedPublications } from './proved-publications.ts'

/** Routes that parse the query, verify the publication, and serve its archived bytes, or its lists as CSV. */
export function historyRoutes(
  publications: ProvedPublications,
  clock: Clock,
  host: () => FeedHost,
  compute: Compute,
): Route[] {
  const history = <Code extends string>(
    contract: Contract<Code>,
    render: (publication: ProvedPublication, event: H3Event) => Promise<PublishedBody> | PublishedBody,
  ): Route =>
    route(contract, async (event) => {
      const params = event.url.searchParams
      const { at } = parseHistoryQuery(params, clock())
      const publication = (await publications.latestAt(at)) ?? notFound()
      const { demo } = host()
      // The history of the demo ends with the server. A response without `at`, or for a time after the newest publication, changes with the next one.
      const isFinal = params.has('at') && publication.isFinal && !demo
      const headers = { ...contract.headers, link: linksOf(contract, publication, isFinal) }
      const requestHeaders = {
        'x-year-history-requested-at': formatInstant(at),
        ...(isFinal && mementoHeaders(publication)),
      }
      return respondPublished(event, headers, await render(publication, event), requestHeaders)
    })
  return [
    history(historyContract, ({ published }) => published),
    history(historyCsvContract, (publication, event) => compute(event, async () => yearCsv(publication))),
  ]
}

function yearCsv(publication: ProvedPublication): PublishedBody {
  const envelope = envelopeOf(publication)
  if (!envelope) throw new Refusal<HistoryCsvRefusal>('year_history_older_layout')
  const { asOfDay, publishedAt } = publication.manifest
  const csv = publishedBody(writeListsCsv(yearItemSchema, envelope.feed), {
    contentType: CSV_TYPE,
    cacheControl: HISTORY_CACHE,
    headers: { 'last-modified': formatHttpDate(publishedAt) },
  })
  return namedCsv(csv, `dash-year-${asOfDay}`)
}

function notFound(): never {
  throw new Refusal<HistoryRefusal>('year_history_not_found')
}

/** The `Link` field of a publication: descriptions of the interface, the object, and its original. */
function linksOf(
  { headers, path }: Pick<Contract<string>, 'headers' | 'path'>,
  { manifest }: ProvedPublication,
  isFinal: boolean,
): string {
  return [
    headers['link'],
    `</${staticObjectPath(manifest.sha256)}>; rel="alternate"; type="application/json"`,
    ...(isFinal ? [`<${path}?sort=year>; rel="original"`] : []),
  ].join(', ')
}

/** Headers of a final response. An archive that replaces another one at a host must get a new name, or the CDN be purged. */
function mementoHeaders({ manifest }: ProvedPublication): Record<string, string> {
  return {
    'cdn-cache-control': 'public, max-age=31536000',
    'memento-datetime': formatHttpDate(manifest.publishedAt),
  }
}

/** Path of the page that documents this interface. */
export const HISTORY_DOCS = '/docs/api/top-year-history'

/** The refusal of `at`, for the contracts that select a publication by its time. */
export const INVALID_AT = invalidValues({
  at: 'an existing UTC instant such as `2026-01-31T12:00:00Z`, at most five minutes in the future',
})

/** Refusals of every route that reads the archive. */
export const ARCHIVE_REFUSALS = {
  method_not_allowed: METHOD_NOT_ALLOWED,
  year_history_storage_unavailable: {
    status: 503,
    when: 'the ledger or the object store cannot be opened or reached',
  },
  year_history_archive_corrupt: {
    status: 503,
    when: 'a manifest or object fails verification, or the ledger does not match its chain, its seal or its head',
  },
  year_history_lookup_failed: { status: 503, when: 'any other failure of the lookup' },
} satisfies Record<LedgerRefusal, { status: number; when: string }>

const REFUSALS = {
  invalid_sort: invalidValues({ sort: '`year`' }),
  invalid_at: INVALID_AT,
  year_history_not_found: { status: 404, when: 'no Year publication existed at or before that time' },
  ...ARCHIVE_REFUSALS,
} satisfies Record<HistoryRefusal, { status: number; when: string }>

/** Public codes of errors of the archive. */
export const STORAGE = {
  storage: {
    storage_unavailable: 'year_history_storage_unavailable',
    storage_damaged: 'year_history_archive_corrupt',
  },
  fault: 'year_history_lookup_failed',
} as const

/** `GET /api/feed/history` (docs/api.md). */
export const historyContract: Contract<HistoryRefusal> = {
  path: '/api/feed/history',
  headRefused: true,
  operationId: 'getYearHistory',
  tag: 'Year',
  summary: 'Get the Year publication that was current at a past time',
  description: [
    'Serves the newest Top Year publication whose publication time is at or before `at`, byte for byte as it',
    'was archived. Nothing is rebuilt, and no other publication replaces a missing or damaged one.',
    'The ETag is the SHA-256 of the body: `curl -s URL | sha256sum` prints it.',
    'The schema below is that of `top-year-v3`; older publications keep the layout of their own version.',
  ].join(' '),
  query: historyQuerySchema,
  success: yearEnvelopeSchema,
  successDescription: 'The publication envelope, byte for byte from the archive',
  successHeaders: {
    ...publishedHeaders(HISTORY_CACHE, {
      ETag: "strong: the archived object's SHA-256 in hexadecimal, quoted",
      'Last-Modified': "the selected manifest's publication time, to the second",
      'X-Year-History-Requested-At': 'the lookup time, normalized',
    }),
    Link: 'the documentation, the OpenAPI description, the object by its digest (`alternate`), and for a past `at` the `original`',
    'CDN-Cache-Control':
      '`public, max-age=31536000` if `at` is not later than the newest publication: the response never changes',
    'Memento-Datetime': "the publication's time, under the same condition (RFC 7089)",
  },
  refusals: REFUSALS,
  ...STORAGE,
  ...publicAccess(HISTORY_DOCS, ['ETag', 'Last-Modified', 'Link', 'X-Year-History-Requested-At']),
}

type HistoryCsvRefusal = HistoryRefusal | 'year_history_older_layout' | 'busy'

/** `GET /api/feed/history.csv` (docs/api.md). */
export const historyCsvContract: Contract<HistoryCsvRefusal> = csvContract<HistoryCsvRefusal>({
  ...historyContract,
  refusals: {
    ...REFUSALS,
    year_history_older_layout: {
      status: 404,
      when: 'the publication has an older layout, which is served as JSON alone',
    },
    busy: BUSY_REFUSAL,
  },
})

/** Routes of the verified ledgers and the newest head, as texts anyone can hash (docs/auditing.md). */
export function ledgerRoutes(publications: ProvedPublications): Route[] {
  return [
    publishedRoute(ledgerContract, async () => (await publications.ledger()).entries()),
    publishedRoute(legacyLedgerContract, async () => (await publications.ledger()).legacy()),
    publishedRoute(headContract, async () => (await publications.ledger()).head() ?? notFound()),
    publishedRoute(indexContract, async () => (await publications.ledger()).index()),
  ]
}

type HeadRefusal = Exclude<HistoryRefusal, 'invalid_sort' | 'invalid_at'>
type LedgerRefusal = Exclude<HeadRefusal, 'year_history_not_found'>

/** Members shared by the four contracts and the history. */
const COMMON = {
  tag: 'Year',
  query: z.object({}),
  successHeaders: publishedHeaders('public, max-age=60'),
  ...STORAGE,
  ...publicAccess(HISTORY_DOCS, ['ETag', 'Link']),
} as const

/** `GET /api/feed/history/ledger` (docs/auditing.md). */
export const ledgerContract: Contract<LedgerRefusal> = {
  ...COMMON,
  path: PUBLISHED_LEDGER,
  operationId: 'getYearLedger',
  summary: 'Get the chained ledger, one line per entry',
  description: [
    'Every entry of the versioned ledger in order. Each line is the exact text whose SHA-256 is the leaf of the entry.',
    'The second element of a line is the SHA-256 of the line before, 64 zeros in the first:',
    'hashing each line proves the chain.',
  ].join(' '),
  contentType: 'application/x-ndjson',
  success: z.string(),
  successDescription: 'The lines; an empty ledger has none',
  refusals: ARCHIVE_REFUSALS,
}

/** `GET /api/feed/history/ledger/legacy` (docs/auditing.md). */
export const legacyLedgerContract: Contract<LedgerRefusal> = {
  ...COMMON,
  path: PUBLISHED_LEGACY_LEDGER,
  operationId: 'getYearLegacyLedger',
  summary: 'Get the sealed legacy ledger',
  description: [
    'The rows of the legacy ledger, joined by newlines without one at the end: the exact text whose SHA-256 the',
    '`legacy-seal` entry of the ledger records as its last element.',
  ].join(' '),
  contentType: 'application/x-ndjson',
  success: z.string(),
  successDescription: 'The text; empty if there is no legacy ledger',
  refusals: ARCHIVE_REFUSALS,
}

/** `GET /api/feed/history/head` (docs/auditing.md). */
export const headContract: Contract<HeadRefusal> = {
  ...COMMON,
  path: PUBLISHED_HEAD,
  operationId: 'getYearHead',
  summary: 'Get the newest head of the ledger',
  description: [
    'Sequence number, leaf and time of the entry in the newest head file. A saved copy proves later that no',
    'entry up to it was changed or removed.',
  ].join(' '),
  success: headSchema,
  successDescription: 'The content of the head file',
  refusals: {
    ...ARCHIVE_REFUSALS,
    year_history_not_found: { status: 404, when: 'the archive has no head yet' },
  },
}

/** `GET /api/feed/history/index` (docs/api.md). */
export const indexContract: Contract<LedgerRefusal> = {
  ...COMMON,
  path: '/api/feed/history/index',
  operationId: 'getYearHistoryIndex',
  summary: 'List every publication and gap of the history',
  description: [
    'Content of both ledgers without the publications themselves: ids, days, times, digests and sizes of every',
    'publication, and every gap with its reason. Other days have neither.',
  ].join(' '),
  success: historyIndexSchema,
  successDescription: 'The index; its lists are empty for an empty archive',
  refusals: ARCHIVE_REFUSALS,
}

/** The route of each publication by its digest. */
export function objectRoute(publications: ProvedPublications): Route {
  const manifestsOf = onceFor(
    ({ timeline }: ProvedLedger) =>
      new Map(timeline.map(({ manifest }) => [`/${staticObjectPath(manifest.sha256)}`, manifest])),
  )
  return publishedRoute(objectContract, async (_params, { url }) => {
    // Clients made from the OpenAPI document encode the slash.
    const path = decodeURIComponent(url.pathname)
    const manifest = manifestsOf(await publications.entries()).get(path) ?? notFound()
    const { published } = await publications.publication(manifest)
    const options = { contentType: JSON_TYPE, cacheControl: IMMUTABLE }
    return publishedBody(published.body, options, manifest.sha256)
  })
}

/** `GET /objects/sha256/…` */
export const objectContract: Contract<HeadRefusal> = {
  ...COMMON,
  path: '/objects/sha256/{object}',
  pathRest: {
    name: 'object',
    description:
      'first two hex digits of the SHA-256, a slash, which may be encoded, all 64 in lower case, and `.json`, as in `ab/ab12…ef.json`',
  },
  operationId: 'getYearObject',
  summary: 'Get a publication by its SHA-256',
  description:
    'Serves a publication that the proved ledger names, verified for this request. Its name is its SHA-256, so the bytes never change.',
  success: yearEnvelopeSchema,
  successDescription: 'The publication envelope, byte for byte from the archive',
  successHeaders: publishedHeaders(IMMUTABLE),
  refusals: {
    ...ARCHIVE_REFUSALS,
    year_history_not_found: { status: 404, when: 'the ledger names no publication with this digest' },
  },
}
