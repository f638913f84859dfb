/** What of a DOM is used here; the libraries bring no types of their own that fit a program without one. */
export interface DomNode {
  nodeType: number
  nodeValue: string | null
  firstChild: DomNode | null
  nextSibling: DomNode | null
  parentNode: DomNode | null
}

export interface DomElement extends DomNode {
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
export function textBelow(root: DomNode): string {
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
export function depthBelow(root: DomNode): number {
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
