import { stripVTControlCharacters } from 'node:util'
import fastStringWidth from 'fast-string-width'
import { wrapAnsi } from 'fast-wrap-ansi'
import { Lexer } from 'marked'
import type { MarkedToken, Token, Tokens } from 'marked'
import { cleanText } from '../../../domain/answers/answer-text.ts'
import { hyperlink, styled, webAddress } from '../../terminal.ts'
import type { Style } from '../../terminal.ts'

export interface MarkdownOptions {
  /** Width of the rows; it may change. */
  readonly columns: number
  /** False for output without styles: the marks of Markdown then stand for them. */
  colored: boolean
  /** True if the terminal knows hyperlinks. */
  linked: boolean
}

/** Renders an answer while it arrives; what it returns is final. */
export interface MarkdownStream {
  /** Returns the rows of the blocks that are complete now. */
  push(text: string): string
  /** Returns the rows of the rest. */
  end(): string
}

/** @param options of the terminal that shows the rows */
export function markdownStream(options: MarkdownOptions): MarkdownStream {
  const rendered: Rendered = { isApart: false, hasRows: false }
  let source = ''
  /** Number of the first item of the rest of a list whose beginning is rendered. */
  let listStart: number | null = null
  const parse = (text: string): Token[] => {
    const tokens = lex(text)
    const [first] = tokens
    if (listStart !== null && first?.type === 'list') first['start'] = listStart
    return tokens
  }
  const render = (tokens: readonly Token[]): string =>
    blocks(tokens, options, options.columns, rendered)
      .map((row) => `${row}\n`)
      .join('')
  return {
    push(text) {
      source += text.replaceAll('\t', '    ')
      if (!text.includes('\n')) return ''
      const end = source.lastIndexOf('\n') + 1
      const lines = withoutExtremes(source.slice(0, end))
      const { tokens, nextItem } = completeTokens(parse(lines))
      if (tokens.length === 0) return ''
      listStart = nextItem
      source = lines.slice(tokens.reduce((sum, { raw }) => sum + raw.length, 0)) + source.slice(end)
      return render(tokens)
    },
    end: () => render(parse(withoutExtremes(source))),
  }
}

const lex = (source: string): Token[] => new Lexer({ gfm: true }).lex(source)

/** Deeper nesting is shown unparsed: no real answer has it, and the parser recurses into it. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){24}/gm
const WIDE_INDENT = /^[ ]{80,}/gm

function withoutExtremes(source: string): string {
  return source.replace(WIDE_INDENT, ' '.repeat(80)).replace(TOO_DEEP, (marks) => `\\${marks.trimStart()}`)
}

/**
 * Returns the tokens that further lines cannot change. Of a list that may continue, these are all items but the last,
 * whose number is `nextItem` if the list is numbered.
 */
function completeTokens(tokens: Token[]): { tokens: Token[]; nextItem: number | null } {
  const at = tokens.findLastIndex(({ type }) => type !== 'space')
  const last = tokens[at] as MarkedToken | undefined
  if (last === undefined || isComplete(last, at < tokens.length - 1)) return { tokens, nextItem: null }
  const before = tokens.slice(0, at)
  if (last.type !== 'list' || last.items.length === 1) return { tokens: before, nextItem: null }
  const items = last.items.slice(0, -1)
  const begun = { ...last, items, raw: items.map(({ raw }) => raw).join('') }
  return { tokens: [...before, begun], nextItem: last.start === '' ? null : last.start + items.length }
}

/** @param isApart true if an empty line follows */
function isComplete(token: MarkedToken, isApart: boolean): boolean {
  if (token.type === 'heading' || token.type === 'hr') return true
  return isApart && token.type !== 'list' && !(token.type === 'code' && token.codeBlockStyle === 'indented')
}

/** State between two blocks. */
interface Rendered {
  /** True if the source has an empty line behind the last block. */
  isApart: boolean
  hasRows: boolean
}

/** Renders blocks, with an empty row between two of them where the source has one. */
function blocks(
  tokens: readonly Token[],
  options: MarkdownOptions,
  columns: number,
  rendered: Rendered = { isApart: false, hasRows: false },
): string[] {
  return tokens.flatMap((token) => {
    if (token.type === 'space') {
      rendered.isApart = true
      return []
    }
    const rows = block(token as MarkedToken, options, Math.max(COLUMNS_MIN, columns))
    if (rows.length === 0) return []
    const gap = rendered.isApart && rendered.hasRows ? [''] : []
    rendered.hasRows = true
    rendered.isApart = false
    return [...gap, ...rows]
  })
}

const COLUMNS_MIN = 8
const RULE_COLUMNS = 40

function block(token: MarkedToken, options: MarkdownOptions, columns: number): string[] {
  if (token.type === 'heading') {
    const marks = options.colored ? '' : `${'#'.repeat(token.depth)} `
    const styles: Style[] = token.depth === 1 ? ['bold', 'underline'] : ['bold']
    return wrapped(marks + inline(token.tokens, styles, options), columns)
  }
  if (token.type === 'list') return listRows(token, options, columns)
  if (token.type === 'blockquote') return indented(blocks(token.tokens, options, columns - 2), '│ ', '│ ')
  if (token.type === 'code') {
    const text = leaf(token.text, ['cyan'], options)
    const rows = wrapAnsi(text, columns - 2, { hard: true, trim: false, wordWrap: false }).split('\n')
    return indented(rows, '  ', '  ')
  }
  if (token.type === 'table') return tableRows(token, options, columns)
  if (token.type === 'hr') return ['─'.repeat(Math.min(RULE_COLUMNS, columns))]
  return wrapped(inline(token.type === 'paragraph' ? token.tokens : [token], [], options), columns)
}

/** Wraps text to rows: at spaces, and within a word that is longer than a row. */
function wrapped(text: string, columns: number): string[] {
  return wrapAnsi(text, columns, { hard: true }).split('\n')
}

function indented(rows: readonly string[], first: string, rest: string): string[] {
  return rows.map((row, index) => ((index === 0 ? first : rest) + row).trimEnd())
}

function listRows(list: Tokens.List, options: MarkdownOptions, columns: number): string[] {
  const first = list.start === '' ? 1 : list.start
  return list.items.flatMap((item, index) => {
    const number = list.ordered ? `${first + index}. ` : '• '
    const mark = item.task ? `${number}[${item.checked === true ? 'x' : ' '}] ` : number
    const content = item.tokens.filter(({ type }) => type !== 'checkbox')
    const rows = blocks(content, options, columns - mark.length)
    return indented(rows.length > 0 ? rows : [''], mark, ' '.repeat(mark.length))
  })
}

/** Renders text within a block. */
function inline(tokens: readonly Token[], styles: readonly Style[], options: MarkdownOptions): string {
  return tokens.map((token) => inlineText(token as MarkedToken, styles, options)).join('')
}

/** Styles of emphasized text, and its marks, which are shown without colours. */
const MARKED: Readonly<Record<'strong' | 'em' | 'del', { mark: string; style: Style }>> = {
  strong: { mark: '**', style: 'bold' },
  em: { mark: '_', style: 'italic' },
  del: { mark: '~~', style: 'strikethrough' },
}

function inlineText(token: MarkedToken, styles: readonly Style[], options: MarkdownOptions): string {
  const { colored } = options
  if (token.type === 'strong' || token.type === 'em' || token.type === 'del') {
    const { mark, style } = MARKED[token.type]
    if (colored) return inline(token.tokens, [...styles, style], options)
    return mark + inline(token.tokens, styles, options) + mark
  }
  if (token.type === 'codespan')
    return leaf(colored ? token.text : `\`${token.text}\``, [...styles, 'cyan'], options)
  if (token.type === 'br') return '\n'
  if (token.type === 'link' || token.type === 'image') return linkText(token, styles, options)
  if (token.type === 'text' && token.tokens) return inline(token.tokens, styles, options)
  if (token.type === 'text') return leaf(withoutEntities(token.text), styles, options)
  // A block within a line is shown unparsed.
  return leaf(token.type === 'escape' ? token.text : token.raw, styles, options)
}

/** Styles text of the answer. The parser decodes entities (`&#27;`), so control characters are removed here. */
function leaf(text: string, styles: readonly Style[], { colored }: MarkdownOptions): string {
  return styled(cleanText(text), styles, colored)
}

/** A link to a web page is a hyperlink if the terminal knows them; else its address follows its text. */
function linkText(
  { href, text, tokens = [] }: { href: string; text: string; tokens?: Token[] },
  styles: readonly Style[],
  options: MarkdownOptions,
): string {
  const underlined: Style[] = [...styles, 'underline']
  const inner = text === href ? '' : inline(tokens, underlined, options)
  const label = inner === '' ? leaf(text === '' ? href : text, underlined, options) : inner
  const name = stripVTControlCharacters(label).trim()
  const address = webAddress(href)
  // A host or an e-mail address in the text becomes a link to itself; a whole address behind another scheme does not.
  const isHost = !name.includes('://') && [`http://${name}`, `mailto:${name}`].includes(href)
  const isItself = name === href || isHost
  const isNamed = !isItself && (address === null || webAddress(name) !== address)
  const isLinked = options.linked && address !== null
  const isShown = isNamed && (!isLinked || LIKE_ADDRESS.test(name))
  const shown = isShown ? leaf(` (${href})`, [...styles, 'dim'], options) : ''
  return (isLinked ? hyperlink(address, label) : label) + shown
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
function tableRows(table: Tokens.Table, options: MarkdownOptions, columns: number): string[] {
  const header = table.header.map(({ tokens }) => inline(tokens, ['bold'], options))
  const body = table.rows.map((row) => row.map(({ tokens }) => inline(tokens, [], options)))
  const widths = header.map((_cell, index) =>
    Math.max(...[header, ...body].map((row) => fastStringWidth(row[index] ?? ''))),
  )
  const total = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1))
  if (total > columns) {
    const rows = [header, ...body].map((row) => wrapped(row.join(' | '), columns - GAP.length))
    return rows.flatMap((row, index) => (index === 0 ? [...row, '───'] : indented(row, '', GAP)))
  }
  const rowOf = (cells: readonly string[]): string =>
    cells
      .map((cell, index) => {
        const missing = Math.max(0, (widths[index] ?? 0) - fastStringWidth(cell))
        const before = padding(table.align[index] ?? null, missing)
        return ' '.repeat(before) + cell + ' '.repeat(missing - before)
      })
      .join(GAP)
      .trimEnd()
  return [rowOf(header), widths.map((width) => '─'.repeat(width)).join(GAP), ...body.map(rowOf)]
}

function padding(align: 'center' | 'left' | 'right' | null, missing: number): number {
  if (align === 'right') return missing
  return align === 'center' ? Math.floor(missing / 2) : 0
}
