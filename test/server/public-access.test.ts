import { expect, test } from 'vitest'
import { liveContract } from '../../src/server/feed/live-routes.ts'
import { searchContract } from '../../src/server/feed/search-routes.ts'
import { recommendationContract } from '../../src/server/models/routes.ts'
import { historyContract } from '../../src/server/year/history.ts'
import { ledgerContract } from '../../src/server/year/ledger-routes.ts'

test.each([
  [liveContract, '/docs/api/feed', 'ETag, Last-Modified, Link'],
  [searchContract, '/docs/api/search', 'ETag, Link'],
  [historyContract, '/docs/api/top-year-history', 'ETag, Last-Modified, Link, X-Year-History-Requested-At'],
  [ledgerContract, '/docs/api/top-year-history', 'ETag, Link'],
  [recommendationContract, '/docs/api/free-llm', 'ETag, Link, X-Free-LLM-Seed'],
])('$path is open to every origin and names $1', ({ headers, refusalHeaders, preflight }, docs, exposed) => {
  expect(headers).toEqual({
    'access-control-allow-origin': '*',
    'access-control-expose-headers': exposed,
    link: `<${docs}/openapi.json>; rel="service-desc"; type="application/json", <${docs}>; rel="service-doc"; type="text/html"`,
  })
  expect(refusalHeaders).toEqual({ 'cache-control': 'no-store' })
  expect(preflight).toEqual({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, OPTIONS',
    'access-control-allow-headers': 'If-None-Match',
    'cache-control': 'no-store',
  })
})
