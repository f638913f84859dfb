import { lookup as systemLookup } from 'node:dns'
import type { LookupAddress, LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import { buildConnector } from 'undici'
import { isInRange, isPublicAddress, parseIpAddress } from '../../domain/address.ts'
import type { IpRange } from '../../domain/address.ts'
import { URL_MAX_LENGTH } from '../../domain/feed/article.ts'
import type { SkipReason } from '../../domain/feed/article.ts'
import type { Clock } from '../../domain/ports.ts'
import { errorCode, networkReason } from '../../domain/refusal.ts'
import type { Instant } from '../../domain/time.ts'
import { redirectTarget, retryAt, openHttpClient, UnsupportedCoding, readDecoded } from '../http.ts'
import type { HttpClient, HttpResponse } from '../http.ts'

/** Thrown when a page yields no text; becomes the result of its item. */
export class PageProblem extends Error {
  override readonly name = 'PageProblem'
  /** Reason to skip the page; null for a failure. */
  readonly why: SkipReason | null
  /** Earliest time of the next request that its host accepts. */
  readonly notBefore: Instant | null

  constructor(
    why: SkipReason | null,
    message: string,
    { cause, notBefore = null }: { cause?: unknown; notBefore?: Instant | null } = {},
  ) {
    super(message, { cause })
    this.why = why
    this.notBefore = notBefore
  }
}

/** Returns the problem among an error and its causes; otherwise the error as a failure. */
export function asPageProblem(error: unknown, url: string): PageProblem {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof PageProblem) return cause
    if (cause instanceof UnsupportedCoding)
      return new PageProblem('notHtml', `${url}: ${cause.message}`, { cause })
  }
  return new PageProblem(null, `${url}: ${networkReason(error)}`, { cause: error })
}

/** Maximum number of redirects followed from one URL. */
export const MAX_REDIRECTS = 5

/** Error codes of connections that ended before a response. */
const CLOSED: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** The head of a final response. */
export interface PageHead {
  url: URL
  status: number
  contentType: string
  /** Values of every `X-Robots-Tag` header. */
  robotsTags: readonly string[]
  /** Earliest time of the next request that the host accepts. */
  notBefore: Instant | null
}

/** A final response. The body is read only if it is a success. */
export interface PageResponse extends PageHead {
  bytes: Buffer
  /** True if the body has more than the allowed bytes. */
  isCut: boolean
}

/** A GET request for a page. */
export interface PageRequest {
  url: string
  accept: string
  /** Limit of the decompressed body. */
  maxBytes: number
  /** Called with each URL before it is requested, including redirect targets; throws to refuse. */
  beforeRequest?: (url: URL) => Promise<void>
  /** Called before the body of a success is read; throws to refuse. */
  beforeBody?: (head: PageHead) => void
}

/** A client for GET requests without cookies and credentials. It sends one request at a time to each host. */
export class PageClient {
  readonly #http: HttpClient
  readonly #userAgent: string
  readonly #clock: Clock
  /**
   * One queue per host. The queue of the HTTP agent does not suffice: a waiting request must respect a pause that the
   * previous response requires.
   */
  readonly #queues = new Map<string, LimitFunction>()
  readonly #pausedUntil = new Map<string, Instant>()

  /** @param http must itself reject private addresses */
  constructor(http: HttpClient, userAgent: string, clock: Clock) {
    this.#http = http
    this.#userAgent = userAgent
    this.#clock = clock
  }

  /**
   * Requests a URL and follows at most five redirects.
   *
   * @throws PageProblem; errors of the network
   */
  async get(request: PageRequest, signal: AbortSignal): Promise<PageResponse> {
    let url = parsePageUrl(request.url)
    for (let redirects = 0; ; redirects += 1) {
      await request.beforeRequest?.(url)
      const queue = this.#queues.get(url.host) ?? pLimit(1)
      this.#queues.set(url.host, queue)
      const response = await queue(() => this.#send(url, request, signal))
      if (!(response instanceof URL)) return response
      if (redirects === MAX_REDIRECTS)
        throw new PageProblem('redirects', `${request.url}: more than ${MAX_REDIRECTS} redirects`)
      url = response
    }
  }

  async #send(
    url: URL,
    { accept, maxBytes, beforeBody }: PageRequest,
    signal: AbortSignal,
  ): Promise<PageResponse | URL> {
    signal.throwIfAborted()
    const pausedUntil = this.#pausedUntil.get(url.host) ?? 0
    if (pausedUntil > this.#clock())
      throw new PageProblem('busy', `${url.host} requires a pause between requests`, {
        notBefore: pausedUntil,
      })
    const requestHeaders = { accept, 'accept-encoding': 'gzip, br', 'user-agent': this.#userAgent }
    const send = (): Promise<HttpResponse> =>
      this.#http.request(url, { signal, method: 'GET', headers: requestHeaders })
    // Some servers close a connection after a response without saying so.
    const response = await send().catch((error: unknown) => {
      if (!CLOSED.has(errorCode(error) ?? '')) throw error
      return send()
    })
    try {
      const { statusCode: status, headers } = response
      const location = redirectTarget(headers)
      if (REDIRECT_STATUSES.has(status) && location !== '') return parsePageUrl(location, url)
      const isBusy = status === 429 || status === 503
      const retryHeaders = { 'retry-after': firstValue(headers['retry-after']) }
      const head: PageHead = {
        url,
        status,
        contentType: firstValue(headers['content-type']),
        robotsTags: [headers['x-robots-tag'] ?? []].flat(),
        notBefore: isBusy ? retryAt(retryHeaders, this.#clock()) : null,
      }
      if (head.notBefore !== null) this.#pausedUntil.set(url.host, head.notBefore)
      if (status < 200 || status > 299) return { ...head, bytes: Buffer.alloc(0), isCut: false }
      beforeBody?.(head)
      return { ...head, ...(await readDecoded(response, maxBytes)) }
    } finally {
      // Closes a connection with unread data, so that no server can force this client to read it.
      response.body.destroy()
    }
  }
}

/**
 * Parses the URL of a page: http(s), no credentials, limited length, fragment removed.
 *
 * @throws PageProblem `badUrl`
 */
export function parsePageUrl(text: string, base?: URL): URL {
  const excerpt = text.slice(0, 200)
  let url
  try {
    url = new URL(text, base)
  } catch (cause) {
    throw new PageProblem('badUrl', `${excerpt}: not a URL`, { cause })
  }
  if (!/^https?:$/.test(url.protocol)) throw new PageProblem('badUrl', `${excerpt}: neither http nor https`)
  if (url.username !== '' || url.password !== '')
    throw new PageProblem('badUrl', `${url.host}: the URL contains credentials`)
  if (url.href.length > URL_MAX_LENGTH)
    throw new PageProblem('badUrl', `${excerpt}…: longer than ${URL_MAX_LENGTH}`)
  url.hash = ''
  return url
}

function firstValue(header: string | string[] | undefined): string {
  return [header ?? ''].flat()[0] ?? ''
}

/** Looks up every address of a name; `dns.lookup` has this signature. */
export type NameLookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Ports of public addresses that may be connected to. */
const PUBLIC_PORTS: ReadonlySet<number> = new Set([80, 443])

const CONNECT_MS = 10_000

/**
 * Opens connections to foreign servers that cannot reach private machines (docs/articles.md). The check applies to
 * the address a socket connects to: the addresses of a name are filtered in the lookup for that socket, an address
 * in a URL is checked before the socket is created, and the peer address is checked again after connecting.
 *
 * @param allowed ranges that are reachable although they are not public, on any port
 * @param lookup name lookup; the system's by default
 */
export function openGuardedConnections(
  allowed: readonly IpRange[],
  lookup: NameLookup = systemLookup,
): HttpClient {
  const isReachable = (address: string, port: number): boolean => {
    const parsed = parseIpAddress(address)
    if (parsed === null) return false
    if (allowed.some((range) => isInRange(parsed, range))) return true
    return isPublicAddress(parsed) && PUBLIC_PORTS.has(port)
  }
  const connect: buildConnector.connector = (options, callback) => {
    const port = Number(options.port || (options.protocol === 'https:' ? 443 : 80))
    const host = options.hostname.replace(/^\[(.*)\]$/, '$1')
    if (parseIpAddress(host) !== null && !isReachable(host, port)) {
      callback(privateAddress(host, host, port), null)
      return
    }
    const guarded = guardedLookup(lookup, (address) => isReachable(address, port), port)
    buildConnector({ timeout: CONNECT_MS, lookup: guarded })(options, (error, socket) => {
      if (error) {
        callback(error, null)
        return
      }
      const peer = socket.remoteAddress ?? ''
      if (isReachable(peer, port)) {
        callback(null, socket)
        return
      }
      socket.destroy()
      callback(privateAddress(host, peer, port), null)
    })
  }
  return openHttpClient({
    connect,
    // A page uses the connection of its robots.txt, so its name is not looked up again.
    connections: 1,
    pipelining: 1,
    maxHeaderSize: 32 * 1024,
  })
}

/** Returns a lookup that resolves a name to its reachable addresses only. */
function guardedLookup(
  lookup: NameLookup,
  isReachable: (address: string) => boolean,
  port: number,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) {
        callback(error, [])
        return
      }
      const reachable = addresses.filter(({ address }) => isReachable(address))
      const [first] = reachable
      const addressList = addresses.map(({ address }) => address).join(', ')
      if (!first) callback(privateAddress(hostname, addressList, port), [])
      else if (options.all === true) callback(null, reachable)
      else callback(null, first.address, first.family)
    })
  }
}

function privateAddress(host: string, addresses: string, port: number): PageProblem {
  const where = host === addresses ? host : `${host} (${addresses || 'no address'})`
  return new PageProblem('private', `${where}, port ${port}, is not a public web address`)
}
