import { pino, stdSerializers } from 'pino'
import { Refusal } from '../domain/refusal.ts'
import type { Log } from '../server/log.ts'
import { readableLog } from './readable-log.ts'

/** How long equal lines are counted before their sum is written. */
const SUM_MS = 1_000

/** Groups of equal lines within that time; beyond it lines are equal when level and message are. */
const GROUPS_MAX = 100

/** Characters of any one text of an error. */
const ERROR_TEXT_LENGTH = 4_000

/** Fields that differ between lines which otherwise say the same. */
const OF_ONE_REQUEST = new Set(['requestId', 'method', 'path', 'durationMs', 'finished'])

type Level = keyof Log
type Fields = Readonly<Record<string, unknown>>

interface Group {
  level: Level
  message: string
  /** Fields that all lines have in common. */
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
  const write = (of: Level, fields: Fields, message: string): void => {
    if (!lines.isLevelEnabled(of)) return
    // Each turn of the chat has its line: quotas bound their number, and the line says what it cost.
    if ('turn' in fields) return lines[of](fields, message)
    const key = keyOf(of, fields, message)
    const plain = groups.has(key) || groups.size < GROUPS_MAX ? key : `${of} ${message}`
    const group = groups.get(plain)
    if (group === undefined) {
      groups.set(plain, { level: of, message, common: fields, count: 0 })
      timer ??= setTimeout(flush, SUM_MS).unref()
      lines[of](fields, message)
      return
    }
    group.common = group.count === 0 ? fields : inCommon(group.common, fields)
    group.count += 1
  }
  return {
    info: (fields, message) => write('info', fields, message),
    warn: (fields, message) => write('warn', fields, message),
    error: (fields, message) => write('error', fields, message),
    flush,
  }
}

function keyOf(level: Level, fields: Fields, message: string): string {
  const compared = Object.entries(fields).filter(([name]) => !OF_ONE_REQUEST.has(name))
  return JSON.stringify([level, message, ...compared.map(([name, value]) => [name, comparable(value)])])
}

function comparable(value: unknown): unknown {
  return value instanceof Error ? `${value.name}: ${value.message}` : value
}

function inCommon(one: Fields, other: Fields): Fields {
  return Object.fromEntries(
    Object.entries(one).filter(
      ([name, value]) => JSON.stringify(comparable(value)) === JSON.stringify(comparable(other[name])),
    ),
  )
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
