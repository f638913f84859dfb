import { Readability } from '@mozilla/readability'
import { parseHTML } from 'linkedom'
import { parse as parseAsBrowser, serialize } from 'parse5'
import { mediaTypeOf } from '../http.ts'
import {
  credibleEncoding,
  decode,
  headerEncoding,
  likelyEncoding,
  metaEncoding,
  xmlEncoding,
} from './decode.ts'
import { forbidsKeeping } from './robots.ts'

/** A page with an article in it, or HTML that is text as a whole. */
export type ExtractRequest = UndecodedPage | { as: 'fragment'; html: string }

interface UndecodedPage {
  as: 'page'
  bytes: Uint8Array
  /** Value of the `content-type` header. */
  contentType: string
  /** Product token that a page's robots elements may name. */
  token: string
}

/**
 * The text before conversion to plain text; `none` if there is no article; `forbidden` if the page forbids storing
 * it. The target of a page that soon opens another one, as it is written.
 */
export type Extracted = ({ kind: 'text'; text: string } | { kind: 'none' } | { kind: 'forbidden' }) & {
  target?: string | null
}

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
  textContent: string | null
  getAttribute(name: string): string | null
  querySelectorAll(selector: string): Iterable<DomElement>
}

interface PageDocument extends DomElement {
  documentElement: DomElement
  body: DomElement
}

/**
 * Extracts the text of HTML. A hostile page can take unlimited time and memory, so run it in a process that can be
 * ended.
 */
export function extract(request: ExtractRequest): Extracted {
  if (request.as === 'fragment') return { kind: 'text', text: textWithin(parse(request.html).body) }
  const document = parsePage(request)
  const { token } = request
  const target = refreshTarget(document)
  for (const meta of document.querySelectorAll('meta')) {
    const name = meta.getAttribute('name')?.trim().toLowerCase()
    const isForReader = name === 'robots' || name === token
    if (isForReader && forbidsKeeping(meta.getAttribute('content') ?? '', token))
      return { kind: 'forbidden', target }
  }
  if (depthWithin(document.documentElement) > DEPTH_MAX) return { kind: 'none' }
  // Classes name formulas.
  const options = { serializer: (node: DomElement) => node, disableJSONLD: true, keepClasses: true }
  const article = new Readability<DomElement>(document, options).parse()
  return article?.content
    ? { kind: 'text', text: textWithin(article.content), target }
    : { kind: 'none', target }
}

/** The value of a `meta` element that opens another page within seconds. */
const REFRESH = /^\s*[0-5](?:\.\d*)?\s*[;,\s]\s*(?:url\s*=\s*)?(["']?)(.+?)\1\s*$/is

function refreshTarget(document: PageDocument): string | null {
  for (const meta of document.querySelectorAll('meta')) {
    const isRefresh = meta.getAttribute('http-equiv')?.trim().toLowerCase() === 'refresh'
    const [, , target] = (isRefresh ? REFRESH.exec(meta.getAttribute('content') ?? '') : null) ?? []
    if (target !== undefined) return target
  }
  return null
}

/** Parses a page in the encoding that it names, wherever its `meta` element stands, or in the likely one. */
function parsePage({ bytes, contentType }: UndecodedPage): PageDocument {
  const isXml = mediaTypeOf(contentType) === 'application/xhtml+xml'
  const credible = (encoding: string | null): string | null => credibleEncoding(encoding, bytes)
  const named = credible(headerEncoding(contentType)) ?? (isXml ? credible(xmlEncoding(bytes)) : null)
  const assumed = named ?? likelyEncoding(bytes)
  const document = parse(decode(bytes, assumed), isXml)
  const declared = named ?? credible(declaredEncoding(document)) ?? credible(xmlEncoding(bytes)) ?? assumed
  return declared === assumed ? document : parse(decode(bytes, declared), isXml)
}

function declaredEncoding(document: PageDocument): string | null {
  for (const meta of document.querySelectorAll('meta')) {
    const [charset = null, httpEquiv = null, content = null] = ['charset', 'http-equiv', 'content'].map(
      (name) => meta.getAttribute(name),
    )
    const encoding = metaEncoding({ charset, httpEquiv, content })
    if (encoding !== null) return encoding
  }
  return null
}

/** Elements in `noscript` are read, because no script runs. */
const PARSE_OPTIONS = { scriptingEnabled: false }

/**
 * Parses HTML. Readability needs linkedom, whose parser loses text that browsers show; so its input is what a browser's
 * parser understood. XHTML has another syntax, which linkedom reads, except for CDATA sections and some elements
 * without content.
 */
function parse(html: string, isXml = false): PageDocument {
  const { document }: { document: PageDocument } = parseHTML(
    isXml
      ? html.replace(/<!\[CDATA\[([^]*?)\]\]>/g, escapeSection).replace(EMPTY_ELEMENT, '<$1$2></$1>')
      : serialize(parseAsBrowser(html, PARSE_OPTIONS), PARSE_OPTIONS),
  )
  return document
}

/** An element without content, such as `<script src="a.js"/>`, whose text would go on to the end of the page. */
const EMPTY_ELEMENT =
  /<(script|style|iframe|object|audio|video|canvas|textarea|template|select|button|dialog|title|noscript)((?:\s(?:[^<>"']|"[^"]*"|'[^']*')*)?)\/>/gi

function escapeSection(_section: string, text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

const ELEMENT = 1
const TEXT = 3
const CDATA = 4

/** Elements without readable text. */
const HIDDEN_ELEMENTS: ReadonlySet<string> = new Set(
  (
    'script style template noscript noembed noframes iframe object audio video canvas svg annotation ' +
    'annotation-xml head title select datalist textarea button'
  ).split(' '),
)

function isHidden(element: DomElement): boolean {
  const isClosed = element.localName === 'dialog' && element.getAttribute('open') === null
  return isClosed || HIDDEN_ELEMENTS.has(element.localName) || formulaOf(element) !== null
}

/**
 * The TeX of a formula, whose elements show powers and fractions by their place alone: in MathML, and as MathJax and
 * Wikipedia write it. Null for other elements.
 */
function formulaOf(element: DomElement): string | null {
  const className = element.getAttribute('class') ?? ''
  if (className.includes('mjx-math')) return element.getAttribute('aria-label')
  if (className.includes('mwe-math-fallback-image')) return element.getAttribute('alt')
  if (element.localName !== 'math') return null
  const [tex] = element.querySelectorAll('annotation[encoding="application/x-tex"]')
  return element.getAttribute('alttext') ?? tex?.textContent ?? null
}

/** Raised numbers, such as those of powers and notes. */
const RAISED = /^\s*[-\d+−()]+\s*$/
const RAISABLE = '0123456789+-−()'
const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾'

/** Elements that begin and end a paragraph. */
const BLOCKS: ReadonlySet<string> = new Set(
  (
    'address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption ' +
    'figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li listing main menu nav ol p plaintext pre ' +
    'search section summary table tbody tfoot thead tr ul xmp'
  ).split(' '),
)

/**
 * Returns the text within a node as a person reads it: a blank line between blocks, a line break for `br`. White space is
 * kept within `pre` alone.
 */
function textWithin(root: DomNode): string {
  const parts: { isPre: boolean; text: string }[] = []
  let depthInPre = 0
  let depthInSup = 0
  const add = (text: string): void => {
    const isPre = depthInPre > 0
    const last = parts.at(-1)
    if (last?.isPre === isPre) last.text += text
    else parts.push({ isPre, text })
  }
  const endLine = (breaks: string): void => {
    // Highlighted code may have a block for each line.
    if (depthInPre === 0) add(breaks)
    else if (!parts.at(-1)?.text.endsWith('\n')) add('\n')
  }
  for (const { node, entering } of walk(root)) {
    if (node.nodeType === TEXT || node.nodeType === CDATA) {
      const written = node.nodeValue ?? ''
      const isRaised = depthInSup > 0 && RAISED.test(written)
      const text = isRaised
        ? written.replace(/\S/g, (sign) => SUPERSCRIPTS.charAt(RAISABLE.indexOf(sign)))
        : written
      // White space in HTML collapses to a space.
      if (entering) add(depthInPre > 0 ? text : text.replace(/\s+/g, ' '))
      continue
    }
    // A comment.
    if (node.nodeType !== ELEMENT) continue
    const name = (node as DomElement).localName
    if (entering) add(formulaOf(node as DomElement) ?? '')
    if (name === 'sup') depthInSup += entering ? 1 : -1
    if (name === 'pre' && !entering) depthInPre -= 1
    if (name === 'br' && entering) add('\n')
    else if (BLOCKS.has(name)) endLine(name === 'li' || name === 'tr' ? '\n' : '\n\n')
    else if (name === 'td' || name === 'th') add(' ')
    if (name === 'li' && entering) add('- ')
    if (name === 'pre' && entering) depthInPre += 1
  }
  return parts.map(({ isPre, text }) => (isPre ? text : collapse(text))).join('')
}

/** Joins the blanks of elements that follow each other, and removes those around lines. */
function collapse(text: string): string {
  return text
    .replace(/[^\S\n]+/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
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
    const child: DomNode | null = isElement && !isHidden(node as DomElement) ? node.firstChild : null
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
