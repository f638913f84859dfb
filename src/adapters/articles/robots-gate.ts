import { ALLOW_ALL, parseRobots, ROBOTS_MAX_BYTES } from '../../domain/feed/robots.ts'
import type { RobotsRules } from '../../domain/feed/robots.ts'
import { withTimeLimit } from '../time-limit.ts'
import type { PageAnswer, PageClient } from './page-client.ts'
import { asPageProblem, PageProblem } from './page-problem.ts'

/** The name rules are written for; also the first word of the user agent. */
export const PRODUCT_TOKEN = 'dash'

/** Each origin's robots.txt, asked once and kept while this lives: one run. */
export class RobotsGate {
  readonly #client: PageClient
  readonly #limitMs: number
  readonly #rules = new Map<string, Promise<RobotsRules>>()

  constructor(client: PageClient, limitMs: number) {
    this.#client = client
    this.#limitMs = limitMs
  }

  /**
   * @param signal ends the run, not one page: what is asked here is for every page of the origin
   * @throws PageProblem `robots` for a URL its origin asks not to read; a failure when that cannot be known
   */
  async require(url: URL, signal: AbortSignal): Promise<void> {
    let rules = this.#rules.get(url.origin)
    if (!rules) {
      rules = this.#ask(url.origin, signal)
      this.#rules.set(url.origin, rules)
    }
    if (!(await rules).allows(url.pathname + url.search)) {
      throw new PageProblem('robots', `${url.href}: the robots.txt of ${url.host} asks not to`)
    }
  }

  async #ask(origin: string, signal: AbortSignal): Promise<RobotsRules> {
    const url = `${origin}/robots.txt`
    const question = {
      url,
      accept: 'text/plain, */*;q=0.5',
      limit: { maxBytes: ROBOTS_MAX_BYTES, beyond: 'cut' },
      mayAsk: () => Promise.resolve(),
      mayRead: () => undefined,
    } as const
    try {
      const answer = await withTimeLimit(this.#limitMs, signal, (limited) =>
        this.#client.get(question, limited),
      )
      return rulesOf(answer)
    } catch (error) {
      const problem = asPageProblem(error, url)
      // As if there were none: RFC 9309, 2.3.1.2.
      if (problem.why === 'redirects') return ALLOW_ALL
      throw problem
    }
  }
}

/** @throws PageProblem when the server failed: then nothing may be read (RFC 9309, 2.3.1.4) */
function rulesOf({ status, url, bytes, notBefore }: PageAnswer): RobotsRules {
  if (status === 200) return parseRobots(new TextDecoder().decode(bytes), PRODUCT_TOKEN)
  if (status >= 400 && status < 500 && status !== 429) return ALLOW_ALL
  throw new PageProblem(null, `${url.href}: it answered ${status}, so that nothing may be read`, {
    notBefore,
  })
}
