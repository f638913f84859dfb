import { Marked, Renderer } from 'marked'
import type { Token, Tokens } from 'marked'
import { NOTHING, html } from '../page/html.ts'
import type { Html } from '../page/html.ts'

/**
 * Renders one of the project's documents. HTML in it is shown as text, except comments, which are left out; headings get
 * ids, except nested ones, and a list of them stands below the title; wide tables and code scroll, by keyboard too.
 *
 * @param resolveLink resolves a relative link; null leaves only its text
 */
export function renderMarkdown(text: string, resolveLink: (link: string) => string | null): Html {
  const marked = new Marked({
    gfm: true,
    renderer: {
      html: ({ text: raw }) => (COMMENT.test(raw) ? '' : html`${raw}`.html),
      heading(token) {
        const { tokens, depth } = token
        const section = sections.get(token)
        const attribute = section ? html` id="${section.id}"`.html : ''
        return `<h${depth}${attribute}>${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      code({ text: code, lang = '' }) {
        const needs = needsText(lang)
        const note = needs === '' ? NOTHING : html`<p class="needs">Needs ${needs}:</p>`
        return html`${note}
          <pre tabindex="0"><code>${code}</code></pre>`.html
      },
      table(token) {
        const table = Renderer.prototype.table.call(this, token)
        return `<div class="wide" tabindex="0" role="group" aria-label="table">${table}</div>`
      },
      link({ href, tokens }) {
        const inner: Html = { html: this.parser.parseInline(tokens) }
        if (/^https?:/.test(href)) return html`<a href="${href}" rel="noopener noreferrer">${inner}</a>`.html
        const target = resolveLink(href)
        return target === null ? inner.html : html`<a href="${target}">${inner}</a>`.html
      },
      image({ href, text: alt }) {
        // As on code hosts: `picture.png#gh-dark-mode-only` is for one theme.
        const [name = '', theme] = href.split(/#gh-(light|dark)-mode-only$/)
        const source = resolveLink(name)
        if (source === null) return html`${alt}`.html
        if (theme) return html`<img src="${source}" alt="${alt}" class="in-${theme}" />`.html
        return html`<img src="${source}" alt="${alt}" />`.html
      },
    },
  })
  const tokens = marked.lexer(text)
  const sections = sectionsIn(tokens)
  const afterTitle = tokens[0]?.type === 'heading' ? 1 : 0
  const title = { html: marked.parser(tokens.slice(0, afterTitle)) }
  const content = { html: marked.parser(tokens.slice(afterTitle)) }
  return html`${title} ${contentsOf([...sections.values()])} ${content}`
}

const COMMENT = /^<!--[^]*-->\s*$/

/** Fewest sections of a page that has a list of them. */
const CONTENTS_MIN = 3

/** The list of a page's sections; with their subsections if there are few sections. */
function contentsOf(headings: readonly GuideSection[]): Html {
  const sections = headings.filter(({ depth }) => depth === 2)
  const listed =
    sections.length < CONTENTS_MIN ? headings.filter(({ depth }) => depth === 2 || depth === 3) : sections
  if (listed.length < CONTENTS_MIN) return NOTHING
  return html`<nav class="contents" aria-label="On this page">
    <ul>
      ${listed.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}
    </ul>
  </nav>`
}

/** A part of a document below a heading. */
export interface GuideSection {
  /** Id of its heading on the page. */
  id: string
  title: string
  /** Level of its heading. */
  depth: number
  /** Its text on one line, without markup. */
  text: string
}

/** The sections of a document, for its search. */
export function sectionsOf(text: string): GuideSection[] {
  return [...sectionsIn(new Marked({ gfm: true }).lexer(text)).values()]
}

/** The sections of a document by their headings, without nested ones. */
function sectionsIn(document: readonly Token[]): Map<Token, GuideSection> {
  const ids = new Map<string, number>()
  const sections = new Map<Token, GuideSection>()
  let section: GuideSection | undefined
  for (const token of document) {
    if (token.type === 'heading') {
      const { tokens, depth } = token as Tokens.Heading
      const title = plainText(tokens)
      section = { id: uniqueId(slugOf(title), ids), title, depth, text: '' }
      sections.set(token, section)
    } else if (section && token.type !== 'html') section.text += withoutMarkup(token.raw)
  }
  for (const each of sections.values()) each.text = each.text.trim()
  return sections
}

/** A part of a document as text for its search: no targets of links, fences and marks. */
function withoutMarkup(raw: string): string {
  return ` ${raw
    .replaceAll(/\]\([^)]*\)/g, '')
    .replaceAll(/^```.*$|^ *(?:-|\d+\.) |\||-{3,}/gm, ' ')
    .replaceAll(/(?<!\w)_(\S(?:[^_]*\S)?)_(?!\w)/g, '$1')
    .replaceAll(/[`*[\]]/g, '')
    .replaceAll(/\s+/g, ' ')}`
}

/** Plain text of inline markup. */
function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) =>
      'tokens' in token && token.tokens ? plainText(token.tokens) : 'text' in token ? token.text : '',
    )
    .join('')
}

/** Makes a heading's id as code hosts do, so that links work both there and here. */
function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')
}

function uniqueId(slug: string, ids: Map<string, number>): string {
  const count = ids.get(slug) ?? 0
  ids.set(slug, count + 1)
  return count === 0 ? slug : `${slug}-${count}`
}

/**
 * Prerequisites of examples (CONTRIBUTING.md, "Examples in the documents"), by the mark in the fence, with their text
 * beside the example.
 */
export const NEEDS: Readonly<Record<string, string>> = {
  internet: 'the Internet',
  account: 'an account at a provider',
  root: 'root',
  docker: 'Docker',
  terminal: 'a person at a terminal',
  machines: 'other machines',
  clone: 'a clone of the project',
  program: 'the program it names',
}

/** The prerequisites in the fence of a block as text; empty if there are none. */
function needsText(info: string): string {
  const [, needs = ''] = /(?:^| )needs=(\S+)/.exec(info) ?? []
  return needs
    .split(',')
    .filter((need) => need !== '')
    .map((need) => NEEDS[need] ?? need)
    .join(', ')
}
