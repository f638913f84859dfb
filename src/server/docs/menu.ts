import { findTerm, parseSearchText, withLastAsPrefix } from '../../domain/feed/search/search-terms.ts'
import type { QueryTerm } from '../../domain/feed/search/search-terms.ts'
import { placeWords } from '../../domain/feed/search/tokenize.ts'
import type { CutText } from '../../domain/feed/search/tokenize.ts'
import { NOTHING, codeSpans, html } from '../page/html.ts'
import type { Html } from '../page/html.ts'
import type { PageContent } from '../page/layout.ts'
import { markWords } from '../page/search-page.ts'
import type { PublishedInterface } from './openapi.ts'
import type { GuideSection } from './markdown.ts'

export interface MenuEntry {
  path: string
  title: string
  /** First sentence under its heading. */
  summary: string
}

/** The menu of all documents, by group. */
export type Menu = readonly { title: string; entries: readonly MenuEntry[] }[]

/** A page of the documentation: the search, its content, and the menu of all documents beside or below it. */
export function withMenu(menu: Menu, current: string, content: Html): Html {
  return html`<div class="docs-bar">${docsSearch('')} <a class="to-menu" href="#menu">All documents</a></div>
    <div class="documents">
      <article class="document">${content}</article>
      <nav id="menu" aria-label="Documents" tabindex="-1">
        ${menu.map(({ title, entries }) => {
          const isCurrent = entries.some(({ path }) => path === current)
          return html`<details ${isCurrent ? html`open` : NOTHING}>
            <summary class="group">${title}</summary>
            <ul>
              ${entries.map((entry) => menuItem(entry, current))}
            </ul>
          </details>`
        })}
      </nav>
    </div>`
}

/** The form of the search of the documentation. @param query the words of the present search */
function docsSearch(query: string): Html {
  return html`<form
    class="filters"
    role="search"
    action="/docs"
    method="get"
    aria-label="Search the documentation"
  >
    <label
      ><span class="unseen">Search the documentation</span>
      <input
        type="search"
        name="q"
        maxlength="200"
        value="${query}"
        placeholder="Search the documentation"
        required
    /></label>
    <button type="submit">Search</button>
  </form>`
}

/** `/docs`: the results of a search, then the guides by reader, then the interfaces. */
export function indexPage(
  groups: Menu,
  interfaces: readonly PublishedInterface[],
  searchIndex: () => readonly IndexedSection[],
  query: string,
): Pick<PageContent, 'title' | 'main'> {
  const guides = groups.map(
    ({ title, entries }) =>
      html`<section>
        <h2>${title}</h2>
        <ul>
          ${entries.map((guide) => html`<li><a href="${guide.path}">${guide.title}</a> ${summaryShown(guide)}</li>`)}
        </ul>
      </section>`,
  )
  return {
    title: `Documentation${query === '' ? '' : `: ${query}`} · dash`,
    main: html`<article class="document guides">
      <h1>Documentation</h1>
      ${docsSearch(query)} ${query === '' ? NOTHING : searchResults(searchIndex(), query)} ${guides}
      <section>
        <h2>Interfaces</h2>
        <dl>
          ${interfaces.map(
            (each) =>
              html`<dt>${each.title}</dt>
                <dd>${described(each)}</dd>`,
          )}
        </dl>
      </section>
    </article>`,
  }
}

/** The summary of a guide without its reader, whom the group names. */
function summaryShown({ summary }: MenuEntry): Html {
  const text = summary.replace(/^For [^:]*: ./, (start) => start.slice(-1).toUpperCase())
  return text === '' ? NOTHING : html`<small>${codeSpans(text)}</small>`
}

/** The summary of an interface, with links to its guide and its OpenAPI document. */
export function described({ path, guide, title, summary }: PublishedInterface): Html {
  const name = html`<span class="unseen"> of ${title}</span>`
  return html`${summary} <a href="${guide}">Guide${name}</a> ·
    <a href="${path}/openapi.json">OpenAPI 3.1${name}</a>`
}

function menuItem({ path, title }: MenuEntry, current: string): Html {
  return html`<li>
    <a href="${path}" ${path === current ? html`aria-current="page"` : NOTHING}>${title}</a>
  </li>`
}

/**
 * The menu: guides by reader, the first ones for newcomers and the last ones for contributors. Each page by its path
 * below `/docs/`. Pages of single decisions are omitted: their list links to them.
 */
export const MENU_GROUPS: Readonly<Record<string, readonly string[]>> = {
  Visitors: ['readme', 'tour', 'page', 'faq', 'chat', 'ranking', 'glossary'],
  Developers: ['quick-start', 'api', 'free-models', 'v1', 'mcp', 'agent-chat', 'embedding', 'errors'],
  Operators: [
    'deployment',
    'configuration',
    'commands',
    'collecting',
    'importing',
    'articles',
    'publishing',
    'static-hosting',
    'operations',
    'monitoring',
    'backup',
    'security',
    'troubleshooting',
  ],
  Auditors: ['proof', 'auditing', 'signed-log', 'evidence'],
  Internals: ['architecture', 'model-scores', 'lite-suite', 'model-errors', 'agent-tools'],
  Project: ['decisions', 'benchmarks', 'contributing', 'changelog', 'demo-sources'],
}

/** A section of a guide that can be found. */
interface IndexedSection {
  path: string
  guide: string
  title: string
  text: string
  words: { title: CutText; text: CutText }
}

/** Splits guides into sections with their words. */
export function indexSections(
  guides: readonly { path: string; title: string; sections: readonly GuideSection[] }[],
): IndexedSection[] {
  return guides.flatMap(({ path, title: guide, sections }) =>
    sections.map(({ id, title, text }) => ({
      path: `${path}#${id}`,
      guide,
      title,
      text,
      words: { title: placeWords(`${guide} ${title}`), text: placeWords(text) },
    })),
  )
}

/** Most results of a search, and most of them of one page. */
const RESULTS_MAX = 20
const SECTIONS_OF_PAGE = 2

/** A word in a title counts as much as so many in the text. */
const TITLE_WEIGHT = 10

/**
 * The sections that have every term of a query, best first: words in titles count most. If there are none, the sections
 * that have some, those with most terms first. Guides stand before decisions.
 */
function findSections(
  index: readonly IndexedSection[],
  query: string,
): { sections: IndexedSection[]; match: 'all' | 'some' } {
  const typed = parseSearchText(query)
  const terms = withLastAsPrefix(typed) ?? typed
  const found = index
    .map((section) => ({ section, ...rate(section, terms) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count || isDecision(a) - isDecision(b) || b.score - a.score)
  const complete = found.filter(({ count }) => count === terms.length)
  const [match, rated] = complete.length > 0 ? (['all', complete] as const) : (['some', found] as const)
  const shown = new Map<string, number>()
  const sections = rated.flatMap(({ section }) => {
    const number = (shown.get(section.guide) ?? 0) + 1
    shown.set(section.guide, number)
    return number > SECTIONS_OF_PAGE ? [] : [section]
  })
  return { sections: sections.slice(0, RESULTS_MAX), match }
}

/** Decisions stand behind the guides. */
function isDecision({ section }: { section: IndexedSection }): number {
  return Number(section.path.startsWith('/docs/decisions/'))
}

/** The number of terms in a section, and how often they occur. */
function rate(
  { words: { title, text } }: IndexedSection,
  terms: readonly QueryTerm[],
): { count: number; score: number } {
  const scores = terms.map(
    (term) => TITLE_WEIGHT * findTerm(title, term).length + Math.log1p(findTerm(text, term).length),
  )
  return {
    count: scores.filter((score) => score > 0).length,
    score: scores.reduce((sum, score) => sum + score, 0),
  }
}

function searchResults(index: readonly IndexedSection[], query: string): Html {
  const { sections, match } = findSections(index, query)
  if (sections.length === 0)
    return html`<p class="empty">No page of the documentation has any of these words.</p>`
  const note = match === 'all' ? NOTHING : html`<p>No page has all of these words; these have some.</p>`
  return html`${note}
    <ol class="found">
      ${sections.map(
        ({ path, guide, title, text }) =>
          html`<li>
            <a href="${path}">${markWords(title, query)}</a>
            ${guide === title ? NOTHING : html`<small>${guide}</small>`}
            <p>${markWords(excerptOf(text, query), query)}</p>
          </li>`,
      )}
    </ol>`
}

/** Characters of an excerpt, and of its part before the first word that was found. */
const EXCERPT = { length: 200, before: 60 }

/** The part of a text around the first word that was found. */
function excerptOf(text: string, query: string): string {
  const words = placeWords(text)
  const starts = parseSearchText(query).flatMap((term) => findTerm(words, term).map(({ start }) => start))
  const start = text.lastIndexOf(' ', Math.max(0, Math.min(...starts, text.length) - EXCERPT.before)) + 1
  const from = starts.length === 0 ? 0 : start
  const end = from + EXCERPT.length
  return `${from > 0 ? '… ' : ''}${text.slice(from, end)}${end < text.length ? ' …' : ''}`
}
