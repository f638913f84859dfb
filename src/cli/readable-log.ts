import { styleText } from 'node:util'
import { escaped, printable } from './terminal.ts'

/** Names of pino's levels, with the colour of each. */
const LEVELS: Readonly<Record<number, { name: string; color: 'gray' | 'cyan' | 'yellow' | 'red' }>> = {
  10: { name: 'trace', color: 'gray' },
  20: { name: 'debug', color: 'gray' },
  30: { name: 'info', color: 'cyan' },
  40: { name: 'warn', color: 'yellow' },
  50: { name: 'error', color: 'red' },
  60: { name: 'fatal', color: 'red' },
}

/** The same in every line. */
const UNSAID = new Set(['pid', 'hostname'])

/** Log lines for a person at a terminal: one a line of JSON, with the stack of an error below it. */
export function readableLog(
  out: { write: (line: string) => void },
  colored: boolean,
): { write: (line: string) => void } {
  return { write: (line) => out.write(readableLine(line, colored)) }
}

function readableLine(line: string, colored: boolean): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as LogLine
  const { name, color } = LEVELS[level] ?? { name: String(level), color: 'gray' }
  const paint = (text: string): string => (colored ? styleText(color, text) : text)
  const clock = new Date(time).toISOString().slice(11, 23)
  const said = Object.entries(fields)
    .filter(([key]) => !UNSAID.has(key))
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const head = `${clock} ${paint(name.padEnd(5))} ${[msg ?? '', ...said].map(escaped).join(' ')}\n`
  const stack = err?.stack ?? err?.message
  return stack === undefined ? head : `${head}${printable(stack).replaceAll(/^/gm, '  ')}\n`
}

interface LogLine extends Record<string, unknown> {
  level: number
  time: number
  msg?: string
  err?: { stack?: string; message?: string }
}
