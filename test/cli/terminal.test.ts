import { expect, test } from 'vitest'
import { escaped, inOneLine, knowsHyperlinks, openTerminal } from '../../src/cli/terminal.ts'

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

test.each([
  [true, 'WezTerm', { TERM_PROGRAM: 'WezTerm' }],
  [true, 'foot', { TERM: 'foot-extra' }],
  [true, 'a new VTE', { VTE_VERSION: '5001' }],
  [false, 'an old VTE', { VTE_VERSION: '5000' }],
  [true, 'a new tmux', { TERM_PROGRAM: 'tmux', TERM_PROGRAM_VERSION: '3.4' }],
  [
    false,
    'an old tmux in kitty',
    { TERM_PROGRAM: 'tmux', TERM_PROGRAM_VERSION: '3.3a', TERM: 'xterm-kitty' },
  ],
  [false, 'screen in Konsole', { TERM: 'screen-256color', KONSOLE_VERSION: '240500' }],
  [false, 'continuous integration', { CI: 'true', TERM_PROGRAM: 'vscode' }],
  [true, 'FORCE_HYPERLINK=1 on any terminal', { FORCE_HYPERLINK: '1', TERM: 'dumb' }],
  [false, 'FORCE_HYPERLINK=0', { FORCE_HYPERLINK: '0', TERM_PROGRAM: 'WezTerm' }],
])('hyperlinks are written (%s) in %s, and never to a pipe', (isKnown, _terminal, env) => {
  const stream = (isTTY: boolean): NodeJS.WriteStream => ({ isTTY }) as NodeJS.WriteStream
  expect([knowsHyperlinks(stream(true), env), knowsHyperlinks(stream(false), env)]).toEqual([isKnown, false])
})
