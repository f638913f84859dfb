import { lookup as systemLookup } from 'node:dns'
import type { LookupAddress, LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { buildConnector } from 'undici'
import { URL_MAX_LENGTH } from '../../domain/feed/article.ts'
import type { SkipReason } from '../../domain/feed/article.ts'
import { networkReason } from '../../domain/refusal.ts'
import { isInRange, isPublicAddress, parseIpAddress } from '../../domain/address.ts'
import type { IpRange } from '../../domain/address.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import { openConnections, readInto, retryAt } from '../http.ts'
import type { Connections, HttpResponse } from '../http.ts'

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

export interface BodyLimit {
  /** Of the body as it comes out of its compression. */
  maxBytes: number
  /** What a longer body is: not read at all, or read up to there. */
  beyond: 'refuse' | 'cut'
}

/**
 * A body, decompressed as it comes, so that a small one that unpacks to a huge one is ended at the limit.
 *
 * @param encoding value of the `content-encoding` header
 * @throws PageProblem `tooLarge`, or `notHtml` for a compression that was not asked for
 */
export async function unpackBody(
  body: Readable,
  encoding: string,
  { maxBytes, beyond }: BodyLimit,
  url: string,
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  const collect = (source: AsyncIterable<Uint8Array>): Promise<void> => readInto(chunks, source, maxBytes)
  let failure: unknown = null
  try {
    const name = encoding.trim().toLowerCase()
    if (name === '' || name === 'identity') {
      await pipeline(body, collect)
    } else {
      const decoder = DECODERS[name]
      if (!decoder) throw new PageProblem('notHtml', `${url}: it is compressed with ${name.slice(0, 40)}`)
      await pipeline(body, decoder(), collect)
    }
  } catch (error) {
    body.destroy()
    failure = error
  }
  const bytes = Buffer.concat(chunks)
  // What breaks off behind the limit breaks because of it.
  if (failure !== null && bytes.byteLength <= maxBytes) throw failure
  if (bytes.byteLength > maxBytes && beyond === 'refuse') {
    throw new PageProblem('tooLarge', `${url}: it is larger than ${maxBytes} bytes`)
  }
  return bytes.subarray(0, maxBytes)
}

/** Why a page gives no text; becomes the reading of its item. */
export class PageProblem extends Error {
  override readonly name = 'PageProblem'
  /** null when something failed rather than was declined. */
  readonly why: SkipReason | null
  /** When its host wants to be asked again. */
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

/** The problem an error is or was caused by, else the error itself as a failure. */
export function asPageProblem(error: unknown, url: string): PageProblem {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof PageProblem) return cause
  }
  return new PageProblem(null, `${url}: ${networkReason(error)}`, { cause: error })
}

/** Redirections followed from one URL. */
const REDIRECTS = 5

const REDIRECTIONS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** A final answer, its body read when the status is 200. */
export interface PageAnswer {
  url: URL
  status: number
  contentType: string
  /** Values of every `X-Robots-Tag` header. */
  robotsTags: readonly string[]
  /** When the host asks to be asked again. */
  notBefore: Instant | null
  bytes: Buffer
}

export interface PageQuestion {
  url: string
  accept: string
  limit: BodyLimit
  /** Asked about each URL before it is, the first and every one a redirection names; refuses by throwing. */
  mayAsk: (url: URL) => Promise<void>
  /** Asked before a body of 200 is read; refuses by throwing. */
  mayRead: (answer: Omit<PageAnswer, 'bytes'>) => void
}

/** GET without cookies and credentials; one question at a time to each host. */
export class PageClient {
  readonly #connections: Connections
  readonly #userAgent: string
  readonly #clock: Clock
  readonly #turns = new Map<string, Promise<void>>()
  readonly #closedUntil = new Map<string, Instant>()

  /** @param connections must themselves see to it that they reach public places alone */
  constructor(connections: Connections, userAgent: string, clock: Clock) {
    this.#connections = connections
    this.#userAgent = userAgent
    this.#clock = clock
  }

  /**
   * The answer at a URL, over at most five redirections.
   *
   * @throws PageProblem, or whatever made the answer impossible
   */
  async get(question: PageQuestion, signal: AbortSignal): Promise<PageAnswer> {
    let url = parsePageUrl(question.url)
    for (let redirects = 0; ; redirects += 1) {
      await question.mayAsk(url)
      const answer = await this.#inTurn(url.host, () => this.#ask(url, question, signal))
      if (!(answer instanceof URL)) return answer
      if (redirects === REDIRECTS) {
        throw new PageProblem('redirects', `${question.url}: more than ${REDIRECTS} redirections`)
      }
      url = answer
    }
  }

  async #ask(
    url: URL,
    { accept, limit, mayRead }: PageQuestion,
    signal: AbortSignal,
  ): Promise<PageAnswer | URL> {
    signal.throwIfAborted()
    const closedUntil = this.#closedUntil.get(url.host) ?? 0
    if (closedUntil > this.#clock()) {
      throw new PageProblem('busy', `${url.host} wants to be left alone`, { notBefore: closedUntil })
    }
    const headers = { accept, 'accept-encoding': 'gzip, br', 'user-agent': this.#userAgent }
    const response = await this.#connections.request(url, { signal, method: 'GET', headers })
    try {
      const { statusCode: status } = response
      const location = textOf(response.headers['location'])
      if (REDIRECTIONS.has(status) && location !== '') return parsePageUrl(location, url)
      const answer = {
        url,
        status,
        contentType: textOf(response.headers['content-type']),
        robotsTags: [response.headers['x-robots-tag'] ?? []].flat(),
        notBefore: status === 429 || status === 503 ? this.#pause(url, response.headers) : null,
      }
      if (status !== 200) return { ...answer, bytes: Buffer.alloc(0) }
      mayRead(answer)
      const encoding = textOf(response.headers['content-encoding'])
      return { ...answer, bytes: await unpackBody(response.body, encoding, limit, url.href) }
    } finally {
      // Close a connection with an unread rest of a response, so that no server can make us read it.
      response.body.destroy()
    }
  }

  /** Asks a host nothing more until it wants to be asked again. */
  #pause(url: URL, headers: HttpResponse['headers']): Instant | null {
    const until = retryAt({ 'retry-after': textOf(headers['retry-after']) }, this.#clock())
    if (until !== null) this.#closedUntil.set(url.host, until)
    return until
  }

  /** The agent's queue would do but for this: whoever waited must see a pause that the answer before it asked for. */
  async #inTurn<T>(host: string, ask: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(host)
    let done = (): void => undefined
    const turn = new Promise<void>((resolve) => (done = resolve))
    this.#turns.set(host, turn)
    await before
    try {
      return await ask()
    } finally {
      done()
      if (this.#turns.get(host) === turn) this.#turns.delete(host)
    }
  }
}

/**
 * A URL that pages are read from: http(s), no credentials, not too long, without its fragment.
 *
 * @throws PageProblem `badUrl`
 */
function parsePageUrl(text: string, base?: URL): URL {
  const named = text.slice(0, 200)
  let url
  try {
    url = new URL(text, base)
  } catch (cause) {
    throw new PageProblem('badUrl', `${named}: not a URL`, { cause })
  }
  if (!/^https?:$/.test(url.protocol)) throw new PageProblem('badUrl', `${named}: neither http nor https`)
  if (url.username !== '' || url.password !== '') {
    throw new PageProblem('badUrl', `${url.host}: the URL holds credentials`)
  }
  if (url.href.length > URL_MAX_LENGTH)
    throw new PageProblem('badUrl', `${named}…: longer than ${URL_MAX_LENGTH}`)
  url.hash = ''
  return url
}

function textOf(header: string | string[] | undefined): string {
  return (Array.isArray(header) ? header[0] : header) ?? ''
}

/** Asks for every address of a name; `dns.lookup` has this form. */
export type NameLookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Ports of public addresses that pages are read from. */
const PUBLIC_PORTS: ReadonlySet<number> = new Set([80, 443])

const CONNECT_MS = 10_000

/**
 * Connections to strangers' servers that reach no machine they should not (docs/articles.md). What is judged is the
 * address a socket is connected to: a name's addresses are filtered as they are looked up for that very socket, an
 * address in a URL before the socket is made, and the peer of the socket once more when it stands.
 *
 * @param allowed ranges that may be reached although they are not public, and on any port
 * @param lookup how names are looked up; the system's way unless a test has its own
 */
export function openGuardedConnections(
  allowed: readonly IpRange[],
  lookup: NameLookup = systemLookup,
): Connections {
  const mayReach = (address: string, port: number): boolean => {
    const parsed = parseIpAddress(address)
    if (parsed === null) return false
    if (allowed.some((range) => isInRange(parsed, range))) return true
    return isPublicAddress(parsed) && PUBLIC_PORTS.has(port)
  }
  const connect: buildConnector.connector = (options, callback) => {
    const port = Number(options.port || (options.protocol === 'https:' ? 443 : 80))
    const host = options.hostname.replace(/^\[(.*)\]$/, '$1')
    if (parseIpAddress(host) !== null && !mayReach(host, port)) {
      callback(refused(host, host, port), null)
      return
    }
    const guarded = guardedLookup(lookup, (address) => mayReach(address, port), port)
    buildConnector({ timeout: CONNECT_MS, lookup: guarded })(options, (error, socket) => {
      if (error) {
        callback(error, null)
        return
      }
      const peer = socket.remoteAddress ?? ''
      if (mayReach(peer, port)) {
        callback(null, socket)
        return
      }
      socket.destroy()
      callback(refused(host, peer, port), null)
    })
  }
  return openConnections({
    connect,
    // The page comes over the connection of its robots.txt, so that its name is not looked up again.
    connections: 1,
    pipelining: 1,
    maxHeaderSize: 32 * 1024,
  })
}

/** Looks a name up and gives only addresses that may be reached, whatever else it stands for. */
function guardedLookup(
  lookup: NameLookup,
  mayReach: (address: string) => boolean,
  port: number,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) {
        callback(error, [])
        return
      }
      const reachable = addresses.filter(({ address }) => mayReach(address))
      const [first] = reachable
      const named = addresses.map(({ address }) => address).join(', ')
      if (!first) callback(refused(hostname, named, port), [])
      else if (options.all === true) callback(null, reachable)
      else callback(null, first.address, first.family)
    })
  }
}

function refused(host: string, addresses: string, port: number): PageProblem {
  const where = host === addresses ? host : `${host} (${addresses || 'no address'})`
  return new PageProblem('private', `${where}, port ${port}, is not a public place of pages`)
}
