import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test, onTestFinished } from 'vitest'
import { pino } from 'pino'
import { openServerLog, logStream, readableLog } from '../../src/cli/commands/serve.ts'
import type { ServerLog } from '../../src/cli/commands/serve.ts'
import { Refusal } from '../../src/domain/refusal.ts'
import { temporaryFolder } from '../support/dash.ts'

function opened(readable: boolean): { log: ServerLog; text: () => string } {
  let text = ''
  const out = { write: (line: string) => void (text += line) }
  return { log: openServerLog(out, { level: 'info', readable, colored: false }), text: () => text }
}

function json(write: (log: ServerLog) => void): Record<string, unknown>[] {
  const { log, text } = opened(false)
  write(log)
  log.flush()
  const lines = text().split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

const refusedRequest = (id: number): Record<string, unknown> => ({
  requestId: `r${id}`,
  method: 'GET',
  path: '/api/search',
  route: '/api/search',
  status: 503,
  code: 'search_failed',
  finished: true,
  durationMs: id,
})

describe('lines that differ only in their request', () => {
  test('equal lines become the first of them and one with their count and common fields', () => {
    const lines = json((log) => {
      for (let id = 0; id < 1_000; id += 1) log.info(refusedRequest(id), 'request')
    })
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatchObject({ requestId: 'r0', msg: 'request', status: 503 })
    expect(lines[1]).toMatchObject({
      msg: 'request',
      count: 999,
      route: '/api/search',
      status: 503,
      code: 'search_failed',
    })
    expect(lines[1]).not.toHaveProperty('requestId')
    expect(lines[1]).not.toHaveProperty('durationMs')
  })

  test('readable lines are summed too', () => {
    const { log, text } = opened(true)
    for (let id = 0; id < 1_000; id += 1) log.info(refusedRequest(id), 'request')
    log.flush()
    expect(text().split('\n')).toHaveLength(3)
    expect(text()).toMatch(/ request .*route=\/api\/search status=503 code=search_failed .*count=999\n$/)
  })

  test('two equal lines are both written, and the next one after the sum is written again', () => {
    const lines = json((log) => {
      log.info(refusedRequest(1), 'request')
      log.info(refusedRequest(2), 'request')
      log.flush()
      log.info(refusedRequest(3), 'request')
    })
    expect(lines.map((line) => line['requestId'])).toEqual(['r1', 'r2', 'r3'])
  })

  test('lines of different routes, statuses and codes have separate sums', () => {
    const others = [{}, { route: '/api/trend' }, { status: 500 }, { code: 'search_damaged' }]
    const lines = json((log) => {
      for (let id = 0; id < 300; id += 1) log.info({ ...refusedRequest(id), ...others[id % 4] }, 'request')
    })
    expect(lines.filter((line) => line['count'] === 74)).toHaveLength(4)
  })
})

test('a fault among many equal refusals has its line and its stack', () => {
  const lines = json((log) => {
    for (let id = 0; id < 1_000; id += 1) {
      log.info(refusedRequest(id), 'request')
      if (id % 100 === 0)
        log.error({ requestId: `r${id}`, code: 'x', err: new Error('no disk') }, 'request refused')
    }
  })
  const faults = lines.filter((line) => line['level'] === 50)
  expect(faults).toMatchObject([{ err: { message: 'no disk' } }, { count: 9, err: { message: 'no disk' } }])
  expect(faults[0]).toHaveProperty('err.stack', expect.stringContaining('server-log.test'))
})

test('a refusal is logged with its reason and without a stack', () => {
  const lines = json((log) => {
    const err = new Refusal('search_failed', 'no response', { cause: new Error('locked') })
    log.error({ requestId: 'a', code: 'search_failed', err }, 'request refused')
  })
  expect(lines[0]).toHaveProperty('err.message', expect.stringContaining('no response'))
  expect(lines[0]).toHaveProperty('err.message', expect.stringContaining('locked'))
  expect(lines[0]).not.toHaveProperty('err.stack')
})

test('a fault of the disk or the database is logged without a stack, wherever it lies among the causes', () => {
  const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  const lines = json((log) => {
    log.error({ err: full }, 'the chat budget cannot be read or written')
    log.error({ err: new Error('not stored', { cause: full }) }, 'a chat answer could not be cached')
  })
  for (const line of lines) {
    expect(line).toHaveProperty('err.message', expect.stringContaining('disk is full'))
    expect(line).not.toHaveProperty('err.stack')
  }
})

test('texts of clients in errors are cut', () => {
  const err = Object.assign(new TypeError('Invalid URL'), { input: 'x'.repeat(100_000) })
  const [line] = json((log) =>
    log.error({ err: new Error('y'.repeat(100_000), { cause: err }) }, 'unexpected error'),
  )
  expect(JSON.stringify(line).length).toBeLessThan(10_000)
})

test('different lines are bounded in number, and no message is missing', () => {
  const lines = json((log) => {
    for (let id = 0; id < 5_000; id += 1)
      log.error({ requestId: `r${id}`, err: new Error(`${id}`) }, 'unexpected error')
    log.warn({ err: new Error('down') }, 'not ready')
  })
  expect(lines.length).toBeLessThan(300)
  expect(lines.some((line) => line['msg'] === 'not ready')).toBe(true)
})

test('every chat turn has its own line', () => {
  const lines = json((log) => {
    for (let turn = 0; turn < 500; turn += 1) log.info({ requestId: 'a', turn, costMicroUsd: 5 }, 'chat turn')
  })
  expect(lines).toHaveLength(500)
})

test('other lines that name a chat turn are summed, without its name', () => {
  const lines = json((log) => {
    for (let turn = 0; turn < 500; turn += 1) {
      log.error({ turn: `t${turn}`, err: new Error('no disk') }, 'the chat could not read the stored data')
    }
  })
  expect(lines).toMatchObject([{ turn: 't0' }, { count: 499, err: { message: 'no disk' } }])
  expect(lines[1]).not.toHaveProperty('turn')
})

function open(path: string): number {
  const descriptor = openSync(path, 'w')
  onTestFinished(() => closeSync(descriptor))
  return descriptor
}

test('lines are written whole and in order, and all of them by the end', async () => {
  const path = join(temporaryFolder(), 'log')
  const stream = logStream(open(path))
  const lines = Array.from({ length: 500 }, (_, index) => `line ${index} é\n`)
  for (const line of lines) stream.write(line)
  await stream.flush(10_000)
  expect(readFileSync(path, 'utf8')).toBe(lines.join(''))
})

test('a full disk costs the lines and nothing else', async () => {
  const stream = logStream(open('/dev/full'))
  for (let line = 0; line < 100; line += 1) stream.write('lost\n')
  // Ends because nothing waits any more, before its time limit, which is longer than that of the test.
  await expect(stream.flush(3_600_000)).resolves.toBeUndefined()
})

function logged(colored: boolean, write: (log: ReturnType<typeof pino>) => void): string {
  let text = ''
  const out = { write: (line: string) => void (text += line) }
  write(pino({ level: 'trace' }, readableLog(out, colored)))
  return text
}

test('a line has the time, the level, the message, and the other fields', () => {
  const text = logged(false, (log) => log.info({ requestId: 'abc', status: 200, finished: true }, 'request'))
  expect(text).toMatch(/^\d\d:\d\d:\d\d\.\d{3} info {2}request requestId=abc status=200 finished=true\n$/)
})

test('only the level is coloured, and no text changes', () => {
  const plain = logged(false, (log) => log.error({ code: 'x' }, 'refused')).slice(12)
  const colored = logged(true, (log) => log.error({ code: 'x' }, 'refused')).slice(12)
  expect(stripVTControlCharacters(colored)).toBe(plain)
})

test('an error has its stack below its line', () => {
  const text = logged(false, (log) => log.warn({ err: new Error('no room') }, 'not ready'))
  expect(text).toMatch(/^\S+ warn {2}not ready\n {2}Error: no room\n {6}at /)
})

test('text of a caller has no control characters and cannot forge a line', () => {
  const text = logged(false, (log) =>
    log.info({ path: '/\x1b[31m\u202ex\n12:00:00.000 info  forged' }, 'request'),
  )
  expect(text.split('\n')).toHaveLength(2)
  for (const character of ['\x1b', '\u202e']) expect(text).not.toContain(character)
})
