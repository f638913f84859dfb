import { stripVTControlCharacters } from 'node:util'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { readableLog } from '../../src/cli/server-log.ts'

function logged(colored: boolean, write: (log: ReturnType<typeof pino>) => void): string {
  let text = ''
  const out = { write: (line: string) => void (text += line) }
  write(pino({ level: 'trace' }, readableLog(out, colored)))
  return text
}

test('a line is the time, the level, the message, and what else is known', () => {
  const text = logged(false, (log) => log.info({ requestId: 'abc', status: 200, finished: true }, 'request'))
  expect(text).toMatch(/^\d\d:\d\d:\d\d\.\d{3} info {2}request requestId=abc status=200 finished=true\n$/)
})

test('colours are for the level alone, and change no text', () => {
  const plain = logged(false, (log) => log.error({ code: 'x' }, 'refused')).slice(12)
  const colored = logged(true, (log) => log.error({ code: 'x' }, 'refused')).slice(12)
  expect(stripVTControlCharacters(colored)).toBe(plain)
})

test('an error has its stack below its line', () => {
  const text = logged(false, (log) => log.warn({ err: new Error('no room') }, 'not ready'))
  expect(text).toMatch(/^\S+ warn {2}not ready\n {2}Error: no room\n {6}at /)
})

test('what a caller sent does not steer the terminal or make a line of its own', () => {
  const text = logged(false, (log) =>
    log.info({ path: '/\x1b[31m\u202ex\n12:00:00.000 info  forged' }, 'request'),
  )
  expect(text.split('\n')).toHaveLength(2)
  for (const character of ['\x1b', '\u202e']) expect(text).not.toContain(character)
})
