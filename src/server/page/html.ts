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
