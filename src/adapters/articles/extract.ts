import { TextDecoder } from 'node:util'
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

/** How far into a page its own word for its character set is looked for, in bytes; HTML allows no more. */
const PRESCAN_BYTES = 1_024

/**
 * The text of a page: by its byte order mark, else the character set its header names, else the one it names itself,
 * else UTF-8. Bytes that are no characters become U+FFFD.
 *
 * @param contentType value of the `content-type` header
 */
export function decodePage(bytes: Uint8Array, contentType: string): string {
  const decoder =
    decoderOfMark(bytes) ?? decoderOf(charsetOf(contentType)) ?? decoderOf(ownCharset(bytes)) ?? utf8()
  return decoder.decode(bytes)
}

/** The media type of a `content-type` header, in lower case and without parameters. */
export function mediaTypeOf(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase()
}

function decoderOfMark([first, second, third]: Uint8Array): TextDecoder | null {
  if (first === 0xef && second === 0xbb && third === 0xbf) return utf8()
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le')
  return first === 0xfe && second === 0xff ? new TextDecoder('utf-16be') : null
}

function decoderOf(label: string | null): TextDecoder | null {
  if (label === null) return null
  try {
    return new TextDecoder(label)
  } catch {
    // An unknown name counts as a missing one.
    return null
  }
}

function charsetOf(contentType: string): string | null {
  const [, quoted, plain] = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;"]+))/i.exec(contentType) ?? []
  return quoted ?? plain ?? null
}

/** What `<meta charset>` or `<meta http-equiv>` says; a page that says UTF-16 there can be read, so it is not. */
function ownCharset(bytes: Uint8Array): string | null {
  const start = new TextDecoder('latin1').decode(bytes.subarray(0, PRESCAN_BYTES))
  const [, label = null] = /<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([^\s"'/>;]+)/i.exec(start) ?? []
  return label !== null && /^utf-?16/i.test(label) ? 'utf-8' : label
}

function utf8(): TextDecoder {
  return new TextDecoder('utf-8')
}

/** What of a DOM is used here; the libraries bring no types of their own that fit a program without one. */
interface DomNode {
  nodeType: number
  nodeValue: string | null
  firstChild: DomNode | null
  nextSibling: DomNode | null
  parentNode: DomNode | null
}

interface DomElement extends DomNode {
  localName: string
}

const ELEMENT = 1
const TEXT = 3
const CDATA = 4

/** Elements that hold no text for a reader. */
const UNREAD: ReadonlySet<string> = new Set(
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
function textBelow(root: DomNode): string {
  const parts: string[] = []
  for (const { node, entering } of walk(root)) {
    if (node.nodeType === TEXT || node.nodeType === CDATA) {
      if (entering) parts.push(isPreformatted(node) ? (node.nodeValue ?? '') : flat(node.nodeValue ?? ''))
      continue
    }
    const name = (node as DomElement).localName
    if (name === 'br' && entering) parts.push('\n')
    else if (BLOCKS.has(name)) parts.push(name === 'li' || name === 'tr' ? '\n' : '\n\n')
    else if (name === 'td' || name === 'th') parts.push(' ')
    if (name === 'li' && entering) parts.push('- ')
  }
  return parts.join('')
}

/** The most elements any element below a node lies in. */
function depthBelow(root: DomNode): number {
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
    const within: DomNode | null =
      isElement && !UNREAD.has((node as DomElement).localName) ? node.firstChild : null
    if (within) {
      node = within
      continue
    }
    if (isElement) yield { node, entering: false }
    let at: DomNode = node
    while (at.nextSibling === null && at.parentNode !== null && at.parentNode !== root) {
      at = at.parentNode
      yield { node: at, entering: false }
    }
    node = at.nextSibling
  }
}

/** Newlines of HTML are spaces. */
function flat(text: string): string {
  return text.replace(/\s+/g, ' ')
}

function isPreformatted(node: DomNode): boolean {
  for (let at = node.parentNode; at !== null; at = at.parentNode) {
    if (at.nodeType === ELEMENT && (at as DomElement).localName === 'pre') return true
  }
  return false
}
