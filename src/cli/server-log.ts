import { write } from 'node:fs'
import { styleText } from 'node:util'
import { levels, pino, stdSerializers } from 'pino'
import { Refusal } from '../domain/refusal.ts'
import { TURN_MESSAGE } from '../server/route.ts'
import type { Log } from '../server/route.ts'
import { escaped, printable } from './terminal.ts'

interface Output {
  write(line: string): void
}

const COLORS: Readonly<Record<string, 'cyan' | 'yellow' | 'red'>> = {
  info: 'cyan',
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
}

interface LogLine extends Record<string, unknown> {
  level: number
  time: number
  msg?: string
  err?: { stack?: string; message?: string }
}

/** Log lines for a person at a terminal: one a line of JSON, with the stack of an error below it. */
export function readableLog(out: Output, colored: boolean): Output {
  return { write: (line) => out.write(readableLine(JSON.parse(line) as LogLine, colored)) }
}

/** Without the fields that are the same in every line. */
function readableLine(
  { level, time, msg, err, pid: _pid, hostname: _hostname, ...fields }: LogLine,
  colored: boolean,
): string {
  const name = levels.labels[level] ?? String(level)
  const shownName = colored ? styleText(COLORS[name] ?? 'gray', name.padEnd(5)) : name.padEnd(5)
  const values = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const clock = new Date(time).toISOString().slice(11, 23)
  const head = `${clock} ${shownName} ${[msg ?? '', ...values].map(escaped).join(' ')}\n`
  const stack = err?.stack ?? err?.message
  return stack === undefined ? head : `${head}${printable(stack).replaceAll(/^/gm, '  ')}\n`
}

/** How long equal lines are counted before their sum is written. */
const SUM_MS = 1_000

/** Groups of equal lines within that time; beyond it lines are equal when level and message are. */
const GROUPS_MAX = 100

/** Fields that differ between lines which are equal otherwise. */
const OF_ONE_REQUEST = new Set(['requestId', 'turn', 'method', 'path', 'durationMs', 'finished'])

type Level = keyof Log
type Fields = Readonly<Record<string, unknown>>

interface Group {
  level: Level
  message: string
  /** Fields that all lines which are not written yet have in common. */
  common: Fields
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
export function openServerLog(out: Output, { level, readable, colored }: ServerLogOptions): ServerLog {
  const lines = pino({ level, serializers: { err: errorFields } }, readable ? readableLog(out, colored) : out)
  const groups = new Map<string, Group>()
  let timer: NodeJS.Timeout | undefined

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
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
    const bounded = groups.has(key) || groups.size < GROUPS_MAX ? key : `${of} ${message}`
    const group = groups.get(bounded)
    if (group) {
      group.common = group.count === 0 ? fields : commonFields(group.common, fields)
      group.count += 1
      return
    }
    groups.set(bounded, { level: of, message, common: {}, count: 0 })
    timer ??= setTimeout(flush, SUM_MS).unref()
    lines[of](fields, message)
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
  for (const name in fields) if (!OF_ONE_REQUEST.has(name)) key += `\n${name}=${comparable(fields[name])}`
  return key
}

function comparable(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The fields that are equal in one more line; the very object when all are, since every request of a busy server asks. */
function commonFields(common: Fields, fields: Fields): Fields {
  const isEqual = (name: string): boolean =>
    common[name] === fields[name] || comparable(common[name]) === comparable(fields[name])
  const names = Object.keys(common)
  return names.every(isEqual)
    ? common
    : Object.fromEntries(names.filter(isEqual).map((name) => [name, common[name]]))
}

const ERROR_TEXT_LENGTH = 4_000

/** The fields of an error, with texts of clients cut. A refusal is raised on purpose: its stack says nothing. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { type, message, stack } = stdSerializers.err(error)
  const code = 'code' in error ? { code: String(error.code) } : {}
  const fields = error instanceof Refusal ? { type, message, ...code } : { type, message, ...code, stack }
  return Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, cut(text)]))
}

function cut(text: string): string {
  return text.length > ERROR_TEXT_LENGTH ? `${text.slice(0, ERROR_TEXT_LENGTH)}…` : text
}

/** Log lines waiting to be written; beyond it new ones are dropped. */
const WAITING_MAX_BYTES = 1024 * 1024

/** The pause before a reader that is not ready is tried again. */
const RETRY_MS = 50

/** Where log lines go. */
export interface LogStream extends Output {
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
  let whenIdle = (): void => undefined

  const next = (): void => {
    if (writing) return
    if (waiting === '') return whenIdle()
    const chunk = Buffer.from(waiting)
    waiting = ''
    writing = true
    send(chunk)
  }
  const send = (chunk: Buffer): void => {
    write(descriptor, chunk, (error, written) => {
      if (error?.code === 'EAGAIN') return setTimeout(send, RETRY_MS, chunk).unref()
      if (!error && written < chunk.byteLength) return send(chunk.subarray(written))
      writing = false
      next()
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
