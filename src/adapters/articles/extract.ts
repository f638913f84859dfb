import { Readability } from '@mozilla/readability'
import { parseHTML } from 'linkedom'
import { forbidsKeeping } from './robots.ts'

/** HTML to extract text from: a page with an article in it, or a fragment that is text as a whole. */
export interface ExtractRequest {
  html: string
  as: 'page' | 'fragment'
  /** Product token that a page's robots elements may name. */
  token: string
}

/**
 * The text before conversion to plain text; `none` if there is no article; `forbidden` if the page forbids storing
 * it.
 */
export type Extracted = { kind: 'text'; text: string } | { kind: 'none' } | { kind: 'forbidden' }

/** No normal page is nested deeper, and Readability's running time grows steeply with the depth. */
const DEPTH_MAX = 200

/** The part of the DOM used here; the libraries' types require the DOM's own types. */
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

/**
 * Extracts the text of HTML. A hostile page can take unlimited time and memory, so run it in a thread that can be
 * ended.
 */
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

/** Returns the first attribute of a name, ignoring case as HTML does; the parser keeps the case. */
function attributeOf({ attributes }: DomElement, name: string): string {
  return [...attributes].find((attribute) => attribute.name.toLowerCase() === name)?.value ?? ''
}

/** Adds the `html`, `head` and `body` elements that HTML allows a page to omit; the parser does not. */
function wholeDocument(html: string, as: ExtractRequest['as']): string {
  if (as === 'page' && /<body\b/i.test(html) && /<html\b/i.test(html)) return html
  const content = as === 'page' ? html.replace(/<!doctype[^>]*>|<\/?(?:html|head|body)\b[^>]*>/gi, '') : html
  return `<!doctype html><html><head></head><body>${content}</body></html>`
}

const ELEMENT = 1
const TEXT = 3
const CDATA = 4

/** Elements without readable text. */
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

/** Returns the text within a node as a person reads it: a blank line between blocks, a line break for `br`. */
function textWithin(root: DomNode): string {
  const parts: string[] = []
  let preformatted = 0
  for (const { node, entering } of walk(root)) {
    if (node.nodeType === TEXT || node.nodeType === CDATA) {
      const text = node.nodeValue ?? ''
      // White space in HTML collapses to a space.
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

/** Returns the greatest nesting depth below a node. */
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

/** Yields every element below a node when it is entered and left, and every text once, without recursion. */
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
