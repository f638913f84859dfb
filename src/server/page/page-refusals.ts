import type { H3Event } from 'h3'
import { Refusal } from '../../domain/refusal.ts'
import { NO_STORE, respond } from '../respond.ts'
import { HTML_TYPE, PAGE_HEADERS } from './headers.ts'
import { codeSpans, html, NOTHING } from './html.ts'
import { layout } from './layout.ts'
import type { Frame } from './layout.ts'

/** What every page may refuse with before it is rendered (docs/page.md). */
export type PageRefusal = 'query_too_long' | 'page_limit'

/** `page_limit`, and how long to wait. */
export class PageLimit extends Refusal<PageRefusal> {
  readonly retryAfterSeconds: number

  constructor(retryAfterSeconds: number) {
    super('page_limit')
    this.retryAfterSeconds = retryAfterSeconds
  }
}

const REFUSALS: Readonly<Record<PageRefusal, { status: number; title: string; when: string }>> = {
  query_too_long: {
    status: 400,
    title: 'This address is too long',
    when: 'a query has at most 1,024 bytes, and what the start page keeps of it in its links at most 512',
  },
  page_limit: {
    status: 429,
    title: 'Too many new pages at once',
    when: 'your address, or all together, asked for more pages that had to be made than this server makes at a time; try again in a moment',
  },
}

/** Refusals as pages. They are made once: under a flood they must cost next to nothing. */
export function pageRefusals(
  frame: Frame,
): (event: H3Event, code: PageRefusal, retryAfterSeconds?: number) => Response {
  const made = new Map<PageRefusal, Buffer>()
  return (event, code, retryAfterSeconds) => {
    const { status, title, when } = REFUSALS[code]
    const body = made.get(code) ?? Buffer.from(pageOf(frame, code, title, when))
    made.set(code, body)
    const headers = { ...PAGE_HEADERS, ...NO_STORE, 'content-type': HTML_TYPE }
    const retry = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
    return respond(event, status, { ...headers, ...retry }, body)
  }
}

function pageOf(frame: Frame, code: PageRefusal, title: string, when: string): string {
  const main = html`<h1>${title}</h1>
    <p class="refusal" role="alert"><code>${code}</code>: ${codeSpans(when)}.</p>
    <p><a href="/">The start page</a></p>`
  return layout(frame, { title, head: NOTHING, rooms: [], main })
}
