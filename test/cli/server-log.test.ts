import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test, onTestFinished } from 'vitest'
import { openServerLog, logStream } from '../../src/cli/commands/serve.ts'
import type { ServerLog } from '../../src/cli/commands/serve.ts'
import { Refusal } from '../../src/domain/refusal.ts'
import { temporaryFolder } from '../support/dash.ts'

type Write = (log: ServerLog) => void

function logged(write: Write, options = { readable: true, colored: false }): string {
  let text = ''
  const log = openServerLog({ write: (line) => void (text += line) }, { level: 'info', ...options })
  write(log)
  log.flush()
  return text
}

const json = (write: Write): Record<string, unknown>[] =>
  logged(write, { readable: false, colored: false })
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>)

const WHERE = { route: '/api/search', status: 503, code: 'search_failed' }

const refusedRequest = (id: number): Record<string, unknown> => ({
  requestId: `r${id}`,
  method: 'GET',
  path: '/api/search',
  ...WHERE,
  finished: true,
  durationMs: id,
})

const repeated =
  (count: number, write: (log: ServerLog, id: number) => void): Write =>
  (log) => {
    for (let id = 0; id < count; id += 1) write(log, id)
  }

describe('lines that differ only in their request', () => {
  test('equal lines become the first of them and one with their count and common fields, in JSON and readable', () => {
    const write = repeated(1_000, (log, id) => log.info(refusedRequest(id), 'request'))
    const [first, sum, ...others] = json(write)
    expect(first).toMatchObject({ requestId: 'r0', msg: 'request', status: 503 })
    expect(sum).toEqual({
      level: 30,
      time: expect.any(Number),
      pid: expect.any(Number),
      hostname: expect.any(String),
      ...WHERE,
      count: 999,
      msg: 'request',
    })
    expect(others).toEqual([])
    expect(logged(write).split('\n').slice(1)).toEqual([
      expect.stringMatching(/ request route=\/api\/search status=503 code=search_failed count=999$/),
      '',
    ])
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

  test('lines of different levels, messages, routes, statuses and codes have separate sums', () => {
    const differing = json((log) => {
      log.info(WHERE, 'request')
      log.info(WHERE, 'request refused')
      log.warn(WHERE, 'request refused')
    })
    const written = differing.map(({ level, msg }) => [level, msg])
    expect(written).toEqual([
      [30, 'request'],
      [30, 'request refused'],
      [40, 'request refused'],
    ])
    const others = [{}, { route: '/api/trend' }, { status: 500 }, { code: 'search_damaged' }]
    const lines = json(
      repeated(300, (log, id) => log.info({ ...refusedRequest(id), ...others[id % 4] }, 'request')),
    )
    expect(lines.filter((line) => line['count'] === 74)).toHaveLength(4)
  })

  test('every chat turn has its own line, and other lines that name a turn are summed without its name', () => {
    const turns = repeated(500, (log, turn) => log.info({ turn, costMicroUsd: 5 }, 'chat turn'))
    expect(json(turns)).toHaveLength(500)
    const lines = json(
      repeated(500, (log, turn) => log.error({ turn, err: new Error('no disk') }, 'not readable')),
    )
    expect(lines).toMatchObject([{ turn: 0 }, { count: 499, err: { message: 'no disk' } }])
    expect(lines[1]).not.toHaveProperty('turn')
  })

  test('different lines are bounded in number, and no message is missing', () => {
    const lines = json((log) => {
      repeated(5_000, (_log, id) => log.error({ err: new Error(`${id}`) }, 'unexpected error'))(log)
      log.warn({ err: new Error('down') }, 'not ready')
    })
    expect(lines.length).toBeLessThan(300)
    expect(lines.some((line) => line['msg'] === 'not ready')).toBe(true)
  })
})

test('a fault among many equal refusals has its line and its stack', () => {
  const lines = json(
    repeated(1_000, (log, id) => {
      log.info(refusedRequest(id), 'request')
      if (id % 100 === 0) log.error({ requestId: `r${id}`, err: new Error('no disk') }, 'request refused')
    }),
  )
  const faults = lines.filter((line) => line['level'] === 50)
  expect(faults).toMatchObject([{ err: { message: 'no disk' } }, { count: 9, err: { message: 'no disk' } }])
  expect(faults[0]).toHaveProperty('err.stack', expect.stringContaining('server-log.test'))
})

const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })

test.each([
  [
    'a refusal',
    new Refusal('search_failed', 'no response', { cause: new Error('locked') }),
    /no res.*locked/,
  ],
  ['a fault of the database', full, /disk is full/],
  ['a fault with such a cause', new Error('not stored', { cause: full }), /not stored.*disk is full/],
])('%s is logged with its reason and without a stack', (_what, err, reason) => {
  const [line] = json((log) => log.error({ err }, 'request refused'))
  expect(line).toHaveProperty('err.message', expect.stringMatching(reason))
  expect(line).not.toHaveProperty('err.stack')
})

test('texts of clients in errors are cut', () => {
  const cause = Object.assign(new TypeError('Invalid URL'), { input: 'x'.repeat(100_000) })
  const [line] = json((log) => log.error({ err: new Error('y'.repeat(100_000), { cause }) }, 'unexpected'))
  expect(JSON.stringify(line).length).toBeLessThan(10_000)
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

describe('a readable line', () => {
  test('a line has the time, the level, the message and the other fields, and an error its stack below', () => {
    const fields = { requestId: 'abc', status: 200, finished: true }
    expect(logged((log) => log.info(fields, 'request'))).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} info {2}request requestId=abc status=200 finished=true\n$/,
    )
    expect(logged((log) => log.warn({ err: new Error('no room') }, 'not ready'))).toMatch(
      /^\S+ warn {2}not ready\n {2}Error: no room\n {6}at /,
    )
  })

  test('only the level is coloured, and no text changes', () => {
    const write: Write = (log) => log.error({ code: 'x' }, 'refused')
    const colored = logged(write, { readable: true, colored: true }).slice(12)
    expect(colored).toContain('\x1b[')
    expect(stripVTControlCharacters(colored)).toBe(logged(write).slice(12))
  })

  test('text of a caller has no control characters and cannot forge a line', () => {
    const text = logged((log) => log.info({ path: '/\x1b[31m\u202ex\n12:00:00.000 info  forged' }, 'request'))
    expect(text.split('\n')).toHaveLength(2)
    for (const character of ['\x1b', '\u202e']) expect(text).not.toContain(character)
  })
})
