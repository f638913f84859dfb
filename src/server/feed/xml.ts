/** A piece of XML that needs no further escaping. */
export interface Xml {
  readonly xml: string
}

type Value = string | number | Xml | readonly Xml[]

/** Template tag: every interpolated text is escaped, pieces of XML and lists of them are not. */
export function xml(parts: TemplateStringsArray, ...values: Value[]): Xml {
  return { xml: parts.reduce((text, part, index) => text + render(values[index - 1] ?? '') + part) }
}

/** No XML at all: what is left out. */
export const NOTHING: Xml = { xml: '' }

function render(value: Value): string {
  if (typeof value === 'string') return escapeXml(value)
  if (typeof value === 'number') return String(value)
  return 'xml' in value ? value.xml : value.map((piece) => piece.xml).join('')
}

/** Everything but what XML 1.0 lets stand in a document (production 2, Char). */
const FORBIDDEN = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  // So that ]]> cannot stand in a text.
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  // A parser would turn these into other white space.
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
}

/**
 * A text as it may stand between tags and in an attribute. What XML 1.0 forbids, control characters and halves of
 * surrogate pairs among it, becomes U+FFFD.
 */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(FORBIDDEN, '\uFFFD')
    .replaceAll(/[&<>"'\t\n\r]/g, (character) => ESCAPES[character] ?? '')
}
