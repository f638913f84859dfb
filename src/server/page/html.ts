/** A piece of HTML that needs no further escaping. */
export interface Html {
  readonly html: string
}

/** Template tag: every interpolated string is escaped, pieces of HTML and lists of them are not. */
export function html(
  parts: TemplateStringsArray,
  ...values: (string | number | Html | readonly Html[])[]
): Html {
  return { html: parts.reduce((text, part, index) => text + render(values[index - 1] ?? '') + part) }
}

/** A text with `code` in backticks, as contracts have them, as HTML. */
export function codeSpans(text: string): Html {
  const parts = text.split('`')
  return html`${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`
}

/** Nothing at all: what is left out. */
export const NOTHING: Html = { html: '' }

function render(value: string | number | Html | readonly Html[]): string {
  if (typeof value === 'string') return escape(value)
  if (typeof value === 'number') return String(value)
  return 'html' in value ? value.html : value.map((piece) => piece.html).join('')
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}
