import type { H3 } from 'h3'
import { expect } from 'vitest'
import { sha256Hex, sha256HexToBase64 } from '../../src/domain/digest.ts'
import { CSV_TYPE } from '../../src/server/csv.ts'
import { INTERFACES } from '../../src/server/docs/openapi.ts'
import { refusalMessage } from '../../src/server/route.ts'
import type { Contract } from '../../src/server/route.ts'

/** The contracts of all routes that any origin may read: those of the first five interfaces. */
export const PUBLIC_CONTRACTS: readonly Contract<string>[] = INTERFACES.slice(0, 5).flatMap(
  ({ contracts }) => contracts,
)

export interface ContractResponse {
  status: number
  headers: Headers
  bytes: Buffer
  text: string
  /** The public code of a refusal, else null. */
  error: string | null
}

/** Requests a public route and checks the response against its contract: status, headers, body. */
export async function requestRoute(
  app: Pick<H3, 'request'>,
  target: string,
  init: { method?: string; headers?: Record<string, string> } = {},
): Promise<ContractResponse> {
  const [path = ''] = target.split('?')
  const contract = PUBLIC_CONTRACTS.find((each) =>
    each.pathRest ? path.startsWith(each.path.replace(/\{\w+\}$/, '')) : each.path === path,
  )
  if (!contract) throw new Error(`there is no contract of ${path}`)
  const response = await app.request(`http://asked.test${target}`, init)
  const { status, headers } = response
  const bytes = Buffer.from(await response.arrayBuffer())
  const result = { status, headers, bytes, text: bytes.toString(), error: null }
  const headerValues = Object.fromEntries(headers)
  expect(headerValues['x-request-id']).toMatch(/^[\w.:-]+$/)
  if (init.method === 'OPTIONS') {
    expect([status, headerValues]).toMatchObject([200, contract.preflight])
    return result
  }
  const { link, ...sameHeaders } = contract.headers
  expect(headerValues).toMatchObject(sameHeaders)
  // A success may link to more than the descriptions.
  expect(headerValues['link']?.split(', ').slice(0, 2).join(', ')).toBe(link)
  if (status >= 400) return { ...result, error: refusalOf(contract, result) }
  const etag = headers.get('etag')
  if (status === 304) {
    expect(bytes).toHaveLength(0)
    expect([headers.get('content-length'), headers.get('content-type')]).toEqual([null, null])
  } else {
    const sha256 = sha256Hex(bytes)
    const digest = `sha-256=:${sha256HexToBase64(sha256)}:`
    const { contentType = 'application/json', otherSuccess } = contract
    const types = [contentType, ...(otherSuccess ? [otherSuccess.contentType] : [])]
    const length = String(bytes.byteLength)
    expect([status, etag, headerValues['content-length']]).toEqual([200, `"${sha256}"`, length])
    expect(types.map(typeHeader)).toContain(headerValues['content-type'])
    expect([headerValues['content-digest'], headerValues['repr-digest']]).toEqual([digest, digest])
  }
  const {
    'Content-Digest': _content,
    'X-Free-LLM-Seed': _seed,
    Deprecation: _deprecation,
    Sunset: _sunset,
    'CDN-Cache-Control': _cdn,
    'Memento-Datetime': _memento,
    ...expectedHeaders
  } = contract.successHeaders
  for (const [name, meaning] of Object.entries(expectedHeaders)) {
    const literal = /^`(.*)`$/.exec(meaning)?.[1]
    expect(headers.get(name), name).toEqual(literal ?? expect.any(String))
  }
  return result
}

/** Texts say their character set; bytes and link lists, which are always UTF-8, have none. */
function typeHeader(contentType: string): string {
  if (contentType === 'text/csv') return CSV_TYPE
  return contentType === 'application/octet-stream' ? contentType : `${contentType}; charset=utf-8`
}

function refusalOf(contract: Contract<string>, result: ContractResponse): string {
  const { refusals, methodNotAllowed, headRefused } = contract
  const { status, headers, text } = result
  const { error, message, parameter, value, ...members } = JSON.parse(text) as {
    error: string
    message: string
    parameter?: string
    value?: string
    retryAfterSeconds?: number
  }
  const { retryAfterSeconds } = members
  const refusal = refusals[error]
  expect(message).toBe(
    refusalMessage(refusal ?? { when: '' }, {
      ...(parameter && { parameter }),
      ...(value !== undefined && { value }),
    }).replaceAll('`', ''),
  )
  const foreign = Object.keys(members).filter((name) => !(name in (refusal?.memberSchemas ?? {})))
  expect([status, foreign]).toEqual([refusal?.status, []])
  const refusalHeaders = ['cache-control', 'etag', 'allow', 'retry-after'].map((name) => headers.get(name))
  const allow = error === methodNotAllowed ? (headRefused ? 'GET' : 'GET, HEAD') : null
  expect(refusalHeaders).toEqual(['no-store', null, allow, retryAfterSeconds?.toString() ?? null])
  return error
}

/** As {@link requestRoute}, for the history. */
export function requestHistory(
  app: Pick<H3, 'request'>,
  query: string,
  init?: Parameters<typeof requestRoute>[2],
): Promise<ContractResponse> {
  return requestRoute(app, `/api/feed/history${query}`, init)
}
