import { write } from 'node:fs'
import { styleText } from 'node:util'
import { pino, stdSerializers } from 'pino'
import { Refusal } from '../domain/refusal.ts'
import { TURN_MESSAGE } from '../server/route.ts'
import type { Log } from '../server/route.ts'
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

/** How long equal lines are counted before their sum is written. */
const SUM_MS = 1_000

/** Groups of equal lines within that time; beyond it lines are equal when level and message are. */
const GROUPS_MAX = 100

/** Characters of any one text of an error. */
const ERROR_TEXT_LENGTH = 4_000

/** Fields that differ between lines which otherwise say the same. */
const OF_ONE_REQUEST = new Set(['requestId', 'turn', 'method', 'path', 'durationMs', 'finished'])

type Level = keyof Log
type Fields = Readonly<Record<string, unknown>>

interface Group {
  level: Level
  message: string
  /** Fields that all lines which are not written yet have in common. */
  common: Record<string, unknown>
  /** Lines that are not written yet. */
  count: number
}

export interface ServerLogOptions {
  level: string
  /** True for lines that a person reads at a terminal, else JSON. */
  readable: boolean
  colored: boolean
}

export interface ServerLog extends Log {
  /** Writes the sums of what is still counted. */
  flush(): void
}

/**
 * The log of a server. The first of several lines that differ only in their request is written at once; those that follow
 * within a second become one line with their `count` and the fields they have in common.
 */
export function openServerLog(
  out: { write: (line: string) => void },
  { level, readable, colored }: ServerLogOptions,
): ServerLog {
  const lines = pino({ level, serializers: { err: errorFields } }, readable ? readableLog(out, colored) : out)
  const groups = new Map<string, Group>()
  let timer: NodeJS.Timeout | null = null

  const flush = (): void => {
    if (timer !== null) clearTimeout(timer)
    timer = null
    for (const { level: of, message, common, count } of groups.values()) {
      if (count > 0) lines[of](count === 1 ? common : { ...common, count }, message)
    }
    groups.clear()
  }
  const writeAt = (of: Level, fields: Fields, message: string): void => {
    if (!lines.isLevelEnabled(of)) return
    // Each turn of the chat has its line: quotas bound their number, and the line says what it cost.
    if (message === TURN_MESSAGE) return lines[of](fields, message)
    const key = keyOf(of, fields, message)
    const plain = groups.has(key) || groups.size < GROUPS_MAX ? key : `${of} ${message}`
    const group = groups.get(plain)
    if (group === undefined) {
      groups.set(plain, { level: of, message, common: {}, count: 0 })
      timer ??= setTimeout(flush, SUM_MS).unref()
      lines[of](fields, message)
      return
    }
    if (group.count === 0) group.common = { ...fields }
    else keepCommon(group.common, fields)
    group.count += 1
  }
  return {
    info: (fields, message) => writeAt('info', fields, message),
    warn: (fields, message) => writeAt('warn', fields, message),
    error: (fields, message) => writeAt('error', fields, message),
    flush,
  }
}

function keyOf(level: Level, fields: Fields, message: string): string {
  let key = `${level} ${message}`
  for (const [name, value] of Object.entries(fields)) {
    if (!OF_ONE_REQUEST.has(name)) key += `\n${name}=${comparable(value)}`
  }
  return key
}

/** A value as a text that is the same for equal values. */
function comparable(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Takes out of the fields those that are others in one more line. */
function keepCommon(common: Record<string, unknown>, fields: Fields): void {
  for (const [name, value] of Object.entries(common)) {
    const other = fields[name]
    if (value !== other && comparable(value) !== comparable(other)) delete common[name]
  }
}

/** A refusal is raised on purpose: its message says why, and its stack says nothing. Texts of clients stay short. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { type, message, stack } = stdSerializers.err(error)
  const code = 'code' in error ? { code: String(error.code) } : {}
  const told = error instanceof Refusal ? { type, message, ...code } : { type, message, ...code, stack }
  return Object.fromEntries(Object.entries(told).map(([name, text]) => [name, cut(text)]))
}

function cut(text: string): string {
  return text.length > ERROR_TEXT_LENGTH ? `${text.slice(0, ERROR_TEXT_LENGTH)}…` : text
}

/** Log lines waiting to be written; beyond it new ones are dropped. */
const WAITING_MAX_BYTES = 1024 * 1024

/** How long a reader that is not ready is waited for before its turn comes again. */
const RETRY_MS = 50

/** Where log lines go. */
export interface LogStream {
  write(line: string): void
  /** Resolves when the waiting lines are written, or after `withinMs`. */
  flush(withinMs: number): Promise<void>
}

/**
 * Writes log lines to a descriptor without ever waiting for it or failing with it: a log that cannot be written (a full
 * disk, a reader that went away or stands still) costs its lines, never the server.
 */
export function logStream(descriptor: number): LogStream {
  let waiting = ''
  let writing = false
  let whenIdle: () => void = () => undefined

  const next = (): void => {
    if (writing) return
    if (waiting === '') {
      whenIdle()
      return
    }
    const chunk = Buffer.from(waiting)
    waiting = ''
    writing = true
    send(chunk)
  }
  const send = (chunk: Buffer): void => {
    write(descriptor, chunk, (error, written) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(send, RETRY_MS, chunk).unref()
      } else if (!error && written < chunk.byteLength) {
        send(chunk.subarray(written))
      } else {
        writing = false
        next()
      }
    })
  }

  return {
    write(line) {
      if (waiting.length < WAITING_MAX_BYTES) waiting += line
      next()
    },
    flush: (withinMs) =>
      new Promise((resolve) => {
        whenIdle = resolve
        setTimeout(resolve, withinMs).unref()
        next()
      }),
  }
}
