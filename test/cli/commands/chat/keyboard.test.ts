import fc from 'fast-check'
import { expect, test } from 'vitest'
import { typedInput } from '../../../../src/cli/commands/chat/keyboard.ts'
import type { Typed } from '../../../../src/cli/commands/chat/keyboard.ts'

const typed = (...chunks: string[]): Typed[] => {
  const input = typedInput()
  return chunks.flatMap((chunk) => input.push(chunk))
}

const pasted = (text: string): string => `\x1b[200~${text}\x1b[201~`

test('a marked paste is separated from the keys around it', () => {
  expect(typed(`ab${pasted('one\ntwo\r\n')}\r`)).toEqual([
    { kind: 'keys', text: 'ab' },
    { kind: 'paste', text: 'one\ntwo\r\n' },
    { kind: 'keys', text: '\r' },
  ])
})

test('a paste is the same wherever the input is split, except after its first escape', () => {
  const whole = `a${pasted('x\ny')}b${pasted('\x1b[31m')}`
  const begins = new Set([...whole.matchAll(/\[200~/g)].map(({ index }) => index))
  const positions = Array.from({ length: whole.length }, (_, index) => index).filter((at) => !begins.has(at))
  fc.assert(
    fc.property(fc.subarray(positions), (cuts) => {
      const chunks = [...cuts, whole.length].map((cut, index) => whole.slice(cuts[index - 1] ?? 0, cut))
      const pastes = typed(...chunks).filter(({ kind }) => kind === 'paste')
      expect(pastes.map(({ text }) => text)).toEqual(['x\ny', '\x1b[31m'])
    }),
  )
})

test('a line end within a chunk of input is pasted, one at its end is a key', () => {
  expect(typed('hello\r')).toEqual([{ kind: 'keys', text: 'hello\r' }])
  expect(typed('one\ntwo\rthree\r')).toEqual([
    { kind: 'paste', text: 'one\ntwo\rthree' },
    { kind: 'keys', text: '\r' },
  ])
  expect(typed('\r', '\r')).toEqual([
    { kind: 'keys', text: '\r' },
    { kind: 'keys', text: '\r' },
  ])
})

test('keys that begin like a paste are keys once they continue differently', () => {
  expect(typed('\x1b', '[A')).toEqual([
    { kind: 'keys', text: '\x1b' },
    { kind: 'keys', text: '[A' },
  ])
  expect(typed('\x1b[2', '~')).toEqual([{ kind: 'keys', text: '\x1b[2~' }])
})

test('a paste without an end has a bounded length', () => {
  const [paste] = typed('\x1b[200~', 'x'.repeat(600_000), 'x'.repeat(600_000))
  expect(paste).toMatchObject({ kind: 'paste' })
  expect(paste?.text).toHaveLength(1_200_000)
})
