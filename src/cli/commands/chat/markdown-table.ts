import type { Tokens } from 'marked'
import { inlineSpans } from './markdown-inline.ts'
import { widthOf, wrap } from './wrap.ts'
import type { Indent, Row, Span } from './wrap.ts'

const GAP = '  '

/** A table in columns; where they do not fit side by side, each row's cells one after the other. */
export function tableRows(table: Tokens.Table, columns: number, colored: boolean, indent: Indent): Row[] {
  const header = table.header.map(({ tokens }) => inlineSpans(tokens, ['bold'], colored))
  const body = table.rows.map((row) => row.map(({ tokens }) => inlineSpans(tokens, [], colored)))
  const widths = header.map((_cell, index) =>
    Math.max(...[header, ...body].map((row) => spanWidth(row[index] ?? []))),
  )
  const total = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1))
  const fits = total + widthOf(indent.first) <= columns
  const spansOf = (row: Span[][]): Span[] =>
    row.flatMap((cell, index) => {
      const separator = index === 0 ? '' : fits ? GAP : ' | '
      const missing = Math.max(0, (widths[index] ?? 0) - spanWidth(cell))
      const before = fits ? padding(table.align[index] ?? null, missing) : 0
      const after = fits && index < row.length - 1 ? missing - before : 0
      return [text(separator + ' '.repeat(before)), ...cell, text(' '.repeat(after))]
    })
  const rule = fits ? [text(widths.map((width) => '─'.repeat(width)).join(GAP))] : [text('─'.repeat(3))]
  return [spansOf(header), rule, ...body.map(spansOf)].flatMap((spans, index) =>
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

function text(value: string): Span {
  return { text: value, styles: [] }
}
