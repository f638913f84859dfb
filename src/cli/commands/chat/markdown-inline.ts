import type { MarkedToken, Token } from 'marked'
import type { Style } from './style.ts'
import type { Span } from './wrap.ts'

/** Text within a block. A link is shown with its address, which is what a person has to go by. */
export function inlineSpans(tokens: readonly Token[], styles: readonly Style[], colored: boolean): Span[] {
  return tokens.flatMap((token) => spansOf(token as MarkedToken, styles, colored))
}

function spansOf(token: MarkedToken, styles: readonly Style[], colored: boolean): Span[] {
  const within = (mark: string, style: Style, inner: readonly Token[]): Span[] => {
    if (colored) return inlineSpans(inner, [...styles, style], colored)
    return [{ text: mark, styles }, ...inlineSpans(inner, styles, colored), { text: mark, styles }]
  }
  switch (token.type) {
    case 'strong':
      return within('**', 'bold', token.tokens)
    case 'em':
      return within('_', 'italic', token.tokens)
    case 'del':
      return within('~~', 'strike', token.tokens)
    case 'codespan':
      return [{ text: colored ? token.text : `\`${token.text}\``, styles: [...styles, 'cyan'] }]
    case 'br':
      return [{ text: '\n', styles }]
    case 'link':
    case 'image':
      return linkSpans(token, styles, colored)
    case 'text':
      return token.tokens
        ? inlineSpans(token.tokens, styles, colored)
        : [{ text: withoutEntities(token.text), styles }]
    case 'escape':
      return [{ text: token.text, styles }]
    case 'blockquote':
    case 'checkbox':
    case 'code':
    case 'def':
    case 'heading':
    case 'hr':
    case 'html':
    case 'list':
    case 'list_item':
    case 'paragraph':
    case 'space':
    case 'table':
      return [{ text: token.raw, styles }]
  }
}

function linkSpans(
  { href, text, tokens }: { href: string; text: string; tokens?: Token[] },
  styles: readonly Style[],
  colored: boolean,
): Span[] {
  if (text === href || text === '') return [{ text: href, styles: [...styles, 'underline'] }]
  const inner = tokens ?? []
  const label = inner.length > 0 ? inlineSpans(inner, [...styles, 'underline'], colored) : [{ text, styles }]
  return [...label, { text: ` (${href})`, styles: [...styles, 'dim'] }]
}

/** The entities that stand for a mark of Markdown or HTML; no other is decoded, so that none becomes a control character. */
const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
}

function withoutEntities(text: string): string {
  return text.replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity] ?? entity)
}
