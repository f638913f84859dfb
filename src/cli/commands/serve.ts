import { write } from 'node:fs'
import { levels, pino, stdSerializers } from 'pino'
import { Refusal } from '../../domain/refusal.ts'
import { requireFreePort } from '../../server/listen.ts'
import { refuseAddress } from '../settings/config.ts'
import type { Config } from '../settings/config.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT, hasStorageCode } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'
import { startServer } from '../running-server.ts'
import type { Terminal } from '../terminal.ts'
import { TURN_MESSAGE } from '../../server/route.ts'
import type { Log } from '../../server/route.ts'
import { escaped, printable, styled } from '../terminal.ts'

/** Time limit for writing the remaining log lines. */
const LOG_FLUSH_MS = 500

export async function serveCommand(context: CommandContext, { demo }: { demo: boolean }): Promise<number> {
  const { config } = context
  // Checked before anything is created.
  await requireFreePort(config.host, config.port, refuseAddress(config, 'HOST', 'PORT'))
  if (demo) {
    const { withDemo } = await import('../demo.ts')
    return withDemo(context, (demoConfig) => serveConfig(context, demoConfig, true))
  }
  prepareFolders(config, false)
  return serveConfig(context, config, false)
}

/** Returns the log level. On a terminal `info` becomes `warn` without --verbose, which hides requests. */
function logLevelFor({ logLevel }: Config, { verbose }: Terminal, isTerminal: boolean): Config['logLevel'] {
  return isTerminal && !verbose && logLevel === 'info' ? 'warn' : logLevel
}

async function serveConfig(
  { terminal, signal, stderr, version }: CommandContext,
  config: Config,
  demo: boolean,
): Promise<number> {
  const lines = logStream(process.stderr.fd)
  const level = logLevelFor(config, terminal, stderr.isTTY)
  const log = openServerLog(lines, { level, readable: stderr.isTTY, colored: terminal.colored })
  try {
    const isDraining = (): boolean => signal.aborted
    const server = await startServer(config, { log, version, demo, isDraining })
    const label = demo ? 'DEMO: ' : ''
    const { url, metricsUrl } = server
    const result = { job: 'serve', url, demo, ...(metricsUrl === null ? {} : { metricsUrl }) }
    if (metricsUrl !== null) terminal.note(`metrics: ${metricsUrl}`)
    // The address must be the last line of the start.
    log.flush()
    await lines.flush(LOG_FLUSH_MS)
    terminal.result(result, `${label}dash is listening on ${url}`)
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    terminal.note(
      `stopping: open responses have ${config.drainMs / 1000} s to finish; a second signal exits at once`,
    )
    await server.close(config.drainMs)
    return EXIT.done
  } finally {
    log.flush()
    await lines.flush(LOG_FLUSH_MS)
  }
}

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

/** Turns JSON log lines into readable ones, with the stack of an error below its line. */
function readableLog(out: Output, colored: boolean): Output {
  return { write: (line) => out.write(readableLine(JSON.parse(line) as LogLine, colored)) }
}

/** Formats a line without the process ID and host name, which are the same in every line. */
function readableLine(
  { level, time, msg, err, pid: _pid, hostname: _hostname, ...fields }: LogLine,
  colored: boolean,
): string {
  const name = levels.labels[level] ?? String(level)
  const shownName = styled(name.padEnd(5), [COLORS[name] ?? 'gray'], colored)
  const values = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const clock = new Date(time).toISOString().slice(11, 23)
  const head = `${clock} ${shownName} ${[msg ?? '', ...values].map(escaped).join(' ')}\n`
  const stack = err?.stack ?? err?.message
  return stack === undefined ? head : `${head}${printable(stack).replaceAll(/^/gm, '  ')}\n`
}

/** Time for which equal lines are counted before their sum is written. */
const SUM_MS = 1_000

/** Most groups within that time; beyond it, lines are grouped by level and message only. */
const GROUPS_MAX = 100

/** Fields that are ignored when lines are compared. */
const REQUEST_FIELDS = new Set(['requestId', 'turn', 'method', 'path', 'durationMs', 'finished'])

type Level = keyof Log
type Fields = Readonly<Record<string, unknown>>

interface Group {
  level: Level
  message: string
  /** Fields that all its lines have. */
  common: Fields
  /** Fields of the last line. */
  last: Fields
  /** Number of lines that are not written yet. */
  count: number
}

export interface ServerLog extends Log {
  /** Writes the sums of all counted lines. */
  flush(): void
}

/**
 * Opens the log of a server. Of several lines that differ only in their request, the first is written at once;
 * those that follow within a second become one line with their `count` and common fields.
 *
 * @param options.readable false for lines of JSON
 */
export function openServerLog(
  out: Output,
  { level, readable, colored }: { level: string; readable: boolean; colored: boolean },
): ServerLog {
  const lines = pino({ level, serializers: { err: errorFields } }, readable ? readableLog(out, colored) : out)
  const groups = new Map<string, Group>()
  let timer: NodeJS.Timeout | undefined

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    for (const { level: lineLevel, message, common, last, count } of groups.values()) {
      if (count > 0) lines[lineLevel](count === 1 ? last : { ...common, count }, message)
    }
    groups.clear()
  }
  const writeAt = (lineLevel: Level, fields: Fields, message: string): void => {
    if (!lines.isLevelEnabled(lineLevel)) return
    // Every chat turn has its own line, which states its cost; quotas limit their number.
    if (message === TURN_MESSAGE) return lines[lineLevel](fields, message)
    const key = keyOf(lineLevel, fields, message)
    const isOwn = groups.has(key) || groups.size < GROUPS_MAX
    const groupKey = isOwn ? key : `${lineLevel} ${message}`
    const group = groups.get(groupKey)
    if (group) {
      group.last = fields
      group.count += 1
      return
    }
    const ofAll = Object.entries(fields).filter(([name]) => !REQUEST_FIELDS.has(name))
    const common = isOwn ? Object.fromEntries(ofAll) : {}
    groups.set(groupKey, { level: lineLevel, message, common, last: fields, count: 0 })
    timer ??= setTimeout(flush, SUM_MS).unref()
    lines[lineLevel](fields, message)
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
  for (const name in fields) if (!REQUEST_FIELDS.has(name)) key += `\n${name}=${comparable(fields[name])}`
  return key
}

function comparable(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const ERROR_TEXT_LENGTH = 4_000

/**
 * Returns the fields of an error. Long texts are cut, since they may come from clients. Refusals, which are expected, and
 * errors of the disk or a database have no stack.
 */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { type, message, stack } = stdSerializers.err(error)
  const code = 'code' in error ? { code: String(error.code) } : {}
  const hasStack = !(error instanceof Refusal) && !hasStorageCode(error)
  const fields = { type, message, ...code, ...(hasStack ? { stack } : {}) }
  return Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, cut(text)]))
}

function cut(text: string): string {
  return text.length > ERROR_TEXT_LENGTH ? `${text.slice(0, ERROR_TEXT_LENGTH)}…` : text
}

/** Most bytes of log lines in memory; beyond it, new lines are dropped. */
const WAITING_MAX_BYTES = 1024 * 1024

/** Pause before a retry when the reader is not ready. */
const RETRY_MS = 50

export interface LogStream extends Output {
  /** Resolves when all waiting lines are written, or after `withinMs` milliseconds. */
  flush(withinMs: number): Promise<void>
}

/**
 * Writes log lines to a file descriptor, without blocking and without failing: if the log cannot be written (full
 * disk, closed or stalled reader), lines are lost and the server continues.
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
