import { expect, test } from 'vitest'
import { escaped, inOneLine, openTerminal } from '../../src/cli/terminal.ts'

/** A terminal that records its streams as text. */
function recordedTerminal(json: boolean): { terminal: ReturnType<typeof openTerminal>; written: string[] } {
  const written: string[] = []
  const stream = {
    isTTY: false,
    write: (text: string) => written.push(text),
  } as unknown as NodeJS.WriteStream
  const options = { json, quiet: false, verbose: false, color: false }
  return { terminal: openTerminal(options, { stdout: stream, stderr: stream, env: {} }), written }
}

/** A title that would forge a line, clear the screen by two kinds of control characters, and reverse the line. */
const HOSTILE = 'a\nb\r\tc \u001b[2J\u009b2J\u202ed\u2028e\u{e0041}'
const SHOWN = String.raw`a\nb\r\tc \u001b[2J\u009b2J\u202ed\u2028e\udb40\udc41`

test('stored text is printed on one line, each control and hidden character as an escape', () => {
  expect(escaped(HOSTILE)).toBe(SHOWN)
  expect(escaped('Größe “quoted” 漢字 😀 \\n')).toBe('Größe “quoted” 漢字 😀 \\n')
  expect(inOneLine(HOSTILE)).toBe(String.raw`a b c \u001b[2J\u009b2J\u202ed e\udb40\udc41`)
})

test('an error, a note and a failure cannot print a second line', () => {
  const { terminal, written } = recordedTerminal(false)
  terminal.error(HOSTILE)
  terminal.note(HOSTILE)
  expect(written).toEqual([`error: ${SHOWN}\n`, `${SHOWN}\n`])
})

test('a result keeps its own line ends, and escapes everything else', () => {
  const { terminal, written } = recordedTerminal(false)
  terminal.result({}, 'one \u001b[31m\ntwo')
  expect(written).toEqual(['one \\u001b[31m\ntwo\n'])
})

test('a JSON result parses to the same value, and has no control characters', () => {
  const { terminal, written } = recordedTerminal(true)
  terminal.result({ title: HOSTILE }, '')
  expect(JSON.parse(written[0] ?? '')).toEqual({ title: HOSTILE })
  expect(written[0]?.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u)
})
