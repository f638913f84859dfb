import { Readability } from '@mozilla/readability'
import { parseHTML } from 'linkedom'
import { forbidsKeeping } from './robots.ts'

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

/** The part of a DOM that is used here; the types of the libraries do not fit a program without one. */
interface DomNode {
  nodeType: number
  nodeValue: string | null
  firstChild: DomNode | null
  nextSibling: DomNode | null
  parentNode: DomNode | null
}

interface DomElement extends DomNode {
  localName: string
  attributes: Iterable<{ name: string; value: string }>
}

interface PageDocument extends DomElement {
  documentElement: DomElement
  body: DomElement
  querySelectorAll(selector: string): Iterable<DomElement>
}

/** The text in HTML. May take any time and memory on a hostile page: to be run in a thread that can be ended. */
export function extract({ html, as, token }: ExtractRequest): Extracted {
  const { document }: { document: PageDocument } = parseHTML(wholeDocument(html, as))
  if (as === 'fragment') return { kind: 'text', text: textWithin(document.body) }
  for (const meta of document.querySelectorAll('meta')) {
    const name = attributeOf(meta, 'name').trim().toLowerCase()
    const isForReader = name === 'robots' || name === token
    if (isForReader && forbidsKeeping(attributeOf(meta, 'content'), token)) return { kind: 'forbidden' }
  }
  if (depthWithin(document.documentElement) > DEPTH_MAX) return { kind: 'none' }
  const options = { serializer: (node: DomElement) => node, disableJSONLD: true }
  const article = new Readability<DomElement>(document, options).parse()
  return article?.content ? { kind: 'text', text: textWithin(article.content) } : { kind: 'none' }
}

/** The first attribute of a name in any case, as HTML has it; the parser leaves names as they are written. */
function attributeOf({ attributes }: DomElement, name: string): string {
  return [...attributes].find((attribute) => attribute.name.toLowerCase() === name)?.value ?? ''
}

/** With the `html`, `head` and `body` that HTML lets a page leave out; the parser does not add them. */
function wholeDocument(html: string, as: ExtractRequest['as']): string {
  if (as === 'page' && /<body\b/i.test(html) && /<html\b/i.test(html)) return html
  const content = as === 'page' ? html.replace(/<!doctype[^>]*>|<\/?(?:html|head|body)\b[^>]*>/gi, '') : html
  return `<!doctype html><html><head></head><body>${content}</body></html>`
}

const ELEMENT = 1
const TEXT = 3
const CDATA = 4

/** Elements that hold no text for a reader. */
const HIDDEN_ELEMENTS: ReadonlySet<string> = new Set(
  'script style template noscript iframe object svg math head title select textarea button'.split(' '),
)

/** Elements that begin and end a paragraph. */
const BLOCKS: ReadonlySet<string> = new Set(
  (
    'address article aside blockquote body dd details dialog div dl dt fieldset figcaption figure footer form ' +
    'h1 h2 h3 h4 h5 h6 header hgroup hr li main nav ol p pre section summary table tbody tfoot thead tr ul'
  ).split(' '),
)

/** The text below a node as a person reads it: a blank line between blocks, a line break for `br`. */
function textWithin(root: DomNode): string {
  const parts: string[] = []
  let preformatted = 0
  for (const { node, entering } of walk(root)) {
    if (node.nodeType === TEXT || node.nodeType === CDATA) {
      const text = node.nodeValue ?? ''
      // Newlines of HTML are spaces.
      if (entering) parts.push(preformatted > 0 ? text : text.replace(/\s+/g, ' '))
      continue
    }
    const name = (node as DomElement).localName
    if (name === 'pre') preformatted += entering ? 1 : -1
    if (name === 'br' && entering) parts.push('\n')
    else if (BLOCKS.has(name)) parts.push(name === 'li' || name === 'tr' ? '\n' : '\n\n')
    else if (name === 'td' || name === 'th') parts.push(' ')
    if (name === 'li' && entering) parts.push('- ')
  }
  return parts.join('')
}

/** The most elements any element below a node lies in. */
function depthWithin(root: DomNode): number {
  let depth = 0
  let deepest = 0
  for (const { node, entering } of walk(root)) {
    if (node.nodeType !== ELEMENT) continue
    depth += entering ? 1 : -1
    deepest = Math.max(deepest, depth)
  }
  return deepest
}

/** Every element below a node on its way in and out, and every text on its way in; without recursion. */
function* walk(root: DomNode): Generator<{ node: DomNode; entering: boolean }> {
  let node = root.firstChild
  while (node) {
    const isElement = node.nodeType === ELEMENT
    yield { node, entering: true }
    const child: DomNode | null =
      isElement && !HIDDEN_ELEMENTS.has((node as DomElement).localName) ? node.firstChild : null
    if (child) {
      node = child
      continue
    }
    if (isElement) yield { node, entering: false }
    let ancestor: DomNode = node
    while (ancestor.nextSibling === null && ancestor.parentNode !== null && ancestor.parentNode !== root) {
      ancestor = ancestor.parentNode
      yield { node: ancestor, entering: false }
    }
    node = ancestor.nextSibling
  }
}
