import DOMPurify from 'dompurify'
import { Marked } from 'marked'
import { html } from '../../html.ts'
import { make } from '../dom.ts'
import { withoutOverrides } from '../../../../domain/text.ts'

const TAGS =
  'a b blockquote br code del em hr i li ol p pre s strong sub sup table tbody td th thead tr ul'.split(' ')

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Show HTML and the alternative text of images as text.
    html: ({ text }) => html`${text}`.html,
    image: ({ text }) => html`${text}`.html,
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
    heading({ tokens }) {
      return `<p><strong>${this.parser.parseInline(tokens)}</strong></p>`
    },
  },
})

/**
 * Renders a model's Markdown as safe elements: no images, scripts or styles; links only to web pages, in a new window
 * without referrer; no characters that override the text direction. Text nested too deeply to parse is shown verbatim.
 */
export function safeFragment(text: string): DocumentFragment {
  try {
    return renderMarkdown(text)
  } catch {
    // The parser and the sanitiser are recursive and can overflow the stack.
    const fragment = document.createDocumentFragment()
    const plain = document.createElement('pre')
    plain.textContent = withoutOverrides(text)
    fragment.append(plain)
    return fragment
  }
}

function renderMarkdown(text: string) {
  const fragment = DOMPurify.sanitize(marked.parse(text, { async: false }), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ['href', 'start', 'align'],
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
    ALLOWED_URI_REGEXP: /^https?:\/\//i,
    // Otherwise their values have to be such addresses too.
    ADD_URI_SAFE_ATTR: ['start', 'align'],
    RETURN_DOM_FRAGMENT: true,
  })
  for (const link of fragment.querySelectorAll('a')) {
    if (!link.hasAttribute('href')) link.replaceWith(...link.childNodes)
    link.target = '_blank'
    link.rel = 'noopener noreferrer nofollow ugc'
  }
  for (const table of fragment.querySelectorAll('table')) {
    const wide = make('div', { className: 'wide', tabIndex: 0, role: 'group', ariaLabel: 'table' })
    table.replaceWith(wide)
    wide.append(table)
  }
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT)
  const nodes: Node[] = []
  while (walker.nextNode()) nodes.push(walker.currentNode)
  for (const node of nodes) {
    node.nodeValue = withoutOverrides(node.nodeValue ?? '')
    if (node instanceof Text && !node.parentElement?.closest('a, code')) linkOwnPages(node)
  }
  return fragment
}

/** Keys of items, by the ids that each source gives: `hn-style` and `lobsters-driven` are words. */
const ITEM_KEY = [
  String.raw`hn-\d+`,
  String.raw`lobsters-(?![a-z]+(?:al|ed|en|er|ic|ing|ish|ive|ly)\b)[a-z0-9]{6}`,
  String.raw`lesswrong-[A-Za-z0-9]{17}`,
  String.raw`hype-(?:github|huggingface|replicate)-[\w.-]+\/[\w.-]*\w`,
  String.raw`hype-reddit-(?=[a-z]*\d)[a-z0-9]{5,8}`,
  String.raw`midjourney-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}`,
].join('|')

/** A day, the key of an item, or the path of the models, as answers name them. */
const OWN_PAGES = new RegExp(
  String.raw`(?<![\w/.-])(?:(?<day>\d{4}-\d{2}-\d{2})|(?<key>${ITEM_KEY})|(?<path>\/models))(?![\w/-]|\.\w)`,
  'g',
)

/** Links what a text names to the page about it on this server: days to their Year, keys to their item, the models. */
function linkOwnPages(node: Text) {
  const value = node.data
  const pieces: (string | Node)[] = []
  let end = 0
  for (const match of value.matchAll(OWN_PAGES)) {
    const href = addressOf(match.groups ?? {})
    if (href === null) continue
    const text = labelOf(match)
    pieces.push(value.slice(end, match.index), make('a', { href, target: '_blank', rel: 'noopener' }, text))
    end = match.index + match[0].length
  }
  if (end > 0) node.replaceWith(...pieces, value.slice(end))
}

/** A key in parentheses, as it follows the title of its item, reads as in the lists: history. */
function labelOf({ 0: text, index, input, groups = {} }: RegExpMatchArray) {
  if (groups['path'] !== undefined) return 'free models'
  const inParentheses = input?.[(index ?? 0) - 1] === '(' && input[(index ?? 0) + text.length] === ')'
  return groups['key'] !== undefined && inParentheses ? 'history' : text
}

/** Null for a day that is none or has not ended, which has no Year. */
function addressOf({ day, key, path }: Record<string, string | undefined>): string | null {
  if (day !== undefined) {
    const isPast = Date.parse(day) + 86_400_000 <= Date.now()
    return isPast ? `/?day=${day}` : null
  }
  return key === undefined ? (path ?? null) : `/item?key=${encodeURIComponent(key)}`
}
