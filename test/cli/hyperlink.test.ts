import { expect, test } from 'vitest'
import { knowsHyperlinks } from '../../src/cli/hyperlink.ts'

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
