import type { ArchivePage, ArchivePages, ExportedArchive } from '../../../domain/year/log/static-layout.ts'
import { lastDayOf, timelineStops } from '../../../domain/year/history/calendar.ts'
import type { TimelineStop } from '../../../domain/year/history/calendar.ts'
import { publicationSteps } from '../../../domain/year/history/changes.ts'
import type { PublicationStep } from '../../../domain/year/history/changes.ts'
import { lastStops } from '../../../domain/year/history/rank-history.ts'
import type { Manifest } from '../../../domain/year/ledger.ts'
import {
  STATIC_DAYS,
  STATIC_FEEDS,
  STATIC_HOME,
  STATIC_MISSING,
  staticAssetPath,
  staticObjectPath,
  staticPagePath,
} from '../../../domain/year/log/static-layout.ts'
import type { Day } from '../../../domain/time.ts'
import { writeAtom, writeJsonFeed, writeRss } from '../../feed/formats.ts'
import { envelopeOf } from '../../year/proved-publications.ts'
import type { ReadPublication } from '../../year/proved-publications.ts'
import { manifestsOf, PUBLICATIONS_MAX, yearListReader } from '../../year/year-lists.ts'
import { exportedChangesFeed, gapNote } from '../../year/change-entries.ts'
import { plainRelease } from '../assets.ts'
import { ORDERS, feedColumns } from '../feed-columns.ts'
import { NOTHING, formatDay, html } from '../html.ts'
import type { Html } from '../html.ts'
import { pageQuery } from '../layout.ts'
import { exportedProofPanel } from './proof-panel.ts'
import { daysOf } from './time-travel.ts'
import { notesOf } from './year-view.ts'

/** The attribute by which a stored page shows that it links to the next one. */
const NEXT = 'rel="next"'

interface PageStep extends PublicationStep {
  path: string
}

/**
 * Makes the pages and feeds of an export from the functions of the server's pages (docs/static-hosting.md). They need no
 * script, and all links between them are relative, so that they work on any host and below any path.
 */
export function exportedPages(archive: ExportedArchive): ArchivePages {
  const stops = timelineStops(archive.proved)
  const steps = withPaths(publicationSteps(stops))
  const pathOf = new Map(steps.map(({ item, path }) => [item.manifest, path]))
  const release = plainRelease()
  const publication = async (manifest: Manifest): Promise<ReadPublication> => ({
    manifest,
    published: { body: Buffer.from(await archive.publication(manifest)) },
  })
  // A digest names the same bytes as long as the export runs.
  const lists = yearListReader({ publication }, { objectChangeToken: (sha256) => Promise.resolve(sha256) })

  const render = async (index: number, root: string): Promise<Uint8Array> => {
    const step = steps[index] as PageStep
    const place = stops.findIndex((stop) => stop.kind === 'publication' && stop.item === step.item)
    const shown = lastStops(stops, place, PUBLICATIONS_MAX)
    const envelope = envelopeOf(await publication(step.item.manifest))
    const notes = notesOf({ shown, stops }, await lists(manifestsOf(shown)))
    const { manifest } = step.item
    const feed = envelope
      ? feedColumns(envelope.feed, null, {
          now: manifest.publishedAt,
          order: ORDERS.year,
          query: pageQuery(new URLSearchParams()),
          notes,
          exportedFrom: root + staticObjectPath(manifest.sha256),
        })
      : olderLayout(manifest, root)
    const title = `Top of the 365 days to ${formatDay(manifest.asOfDay)}`
    const main = html`<h1>${title}</h1>
      <div class="travel">
        ${neighbours(steps[index - 1], steps[index + 1], root)}
        ${exportedProofPanel(step.item, archive, root)}
      </div>
      <div class="home">
        <section id="feed" class="section" aria-labelledby="feed-title">
          <h2 id="feed-title">Lists</h2>
          ${feed}
        </section>
      </div>
      ${step.gaps.map((gap) => html`<div class="gap" role="note">${gapNote(gap)}</div>`)}`
    return documentOf(release.id, root, title, main)
  }
  return {
    assets: new Map([...release.files].map(([name, { body }]) => [staticAssetPath(release.id, name), body])),
    publications: steps.map(({ path }, index): ArchivePage => ({
      path,
      isCurrent: (stored) => index === steps.length - 1 || Buffer.from(stored).includes(NEXT),
      render: () => render(index, '../'),
    })),
    async overviews() {
      const days = documentOf(release.id, '', 'All days of the Top Year', daysList(stops, pathOf))
      const pageOf = (manifest: Manifest): string => pathOf.get(manifest) ?? ''
      const feedAt = (path: string) =>
        exportedChangesFeed(steps, lists, pageOf, archive.checkpoint.origin, path)
      const { atom, rss, json } = STATIC_FEEDS
      return new Map([
        [STATIC_MISSING, encode(MISSING.html)],
        [STATIC_DAYS, days],
        [atom, encode(writeAtom(await feedAt(atom)))],
        [rss, encode(writeRss(await feedAt(rss)))],
        [json, encode(writeJsonFeed(await feedAt(json)))],
        [STATIC_HOME, steps.length > 0 ? await render(steps.length - 1, '') : days],
      ])
    },
  }
}

/** Without links: a host sends it for paths of any depth. */
const MISSING = html`<!doctype html>
  <html lang="en">
    <title>Not found · dash</title>
    <p>This archive has no such file.</p>
  </html> `

/** @param root relative URL of the root of the export, empty or ending with a slash */
function documentOf(releaseId: string, root: string, title: string, main: Html): Uint8Array {
  const { atom, rss, json } = STATIC_FEEDS
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta http-equiv="content-security-policy" content="${POLICY}" />
        <meta name="referrer" content="no-referrer" />
        <title>${title} · dash</title>
        <link rel="icon" type="image/svg+xml" href="${root}${staticAssetPath(releaseId, 'icon.svg')}" />
        <link rel="stylesheet" href="${root}${staticAssetPath(releaseId, 'page.css')}" />
        <link rel="alternate" type="application/atom+xml" title="Changes of the Year" href="${root}${atom}" />
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header class="top">
          <a class="brand" href="${root}${STATIC_HOME}">dash</a>
          <nav class="sections" aria-label="Sections">
            <ul>
              <li><a href="${root}${STATIC_HOME}">Newest</a></li>
              <li><a href="${root}${STATIC_DAYS}">All days</a></li>
            </ul>
          </nav>
        </header>
        <main id="main" tabindex="-1">${main}</main>
        <footer class="foot">
          <nav aria-label="Feeds">
            <ul>
              <li><a href="${root}${rss}">RSS</a></li>
              <li><a href="${root}${atom}">Atom</a></li>
              <li><a href="${root}${json}">JSON Feed</a></li>
            </ul>
          </nav>
        </footer>
      </body>
    </html> `
  // Indentation is a third of a page.
  return encode(page.html.replaceAll(/\n\s+/g, '\n'))
}

/** Titles are untrusted text: a page runs no script and loads nothing from elsewhere. */
const POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

/** An imported archive can have several publications of a day. */
function withPaths(steps: readonly PublicationStep[]): PageStep[] {
  const numbers = new Map<Day, number>()
  return steps.map((step) => {
    const { asOfDay } = step.item.manifest
    const number = (numbers.get(asOfDay) ?? 0) + 1
    numbers.set(asOfDay, number)
    return { ...step, path: staticPagePath(asOfDay, number) }
  })
}

function neighbours(previous: PageStep | undefined, next: PageStep | undefined, root: string): Html {
  const dayOfStep = ({ item }: PageStep): string => formatDay(item.manifest.asOfDay)
  return html`<nav class="steps" aria-label="Other days">
    ${
      previous
        ? html`<a href="${root}${previous.path}" rel="prev"
            ><span aria-hidden="true">← </span>Previous<span class="unseen">: ${dayOfStep(previous)}</span></a
          >`
        : NOTHING
    }
    ${
      next
        ? html`<a href="${root}${next.path}" ${{ html: NEXT }}
            >Next<span class="unseen">: ${dayOfStep(next)}</span><span aria-hidden="true"> →</span></a
          >`
        : NOTHING
    }
    <a href="${root}${STATIC_DAYS}">All days</a>
  </nav>`
}

function olderLayout({ publicationId, algorithmVersion, sha256 }: Manifest, root: string): Html {
  return html`<p class="empty">
    <code>${publicationId}</code> has the layout of <code>${algorithmVersion}</code>, an older version that
    this page cannot show. <a href="${root}${staticObjectPath(sha256)}">The publication</a> is here as
    published.
  </p>`
}

/** All publications and gaps, the newest first, by month. */
function daysList(stops: readonly TimelineStop[], pathOf: ReadonlyMap<Manifest, string>): Html {
  const newestFirst = stops.toReversed()
  const monthOf = (stop: TimelineStop): string => lastDayOf(stop).slice(0, 7)
  return html`<h1>All days of the Top Year</h1>
    ${[...new Set(newestFirst.map(monthOf))].map(
      (month) =>
        html`<h2>${MONTH.format(Date.parse(month))}</h2>
          <ul class="days">
            ${newestFirst
              .filter((stop) => monthOf(stop) === month)
              .map((stop) => html`<li>${dayLine(stop, pathOf)}</li>`)}
          </ul>`,
    )}`
}

function dayLine(stop: TimelineStop, pathOf: ReadonlyMap<Manifest, string>): Html {
  if (stop.kind === 'gap') return html`${daysOf(stop)}: a gap`
  const { manifest } = stop.item
  return html`<a href="${pathOf.get(manifest) ?? ''}">${manifest.asOfDay}</a>`
}

const MONTH = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })
