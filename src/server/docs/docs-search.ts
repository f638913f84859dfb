import { findTerm, parseSearchText, withLastAsPrefix } from '../../domain/feed/search/search-terms.ts'
import type { QueryTerm } from '../../domain/feed/search/search-terms.ts'
import { placeWords } from '../../domain/feed/search/tokenize.ts'
import type { CutText } from '../../domain/feed/search/tokenize.ts'
import { NOTHING, html } from '../page/html.ts'
import type { Html } from '../page/html.ts'
import { markWords } from '../page/search-page.ts'
import type { GuideSection } from './markdown.ts'

/** A section of a guide that can be found. */
export interface IndexedSection {
  path: string
  /** Title of the guide. */
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

/** Most results of a search. */
const RESULTS_MAX = 20

/** A word in a title counts as much as so many in the text. */
const TITLE_WEIGHT = 10

/**
 * The sections that have every term of a query, best first: words in titles count most. If there are none, the sections
 * that have some, those with most terms first.
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
    .sort((a, b) => b.count - a.count || b.score - a.score)
  const complete = found.filter(({ count }) => count === terms.length)
  const [match, rated] = complete.length > 0 ? (['all', complete] as const) : (['some', found] as const)
  return { sections: rated.slice(0, RESULTS_MAX).map(({ section }) => section), match }
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

/** The results of a search of the documentation. */
export function searchResults(index: readonly IndexedSection[], query: string): Html {
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
