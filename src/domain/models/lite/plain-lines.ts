import { LINE_ENDS } from '../../text.ts'

/** Divides the answer of a model into lines with at most one labelled value each. */

/** Entities, each also with equal quotes around it alone: then a command looks for it. */
const ENTITIES: readonly [RegExp, string][] = [
  [/(["']?)&(?:nbsp|#160|#xa0);\1/gi, ' '],
  [/(["']?)&(?:grave|#96|#x60);\1/gi, '`'],
  [/(["']?)&(?:apos|#39|#x27);\1/gi, "'"],
  [/(["']?)&(?:quot|#34|#x22);\1/gi, '"'],
  [/(["']?)&(?:lt|#60|#x3c);\1/gi, '<'],
  [/(["']?)&(?:gt|#62|#x3e);\1/gi, '>'],
  [/(["']?)&(?:amp|#38|#x26);\1/gi, '&'],
]

/** Replaces entities of signs that the text has in no other form. */
export function decodeEntities(text: string): string {
  return ENTITIES.reduce((decoded, [entity, sign]) => {
    const isEscaped = sign === '&' ? !/&(?!\w+;)/.test(decoded) : sign === ' ' || !decoded.includes(sign)
    if (!isEscaped) return decoded
    return decoded.replace(entity, (written, quote: string) => (quote === '' ? sign : written))
  }, text)
}

const INVISIBLE = /[\u00ad\u200b-\u200f\u2060\ufeff]/g
const WIDE_SPACES = /[\u00a0\u2000-\u200a\u202f\u3000]/g
/** `<COMMAND>…</COMMAND>` and `[COMMAND]…[/COMMAND]`. */
const TAGGED = /[<[](COMMAND|TIME)[>\]]((?:[^<[]|[<[](?!\/\1)){0,500})[<[]\/\1[>\]]/gi

/** The place before a label of a time that follows on the line of another value. */
const SECOND_LABEL =
  /(?:(?<=\S)(?:\.?[ \t,;|]{1,5}|\s{1,2}(?:[/·•—–→-]|and)\s{1,2}|\s{0,2}\\(?:\\\s{0,2}|n ?))|(?<=[`~])(?![`~]))(?=[*_`"[(]{0,3}TIME[*_`"]{0,3} ?(?:is ?)?[:：=]?[*_`" ]{0,6}\d{1,2}[:：]\d{2}[:：]\d{2})/gi

const REMARK_LINE = /^\W*(?:explan|explain|note|remark|comment|reason|because)/i

/** The lines of an answer, without entities, invisible characters, tags around values, and tables. */
export function plainLines(answer: string): string[] {
  const text = decodeEntities(answer)
    .replace(INVISIBLE, '')
    .replace(WIDE_SPACES, ' ')
    .replace(
      TAGGED,
      (_whole, label: string, value: string) => `\n${label}:${/^\s*\n/.test(value) ? '' : ' '}${value}\n`,
    )
    .replace(/(?<!["'])<(?:br ?\/?|\/(?:p|li|div))>(?!["'])/gi, '\n')
  const lines = text
    .replace(LINE_ENDS, '\n')
    .split('\n')
    .flatMap((line) => (REMARK_LINE.test(line) ? [line] : line.replace(SECOND_LABEL, '\n').split('\n')))
  return lines.flatMap(rowLines)
}

const LABEL_CELL = /^[*_`\s]*(?:COMMAND|TIME)[*_`\s]*$/i

/** Turns a row of a table into labelled lines: the label is the first cell, or the header of a column. */
function rowLines(line: string, index: number, lines: readonly string[]): string[] {
  const cells = cellsOf(line)
  const at = cells.findIndex((cell) => LABEL_CELL.test(cell))
  const value = cells.slice(at + 1)
  if (at >= 0 && value.length > 0 && !LABEL_CELL.test(value[0] ?? ''))
    return [`${cells[at]?.trim()}: ${value.join('|').trim()}`]
  const header = cellsOf(lines[index - 2] ?? '')
  const isRow = header.length === cells.length && /^[\s|:-]*-[\s|:-]*$/.test(lines[index - 1] ?? '')
  if (!isRow || !header.some((cell) => LABEL_CELL.test(cell))) return [line]
  return header.map((cell, column) => `${cell.trim()}: ${cells[column]?.trim()}`)
}

/** The cells of a row between bars; none for another line. */
function cellsOf(line: string): string[] {
  const [, inside] = /^\s*\|(.*)\|\s*$/.exec(line) ?? []
  return inside?.split(/(?<!\\)\|/).map((cell) => cell.replaceAll('\\|', '|')) ?? []
}
