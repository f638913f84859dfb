import { Lexer } from 'marked'
import type { MarkedToken, Token, Tokens } from 'marked'
import { webAddress } from '../../hyperlink.ts'
import { styled, widthOf, wrap } from './wrap.ts'
import type { Indent, Row, Span, Style } from './wrap.ts'

export interface MarkdownOptions {
  columns: number
  /** False for output without styles: the marks of Markdown then stand for them. */
  colored: boolean
  /** True if the terminal knows hyperlinks. */
  linked: boolean
  /** Receives the links, which are shown with their numbers. */
  sources: Sources
}

const RULE_COLUMNS = 40

/** Deeper nesting is shown unparsed: no real answer has it, and the parser recurses into it. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){24}/gm
const WIDE_INDENT = /^[ ]{80,}/gm

/**
 * Renders an answer as rows of a terminal. More text changes only the last few rows, so that an answer can be
 * painted while it streams.
 *
 * @param text clean text (`cleanText`), complete or partial
 */
export function markdownRows(text: string, options: MarkdownOptions): Row[] {
  const source = text
    .replaceAll('\t', '    ')
    .replace(WIDE_INDENT, ' '.repeat(80))
    .replace(TOO_DEEP, (marks) => `\\${marks.trimStart()}`)
  return blocks(new Lexer({ gfm: true }).lex(source), options, { first: '', rest: '' })
}

/** Renders blocks, with an empty row between two of them where the source has one. */
function blocks(tokens: readonly Token[], options: MarkdownOptions, indent: Indent): Row[] {
  const rows: Row[] = []
  let prefix = indent
  let isApart = false
  for (const token of tokens) {
    if (token.type === 'space') {
      isApart = true
      continue
    }
    const shown = block(token as MarkedToken, options, prefix)
    if (shown.length === 0) continue
    if (isApart && rows.length > 0) rows.push(plainRow(indent.rest.trimEnd()))
    rows.push(...shown)
    prefix = { first: indent.rest, rest: indent.rest }
    isApart = /\n[ ]*\n$/.test(token.raw)
  }
  return rows
}

function block(token: MarkedToken, options: MarkdownOptions, indent: Indent): Row[] {
  const { columns, colored } = options
  const rowsOf = (spans: readonly Span[]): Row[] => wrap(spans, columns, { indent, colored })
  if (token.type === 'heading') {
    const marks = colored ? '' : `${'#'.repeat(token.depth)} `
    const styles: Style[] = token.depth === 1 ? ['bold', 'underline'] : ['bold']
    return rowsOf([textSpan(marks), ...inlineSpans(token.tokens, styles, options)])
  }
  if (token.type === 'list') return listRows(token, options, indent)
  if (token.type === 'blockquote')
    return blocks(token.tokens, options, { first: `${indent.first}│ `, rest: `${indent.rest}│ ` })
  if (token.type === 'code')
    return wrap([{ text: token.text, styles: ['cyan'] }], columns, {
      indent: { first: `${indent.first}  `, rest: `${indent.rest}  ` },
      breakWords: false,
      colored,
    })
  if (token.type === 'table') return tableRows(token, options, indent)
  if (token.type === 'hr') {
    const length = Math.max(1, Math.min(RULE_COLUMNS, columns - indent.first.length))
    return [plainRow(`${indent.first}${'─'.repeat(length)}`)]
  }
  if (token.type === 'def') return []
  return rowsOf(inlineSpans(token.type === 'paragraph' ? token.tokens : [token], [], options))
}

function listRows(list: Tokens.List, options: MarkdownOptions, indent: Indent): Row[] {
  const first = typeof list.start === 'number' ? list.start : 1
  return list.items.flatMap((item, index) => {
    const number = list.ordered ? `${first + index}. ` : '• '
    const mark = item.task ? `${number}[${item.checked === true ? 'x' : ' '}] ` : number
    const prefix = index === 0 ? indent.first : indent.rest
    const inside = { first: `${prefix}${mark}`, rest: `${indent.rest}${' '.repeat(mark.length)}` }
    const content = item.tokens.filter(({ type }) => type !== 'checkbox')
    const rows = blocks(content, options, inside)
    return rows.length > 0 ? rows : [plainRow(inside.first.trimEnd())]
  })
}

function plainRow(text: string): Row {
  return { text, width: text.length }
}

/** Renders a dimmed row beside the answer, such as a tool call. */
export function faintRow(
  text: string,
  { columns, colored }: Pick<MarkdownOptions, 'columns' | 'colored'>,
): Row {
  const shown = text.length > columns ? `${text.slice(0, Math.max(0, columns - 1))}…` : text
  return { text: styled(shown, ['dim'], colored), width: shown.length }
}

/** Renders text within a block. A link is shown with its number among the sources. */
function inlineSpans(tokens: readonly Token[], styles: readonly Style[], options: MarkdownOptions): Span[] {
  return tokens.flatMap((token) => spansOf(token as MarkedToken, styles, options))
}

/** Styles of emphasized text, and its marks, which are shown without colours. */
const MARKED: Readonly<Record<'strong' | 'em' | 'del', { mark: string; style: Style }>> = {
  strong: { mark: '**', style: 'bold' },
  em: { mark: '_', style: 'italic' },
  del: { mark: '~~', style: 'strike' },
}

function spansOf(token: MarkedToken, styles: readonly Style[], options: MarkdownOptions): Span[] {
  const { colored } = options
  if (token.type === 'strong' || token.type === 'em' || token.type === 'del') {
    const { mark, style } = MARKED[token.type]
    if (colored) return inlineSpans(token.tokens, [...styles, style], options)
    const marks = { text: mark, styles }
    return [marks, ...inlineSpans(token.tokens, styles, options), marks]
  }
  if (token.type === 'codespan')
    return [{ text: colored ? token.text : `\`${token.text}\``, styles: [...styles, 'cyan'] }]
  if (token.type === 'br') return [{ text: '\n', styles }]
  if (token.type === 'link' || token.type === 'image') return linkSpans(token, styles, options)
  if (token.type === 'text' && token.tokens) return inlineSpans(token.tokens, styles, options)
  if (token.type === 'text') return [{ text: withoutEntities(token.text), styles }]
  // A block within a line is shown unparsed.
  return [{ text: token.type === 'escape' ? token.text : token.raw, styles }]
}

function linkSpans(
  { href, text, tokens }: { href: string; text: string; tokens?: Token[] },
  styles: readonly Style[],
  options: MarkdownOptions,
): Span[] {
  const underlined: Style[] = [...styles, 'underline']
  const inner = text === href || text === '' ? [] : inlineSpans(tokens ?? [], underlined, options)
  const label: Span[] = inner.length > 0 ? inner : [{ text: text || href, styles: underlined }]
  const name = label.map((span) => span.text).join('')
  const source = options.sources.add(href, name)
  const isShown = name !== href && (source === null || LIKE_ADDRESS.test(name))
  const address: Span[] = isShown ? [{ text: ` (${href})`, styles: [...styles, 'dim'] }] : []
  if (source === null) return [...label, ...address]
  const linked = options.linked ? label.map((span) => ({ ...span, link: source.address })) : label
  return [...linked, ...address, { text: ` [${source.number}]`, styles: [...styles, 'dim'] }]
}

/** Matches a label that looks like an address, and could hide another one. */
const LIKE_ADDRESS = /:\/\/|^\s*[\w-]+(?:\.[\w-]+)+(?:[/:?#]|\s*$)/

/** Entities of the marks of Markdown and HTML. No other is decoded, so that none becomes a control character. */
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

function withoutEntities(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (entity, name: string) => ENTITIES[name] ?? entity)
}

const GAP = '  '

/** Renders a table in columns; if they do not fit side by side, the cells of a row follow each other. */
function tableRows(table: Tokens.Table, options: MarkdownOptions, indent: Indent): Row[] {
  const { columns, colored } = options
  const header = table.header.map(({ tokens }) => inlineSpans(tokens, ['bold'], options))
  const body = table.rows.map((row) => row.map(({ tokens }) => inlineSpans(tokens, [], options)))
  const widths = header.map((_cell, index) =>
    Math.max(...[header, ...body].map((row) => spanWidth(row[index] ?? []))),
  )
  const total = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1))
  const fits = total + widthOf(indent.first) <= columns
  const spansOfRow = (row: Span[][]): Span[] =>
    row.flatMap((cell, index) => {
      const separator = index === 0 ? '' : fits ? GAP : ' | '
      const missing = Math.max(0, (widths[index] ?? 0) - spanWidth(cell))
      const before = fits ? padding(table.align[index] ?? null, missing) : 0
      const after = fits && index < row.length - 1 ? missing - before : 0
      return [textSpan(separator + ' '.repeat(before)), ...cell, textSpan(' '.repeat(after))]
    })
  const rule = fits
    ? [textSpan(widths.map((width) => '─'.repeat(width)).join(GAP))]
    : [textSpan('─'.repeat(3))]
  return [spansOfRow(header), rule, ...body.map(spansOfRow)].flatMap((spans, index) =>
    wrap(spans, columns, {
      indent: index === 0 ? indent : { first: indent.rest, rest: `${indent.rest}${fits ? '' : '  '}` },
      colored,
    }),
  )
}

function padding(align: 'center' | 'left' | 'right' | null, missing: number): number {
  if (align === 'right') return missing
  return align === 'center' ? Math.floor(missing / 2) : 0
}

function spanWidth(spans: readonly Span[]): number {
  return spans.reduce((sum, { text: part }) => sum + widthOf(part), 0)
}

function textSpan(value: string): Span {
  return { text: value, styles: [] }
}

/** Web page that an answer links to. */
interface Source {
  /** Position among the sources of the answer, from 1. */
  number: number
  name: string
  address: string
}

/** The sources of an answer, in the order of their first links. */
export class Sources {
  readonly #byAddress = new Map<string, Source>()

  /** Adds a link and returns its source; null unless it leads to a web page. */
  add(href: string, label: string): Source | null {
    const address = webAddress(href)
    if (address === null) return null
    const name = label.replaceAll(/\s+/g, ' ').trim()
    const source = this.#byAddress.get(address) ?? { number: this.#byAddress.size + 1, name, address }
    this.#byAddress.set(address, source)
    return source
  }

  /**
   * Returns the list of sources: names with their addresses, or names that are links beside their hosts.
   *
   * @param linked true if the terminal knows hyperlinks
   */
  rows({ columns, colored, linked }: { columns: number; colored: boolean; linked: boolean }): Row[] {
    return [...this.#byAddress.values()].flatMap(({ number, name, address }) => {
      const mark = `[${number}] `
      const spans = linked ? linkedSpans(name, address) : plainSpans(name, address)
      const indent = { first: mark, rest: ' '.repeat(mark.length) }
      return wrap(spans, columns, { indent, colored })
    })
  }
}

function linkedSpans(name: string, address: string): Span[] {
  const host: Span = { text: ` (${new URL(address).host})`, styles: ['dim'] }
  const label: Span = { text: name === '' ? address : name, styles: ['underline'], link: address }
  return isSame(name, address) ? [label] : [label, host]
}

function plainSpans(name: string, address: string): Span[] {
  const spans: Span[] = [{ text: address, styles: ['underline'] }]
  return isSame(name, address) ? spans : [{ text: `${name} `, styles: [] }, ...spans]
}

/** True for a link whose text is its address, or that has none. */
function isSame(name: string, address: string): boolean {
  return name === '' || webAddress(name) === address
}
