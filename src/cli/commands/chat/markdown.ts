import { Lexer } from 'marked'
import type { MarkedToken, Token, Tokens } from 'marked'
import { inlineSpans } from './markdown-inline.ts'
import { tableRows } from './markdown-table.ts'
import { styled } from './style.ts'
import { wrap } from './wrap.ts'
import type { Indent, Row } from './wrap.ts'

export interface MarkdownOptions {
  columns: number
  /** False to use no escape at all: what a style says is then left as the marks of Markdown say it. */
  colored: boolean
}

/** Rules are no longer than this. */
const RULE_COLUMNS = 40

/** Deeper nesting is shown as it is written: it is no answer, and a parser descends into it. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){24}/gm
const WIDE_INDENT = /^[ ]{80,}/gm

/**
 * An answer as rows of a terminal. The beginning of a text gives the beginning of its rows, but for the last few, so that
 * an answer can be painted while it comes.
 *
 * @param text clean text (`cleanText`), whole or as far as it came
 */
export function markdownRows(text: string, options: MarkdownOptions): Row[] {
  const source = text
    .replaceAll('\t', '    ')
    .replace(WIDE_INDENT, ' '.repeat(80))
    .replace(TOO_DEEP, (marks) => `\\${marks.trimStart()}`)
  return blocks(new Lexer({ gfm: true }).lex(source), options, { first: '', rest: '' })
}

/** Rows of blocks, with an empty one between two where the source has one. */
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
  switch (token.type) {
    case 'heading': {
      const marks = colored ? '' : `${'#'.repeat(token.depth)} `
      const spans = inlineSpans(token.tokens, token.depth === 1 ? ['bold', 'underline'] : ['bold'], colored)
      return wrap([{ text: marks, styles: [] }, ...spans], columns, { indent, colored })
    }
    case 'list':
      return listRows(token, options, indent)
    case 'blockquote':
      return blocks(token.tokens, options, { first: `${indent.first}│ `, rest: `${indent.rest}│ ` })
    case 'code':
      return wrap([{ text: token.text, styles: ['cyan'] }], columns, {
        indent: { first: `${indent.first}  `, rest: `${indent.rest}  ` },
        breakWords: false,
        colored,
      })
    case 'table':
      return tableRows(token, columns, colored, indent)
    case 'hr':
      return [
        plainRow(
          `${indent.first}${'─'.repeat(Math.max(1, Math.min(RULE_COLUMNS, columns - indent.first.length)))}`,
        ),
      ]
    case 'space':
    case 'def':
      return []
    case 'paragraph':
      return wrap(inlineSpans(token.tokens, [], colored), columns, { indent, colored })
    case 'br':
    case 'checkbox':
    case 'codespan':
    case 'del':
    case 'em':
    case 'escape':
    case 'html':
    case 'image':
    case 'link':
    case 'list_item':
    case 'strong':
    case 'text':
      return wrap(inlineSpans([token], [], colored), columns, { indent, colored })
  }
}

function listRows(list: Tokens.List, options: MarkdownOptions, indent: Indent): Row[] {
  const first = typeof list.start === 'number' ? list.start : 1
  return list.items.flatMap((item, index) => {
    const number = list.ordered ? `${first + index}. ` : '• '
    const mark = item.task ? `${number}[${item.checked === true ? 'x' : ' '}] ` : number
    const place = index === 0 ? indent.first : indent.rest
    const inside = { first: `${place}${mark}`, rest: `${indent.rest}${' '.repeat(mark.length)}` }
    const content = item.tokens.filter(({ type }) => type !== 'checkbox')
    const rows = blocks(content, options, inside)
    return rows.length > 0 ? rows : [plainRow(inside.first.trimEnd())]
  })
}

function plainRow(text: string): Row {
  return { text, width: text.length }
}

/** A line about something else than the answer. */
export function faintRow(text: string, { columns, colored }: MarkdownOptions): Row {
  const shown = text.length > columns ? `${text.slice(0, Math.max(0, columns - 1))}…` : text
  return { text: styled(shown, ['dim'], colored), width: shown.length }
}
