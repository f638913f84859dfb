import DOMPurify from 'dompurify'
import { Marked } from 'marked'
import { withoutOverrides } from '../../../../domain/text.ts'

const TAGS =
  'a b blockquote br code del em hr i li ol p pre s strong sub sup table tbody td th thead tr ul'.split(' ')

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Show HTML and the alternative text of images as text.
    html: ({ text }) => escape(text),
    image: ({ text }) => escape(text),
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
    heading({ tokens }) {
      return `<p><strong>${this.parser.parseInline(tokens)}</strong></p>`
    },
  },
})

/**
 * Renders a model's Markdown as safe elements: no images, scripts or styles; links only to web pages, in a new window
 * without referrer; no characters that override the text direction. Text nested too deeply to parse is shown verbatim.
 *
 * @param text Markdown
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

/** @param text Markdown */
function renderMarkdown(text: string) {
  const fragment = DOMPurify.sanitize(marked.parse(text, { async: false }), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ['href', 'start'],
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
    ALLOWED_URI_REGEXP: /^https?:\/\//i,
    RETURN_DOM_FRAGMENT: true,
  })
  for (const link of fragment.querySelectorAll('a')) {
    if (!link.hasAttribute('href')) link.replaceWith(...link.childNodes)
    link.target = '_blank'
    link.rel = 'noopener noreferrer nofollow ugc'
  }
  const texts = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT)
  for (let node = texts.nextNode(); node; node = texts.nextNode())
    node.nodeValue = withoutOverrides(node.nodeValue ?? '')
  return fragment
}

function escape(text: string) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
