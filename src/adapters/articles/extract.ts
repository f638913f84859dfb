import { Readability } from '@mozilla/readability'
import { parseHTML } from 'linkedom'
import { forbidsKeeping } from '../../domain/feed/robots.ts'
import { depthBelow, textBelow } from './element-text.ts'
import type { DomElement } from './element-text.ts'

/** What is to be made text: a page with an article somewhere in it, or a piece of HTML that is all text. */
export interface ExtractRequest {
  html: string
  as: 'page' | 'fragment'
  /** The reader a page's robots elements may name. */
  token: string
}

/** The text, not yet made plain; `none` where there is no article; `forbidden` where the page asks not to be kept. */
export type Extracted = { kind: 'text'; text: string } | { kind: 'none' } | { kind: 'forbidden' }

/** No page for people is nested deeper; readability's time grows with a high power of it. */
const DEPTH_MAX = 200

interface PageDocument extends DomElement {
  documentElement: DomElement
  body: DomElement
  querySelectorAll(selector: string): Iterable<AttributedElement>
}

interface AttributedElement extends DomElement {
  attributes: Iterable<{ name: string; value: string }>
}

/** The text in HTML. May take any time and memory on a hostile page: to be run in a thread that can be ended. */
export function extract({ html, as, token }: ExtractRequest): Extracted {
  const document = (parseHTML(wholeDocument(html, as)) as unknown as { document: PageDocument }).document
  if (as === 'fragment') return { kind: 'text', text: textBelow(document.body) }
  for (const meta of document.querySelectorAll('meta')) {
    const name = attributeOf(meta, 'name').trim().toLowerCase()
    const words = attributeOf(meta, 'content')
    if ((name === 'robots' || name === token) && forbidsKeeping(words, token)) return { kind: 'forbidden' }
  }
  if (depthBelow(document.documentElement) > DEPTH_MAX) return { kind: 'none' }
  const article = new Readability<DomElement>(document, {
    serializer: (node) => node,
    disableJSONLD: true,
  }).parse()
  return article?.content ? { kind: 'text', text: textBelow(article.content) } : { kind: 'none' }
}

/** The first attribute of a name in any case, as HTML has it; the parser leaves names as they are written. */
function attributeOf({ attributes }: AttributedElement, name: string): string {
  return [...attributes].find((attribute) => attribute.name.toLowerCase() === name)?.value ?? ''
}

/** With the `html`, `head` and `body` that HTML lets a page leave out; the parser does not add them. */
function wholeDocument(html: string, as: ExtractRequest['as']): string {
  if (as === 'page' && /<body\b/i.test(html) && /<html\b/i.test(html)) return html
  const content = as === 'page' ? html.replace(/<!doctype[^>]*>|<\/?(?:html|head|body)\b[^>]*>/gi, '') : html
  return `<!doctype html><html><head></head><body>${content}</body></html>`
}
