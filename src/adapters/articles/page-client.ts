import { request } from 'undici'
import type { Dispatcher } from 'undici'
import { URL_MAX_LENGTH } from '../../domain/feed/article-plan.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import { retryAt } from '../retry-after.ts'
import { PageProblem } from './page-problem.ts'
import { readBody } from './read-body.ts'
import type { BodyLimit } from './read-body.ts'

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
  readonly #dispatcher: Dispatcher
  readonly #userAgent: string
  readonly #clock: Clock
  readonly #turns = new Map<string, Promise<void>>()
  readonly #closedUntil = new Map<string, Instant>()

  /** @param dispatcher must itself see to it that it reaches public places alone */
  constructor(dispatcher: Dispatcher, userAgent: string, clock: Clock) {
    this.#dispatcher = dispatcher
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
    const response = await request(url, { dispatcher: this.#dispatcher, signal, method: 'GET', headers })
    // A connection whose answer is not read to its end is closed, so that nobody makes us read it.
    const leave = (): void => void response.body.on('error', () => undefined).destroy()
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
      return { ...answer, bytes: await readBody(response.body, encoding, limit, url.href) }
    } finally {
      leave()
    }
  }

  /** Asks a host nothing more until it wants to be asked again. */
  #pause(url: URL, headers: Dispatcher.ResponseData['headers']): Instant | null {
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
