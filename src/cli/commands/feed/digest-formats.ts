import { COLUMNS, COLUMN_NAMES } from '../../../domain/feed/columns.ts'
import { visibleLine } from '../../../domain/text.ts'
import { addDays } from '../../../domain/time.ts'
import { html } from '../../../server/page/html.ts'
import type { Html } from '../../../server/page/html.ts'
import { counted } from '../../terminal.ts'
import type { Digest } from './digest-content.ts'
import { addressOf, itemLine } from './item-lines.ts'
import type { Layout, NewsItem } from './item-lines.ts'

/** A digest as headings, sentences and items, for every format. */
interface Outline {
  title: string
  /** Sentences about the whole. */
  facts: readonly string[]
  sections: readonly Section[]
}

interface Section {
  heading: string
  /** Sentence in place of the items, if there are none. */
  empty: string
  rows: readonly { mark: string; item: NewsItem }[]
}

const WRITERS = { text: textOf, md: markdownOf, markdown: markdownOf, html: htmlOf }
export type DigestFormat = keyof typeof WRITERS

/** @param layout terminal of the format `text` */
export function formatDigest(digest: Digest, format: DigestFormat, layout: Layout): string {
  return WRITERS[format](outlineOf(digest), layout)
}

function outlineOf({ since, until, year, live }: Digest): Outline {
  return {
    title: `Digest of ${since.slice(0, 10)} to ${until.slice(0, 10)}`,
    facts: [...yearFacts(year), gapsFact(year)].filter((fact) => fact !== ''),
    sections: [...yearSections(year), ...liveSections(live)],
  }
}

function yearFacts({ before, after, changes }: Digest['year']): string[] {
  if (after === null) return ['No Year has been published yet.']
  if (before === null)
    return [`No Year was current when the period began, so nothing is compared. Newest: ${nameOf(after)}.`]
  if (before.sha256 === after.sha256)
    return [`No Year was published in the period. Newest: ${nameOf(after)}.`]
  const compared = `${nameOf(before)} and ${nameOf(after)}`
  return changes === null
    ? [`${compared} cannot be compared: one of them has an older layout.`]
    : [`The Top Year (Popular): ${compared} are compared.`]
}

function nameOf({ asOfDay, publishedAt }: NonNullable<Digest['year']['after']>): string {
  return `the Year up to ${asOfDay} (published ${publishedAt.slice(0, 16).replace('T', ' ')} UTC)`
}

const REASONS = { attempts_spent: 'all attempts failed', missed: 'no attempt was made' }

function gapsFact({ before, gaps }: Digest['year']): string {
  if (before === null) return ''
  if (gaps.length === 0) return 'No gaps.'
  const stretches: { first: string; last: string; reason: string }[] = []
  for (const { asOfDay, reason } of gaps) {
    const previous = stretches.at(-1)
    const shown = reason === null ? 'not in the ledger' : REASONS[reason]
    if (previous?.reason === shown && addDays(previous.last, 1) === asOfDay) previous.last = asOfDay
    else stretches.push({ first: asOfDay, last: asOfDay, reason: shown })
  }
  const days = stretches.map(
    ({ first, last, reason }) => `${first === last ? first : `${first} to ${last}`} (${reason})`,
  )
  return `${counted(gaps.length, 'gap')}: ${days.join(', ')}.`
}

function yearSections({ changes, ...compared }: Digest['year']): Section[] {
  if (changes === null || compared.before?.sha256 === compared.after?.sha256) return []
  const { newFirst } = changes
  const entered = changes.entered.map((item) => ({ mark: `#${item.rank}`, item }))
  const left = changes.left.map((item) => ({ mark: `was #${item.rank}`, item }))
  const moved = changes.moved.map(({ after: item, rose }) => ({
    mark: `${rose > 0 ? '▲' : '▼'} ${Math.abs(rose)} to #${item.rank}`,
    item,
  }))
  const section = (what: string, rows: Section['rows']): Section => ({
    heading: `${what.charAt(0).toUpperCase()}${what.slice(1)}${rows.length > 0 ? ` (${rows.length})` : ''}`,
    empty: `Nothing ${what}.`,
    rows,
  })
  const first = newFirst === null ? [] : [{ mark: '#1', item: newFirst }]
  return [
    { heading: 'New number 1', empty: 'Number 1 is the same.', rows: first },
    section('entered', entered),
    section('left', left),
    section('moved by 10 ranks or more', moved),
  ]
}

const PERIODS = { trending: 'trending', day: 'of the day', week: 'of the week', month: 'of the month' }

function liveSections(live: Digest['live']): Section[] {
  if (live === null) return []
  return COLUMN_NAMES.filter((name) => live.lists[name].length > 0).map((name) => ({
    heading: `Live feed, top ${PERIODS[live.sort]}: ${COLUMNS[name]}`,
    empty: '',
    rows: live.lists[name].map((item) => ({ mark: `#${item.rank}`, item })),
  }))
}

function textOf({ title, facts, sections }: Outline, layout: Layout): string {
  const blocks = sections.map(({ heading, empty, rows }) => {
    const width = Math.max(...rows.map(({ mark }) => mark.length))
    const lines = rows.map(({ mark, item }) => itemLine(`  ${mark.padStart(width)}  `, item, layout))
    return [heading, ...(rows.length > 0 ? lines : [`  ${empty}`])].join('\n')
  })
  return [[title, ...facts].join('\n'), ...blocks].join('\n\n')
}

function markdownOf({ title, facts, sections }: Outline): string {
  const blocks = sections.map(({ heading, empty, rows }) => {
    const lines = rows.map(({ mark, item }) => `- ${mark}: ${markdownLink(item)}`)
    return `## ${heading}\n\n${rows.length > 0 ? lines.join('\n') : empty}`
  })
  return [`# ${title}`, ...facts, ...blocks].join('\n\n')
}

function markdownLink(item: NewsItem): string {
  const address = addressOf(item)
  const title = markdownText(item.title)
  return address === null ? title : `[${title}](<${address}>)`
}

/** Escapes punctuation that Markdown interprets, also in plain addresses; a title is one line of text. */
function markdownText(text: string): string {
  return visibleLine(text).replaceAll(/[\\`*_[\]<>|~&:@]|(?<=www)\./gi, String.raw`\$&`)
}

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}' +
  'h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}ul{list-style:none;padding:0}li{margin:.35rem 0}' +
  '.mark{display:inline-block;min-width:7rem;font-variant-numeric:tabular-nums}'

/** A page that stands alone: it loads nothing and runs no script. */
function htmlOf({ title, facts, sections }: Outline): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'" />
        <title>${title}</title>
        <style>
          ${STYLE}
        </style>
      </head>
      <body>
        <h1>${title}</h1>
        ${facts.map((fact) => html`<p>${fact}</p> `)}${sections.map(htmlSection)}
      </body>
    </html>`.html
}

function htmlSection({ heading, empty, rows }: Section): Html {
  const items = rows.map(
    ({ mark, item }) => html`<li><span class="mark">${mark}</span> ${htmlLink(item)}</li> `,
  )
  return html`<h2>${heading}</h2>
    ${
      rows.length > 0
        ? html`<ul>
            ${items}
          </ul>`
        : html`<p>${empty}</p>`
    } `
}

function htmlLink(item: NewsItem): Html {
  const address = addressOf(item)
  const title = html`<bdi>${visibleLine(item.title)}</bdi>`
  return address === null
    ? title
    : html`<a href="${address}" rel="noopener noreferrer nofollow ugc">${title}</a>`
}
