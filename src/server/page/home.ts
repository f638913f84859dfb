import type { H3, H3Event } from 'h3'
import type { Clock } from '../../domain/ports.ts'
import { formatInstant } from '../../domain/time.ts'
import { yearEnvelopeSchema } from '../../domain/year/schema.ts'
import type { YearEnvelope, YearItem } from '../../domain/year/schema.ts'
import type { Log } from '../log.ts'
import { requestId, respondText } from '../respond.ts'
import { codeOf } from '../route.ts'
import { historyContract } from '../year/contract.ts'
import type { ProvedPublication, ProvedPublications } from '../year/proved-publications.ts'
import { html } from './html.ts'
import type { Html } from './html.ts'
import { HTML_TYPE, layout, PAGE_HEADERS } from './layout.ts'
import { STYLE } from './style.ts'

const SHOWN = 20

/** Mounts `/`: what the server holds, the newest Year, and where to go from there. Works without scripts. */
export function mountHome(app: H3, { publications, demo, clock, log }: HomePorts): void {
  const envelopes = new WeakMap<ProvedPublication, YearEnvelope | null>()
  const envelopeOf = (publication: ProvedPublication): YearEnvelope | null => {
    const known = envelopes.get(publication)
    if (known !== undefined) return known
    const parsed = yearEnvelopeSchema.safeParse(JSON.parse(publication.published.body.toString('utf8')))
    const envelope = parsed.success ? parsed.data : null
    envelopes.set(publication, envelope)
    return envelope
  }
  app.get('/assets/page.css', (event) =>
    respondText(event, 200, { 'cache-control': 'public, max-age=3600' }, 'text/css; charset=utf-8', STYLE),
  )
  app.get('/', async (event) => {
    try {
      const publication = await publications.latestAt(clock())
      const content = publication ? newest(publication, envelopeOf(publication)) : NOTHING_YET
      return page(event, 200, content, demo)
    } catch (error) {
      const code = codeOf(historyContract, error)
      log.error({ requestId: requestId(event.req.headers), code, err: error }, 'page without its publication')
      const content = html`<p class="gap">
        The archive cannot be shown: <code>${code}</code>. Nothing else is shown in its place.
      </p>`
      return page(event, 503, content, demo)
    }
  })
}

export interface HomePorts {
  publications: ProvedPublications
  demo: boolean
  clock: Clock
  log: Log
}

const NOTHING_YET = html`<p>
  Nothing has been published yet. Import signals, then run <code>publish-year</code>.
</p>`

/** By which feed readers find what to subscribe to. */
const FEED_LINKS = html`<link rel="alternate" type="application/rss+xml" title="dash (RSS)" href="/api/rss" />
  <link rel="alternate" type="application/atom+xml" title="dash (Atom)" href="/api/atom" />
  <link rel="alternate" type="application/feed+json" title="dash (JSON Feed)" href="/api/feed.json" />`

function page(event: H3Event, status: number, content: Html, demo: boolean): Response {
  const main = html`<main>
    <h1>dash</h1>
    <p>
      The Top Year of Hacker News, Lobsters and LessWrong: published once a day, never changed, and provable.
      <a href="/docs">Documentation</a>. Live: <a href="/api/feed">feed</a>, <a href="/api/rss">RSS</a>,
      <a href="/api/atom">Atom</a>, <a href="/api/feed.json">JSON Feed</a>.
    </p>
    ${content}
  </main>`
  return respondText(event, status, PAGE_HEADERS, HTML_TYPE, layout('dash', demo, FEED_LINKS, main))
}

function newest({ manifest }: ProvedPublication, envelope: YearEnvelope | null): Html {
  const question = `/api/feed/history?sort=year&at=${formatInstant(manifest.publishedAt)}`
  return html`<dl class="facts">
      <dt>As of</dt>
      <dd>${manifest.asOfDay}</dd>
      <dt>Published</dt>
      <dd>${formatInstant(manifest.publishedAt)}</dd>
      <dt>Publication</dt>
      <dd><a href="${question}">${manifest.publicationId}</a>, ${manifest.byteSize} bytes</dd>
      <dt>SHA-256</dt>
      <dd><code>${manifest.sha256}</code></dd>
    </dl>
    ${envelope ? columns(envelope) : html`<p>Its layout is that of ${manifest.algorithmVersion}, an older version.</p>`}`
}

function columns({ coverage, feed }: YearEnvelope): Html {
  return html`<p>Coverage: ${coverage.materializedDays} of ${coverage.targetDays} days.</p>
    <div class="columns">
      ${column('Popular', feed.popular)} ${column('Hacker News', feed.hackerNews)}
      ${column('Lobsters', feed.lobsters)} ${column('LessWrong', feed.lessWrong)}
    </div>`
}

function column(title: string, items: readonly YearItem[]): Html {
  return html`<section>
    <h2>${title}</h2>
    <ol>
      ${items.slice(0, SHOWN).map(listItem)}
    </ol>
  </section>`
}

function listItem({ title, url, discussionUrl, points, comments }: YearItem): Html {
  const link = url ?? discussionUrl
  const text = link === null ? html`${title}` : html`<a href="${link}" rel="noreferrer">${title}</a>`
  return html`<li>${text} <small>${points} points, ${comments ?? 0} comments</small></li>`
}
