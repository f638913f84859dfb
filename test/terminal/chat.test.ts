import { execFileSync } from 'node:child_process'
import { readdir, readFile, watch } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startAgent } from '../support/agent.ts'
import { CONFIG, json, META, record, startScripted, stream } from '../support/scripted-server.ts'
import { temporaryFolder } from '../support/dash.ts'
import { ENDED, openTerminal } from './terminal.ts'
import type { TerminalOptions, TestTerminal } from './terminal.ts'

/** A provider that says what the test makes it say. */
const HELD = { provider: 'silence after headers' } as const

/**
 * Starts a chat with that server; `ask` enters a question, `answered` also completes its answer and waits for the
 * shown text.
 */
async function startTalk(options: TerminalOptions = {}) {
  const server = await startAgent(HELD)
  const { provider: model } = server
  const terminal = await openChat(server, options)
  const ask = async (text: string): Promise<void> => {
    const count = model.requests.length + 1
    await terminal.enter(text)
    await model.arrived(count)
  }
  const answered = async (question: string, answer: string, shown: string | RegExp): Promise<string> => {
    await ask(question)
    model.finish(answer)
    return terminal.until(shown)
  }
  return { server, model, terminal, ask, answered }
}

/** Expects the program to end with this code and to restore the terminal. */
async function expectEnd(terminal: TestTerminal, code: number): Promise<void> {
  const ended = new RegExp(String.raw`${ENDED} ${code}\nicanon\S* echo`)
  expect(await terminal.until(/echo\b/)).toMatch(ended)
}

async function openChat(
  { url }: { url: string },
  options: TerminalOptions & { args?: readonly string[] } = {},
): Promise<TestTerminal> {
  const terminal = await openTerminal(['chat', '--url', url, ...(options.args ?? [])], options)
  await terminal.until(/^> ?$/m)
  return terminal
}

test('an answer longer than the screen appears block by block while it streams, and nothing is painted twice', async () => {
  const { ask, model, terminal } = await startTalk({ columns: 50, rows: 8 })
  await ask('What is new?')
  await terminal.until('waiting for the answer')
  model.say('# Today\n\nThe first paragraph, which is **wide** enough to be wrapped.\n\n- one\n- two')
  await terminal.until('wrapped.')
  model.say(' and a half\n- three')
  await terminal.until('• one')
  model.finish()
  const screen = await terminal.until(/today left\n>$/)
  expect(screen.slice(screen.indexOf('> What is new?')).split('\n')).toEqual([
    '> What is new?',
    'Today',
    '',
    'The first paragraph, which is wide enough to be',
    'wrapped.',
    '',
    '• one',
    '• two and a half',
    '• three',
    '9999/10000 session, 9999/10000 today left',
    '>',
  ])
  expect(terminal.written).toContain('\x1b[1mwide\x1b[22m')
  for (const row of ['Today', 'wrapped.', '• one']) expect(terminal.written.split(row)).toHaveLength(2)
})

describe('Ctrl-C', () => {
  test('Ctrl-C during an answer stops the turn, and keeps the session and the partial answer', async () => {
    const { ask, answered, server, model, terminal } = await startTalk()
    await ask('Tell me')
    model.say('The beginning\n\nof')
    await terminal.until('The beginning')
    await terminal.press('C-c')
    await terminal.until('stopped; /retry to ask again')
    await model.idle()
    const screen = await answered('Go on', 'an answer', '9998/10000 session')
    expect(screen).toContain('The beginning\n\nof\nstopped;')
    await server.settled()
    expect(server.turns().map(({ messages }) => messages)).toEqual([1, 3])
    await ask('And before anything came?')
    await terminal.press('C-c')
    await terminal.until((shown) => shown.split('stopped;').length === 3)
    await model.idle()
    expect(model.live).toBe(0)
    await terminal.press('C-d')
    await expectEnd(terminal, 0)
  })

  test('Ctrl-C at the prompt drops the line; a second one exits with 130 and restores the terminal', async () => {
    const { terminal } = await startTalk()
    await terminal.type('half a')
    await terminal.press('C-c')
    await terminal.until('press Ctrl-C again')
    await terminal.type('another')
    await terminal.press('C-c')
    await terminal.until((screen) => screen.split('press Ctrl-C again').length === 3)
    await terminal.press('C-c')
    await expectEnd(terminal, 130)
    expect(await terminal.screen()).not.toMatch(/half a|another/)
  })
})

test.each([
  ['SIGTERM', 143, 'in mid answer'],
  ['SIGINT', 130, 'in mid answer'],
  ['SIGHUP', 129, 'in mid answer'],
  ['SIGQUIT', 131, 'in mid answer'],
  ['SIGTERM', 143, 'at the prompt'],
])('the signal %s ends the program with %i %s, and the terminal is restored', async (signal, code, when) => {
  const { ask, model, terminal } = await startTalk()
  if (when === 'in mid answer') await ask('Tell me')
  process.kill(await programIn(terminal), signal)
  await expectEnd(terminal, code)
  await model.idle()
  expect(model.live).toBe(0)
})

test.each([
  ['at the prompt', async () => undefined],
  [
    'in mid answer',
    async (terminal: TestTerminal) => {
      await terminal.enter('what about the kernel?')
      await terminal.until('· Searching')
    },
  ],
])('a terminal that closes %s ends the demo too, which deletes its folder', async (_when, before) => {
  const home = temporaryFolder()
  const terminal = await openTerminal(['chat', '--demo'], { home, env: { TMPDIR: home } })
  await terminal.until(/^> ?$/m)
  await before(terminal)
  const folders = async (): Promise<string[]> =>
    (await readdir(home)).filter((name) => name.startsWith('dash-demo-'))
  expect(await folders()).toHaveLength(1)
  const changes = watch(home)
  await terminal.tmux('kill-server').catch(() => undefined)
  for await (const { filename } of changes)
    if (filename?.startsWith('dash-demo-') && (await folders()).length === 0) break
  expect(await folders()).toEqual([])
})

/** Returns the process that the terminal's shell has started. */
async function programIn(terminal: TestTerminal): Promise<number> {
  const shell = (await terminal.tmux('display-message', '-p', '#{pane_pid}')).trim()
  return Number((await readFile(`/proc/${shell}/task/${shell}/children`, 'utf8')).trim().split(' ')[0])
}

test.each([
  ['Ctrl-Z without a shell to continue the program', (terminal: TestTerminal) => terminal.press('C-z')],
  [
    'a shell that resets the terminal and continues the program',
    async (terminal: TestTerminal) => {
      const device = (await terminal.tmux('display-message', '-p', '#{pane_tty}')).trim()
      execFileSync('stty', ['-F', device, 'sane'])
      process.kill(await programIn(terminal), 'SIGCONT')
    },
  ],
])('the interruption "%s" leaves the keyboard as it was', async (_what, interrupt) => {
  const { ask, model, terminal } = await startTalk()
  const before = terminal.written.length
  await interrupt(terminal)
  await terminal.until(() => terminal.written.slice(before).includes('> '))
  await ask('Tell me')
  await terminal.type('typed ahead')
  model.say('An answer\n\n')
  await terminal.until('An answer')
  expect(await terminal.screen()).not.toContain('typed ahead')
  await terminal.press('C-c')
  expect(await terminal.until('stopped;')).toMatch(/^> Tell me\nAn answer\nstopped;/m)
  await terminal.press('C-z', 'C-d')
  await expectEnd(terminal, 0)
})

describe('typed text', () => {
  test('text pasted as several lines, edited or with a backslash at a line end is one message', async () => {
    const server = await startScripted()
    const terminal = await openChat(server)
    const answered = (count: number) =>
      terminal.until((screen) => screen.split('today left').length === count + 1)
    await terminal.paste('first line\nsecond line\n/quit\n')
    await terminal.until(/> first line\nsecond line\n\/quit\n…$/)
    await terminal.press('Enter')
    await answered(1)
    const history = await readFile(join(terminal.home, '.local/state/dash/chat-history'), 'utf8')
    expect(history).toBe('"first line\\nsecond line\\n/quit"\n')
    await terminal.press('Up')
    await terminal.until('> first line␊second line␊/quit')
    await terminal.press('C-u')
    await terminal.enter('one \\')
    await terminal.until(/> one \\\n… ?$/)
    await terminal.enter('two')
    await answered(2)
    // A paste without a line end at its end can be edited.
    await terminal.paste('one\ntwo')
    await terminal.until(/> one\n… two$/)
    await terminal.enter(' three')
    await answered(3)
    const { messages } = JSON.parse(server.requests.at(-1)?.body ?? '') as { messages: { content: string }[] }
    const questions = messages.filter((_, index) => index % 2 === 0).map(({ content }) => content)
    expect(questions).toEqual(['first line\nsecond line\n/quit', 'one \ntwo', 'one\ntwo three'])
  })

  test('text typed during an answer waits for the prompt, and a line sent then is the next message', async () => {
    const { ask, model, terminal } = await startTalk()
    await ask('Tell me')
    await terminal.enter('and this')
    model.say('An answer\n\n')
    await terminal.until('An answer')
    expect(await terminal.screen()).not.toContain('and this')
    model.finish()
    await model.arrived(2)
    await terminal.type('typed ahead')
    model.say('Another\n\n')
    await terminal.until('Another')
    model.finish()
    expect(await terminal.until('> typed ahead')).toMatch(/^An answer\n.*\n> and this\nAnother\n/m)
  })

  test('commands are completed, and kept for the next run unless with --no-history', async () => {
    const server = await startAgent(HELD)
    const home = temporaryFolder()
    for (const [sort, args] of [
      ['day', []],
      ['week', ['--no-history']],
    ] as const) {
      const terminal = await openChat(server, { home, args })
      await terminal.type('/sor')
      await terminal.press('Tab')
      await terminal.until('> /sort')
      await terminal.type(sort.slice(0, 2))
      await terminal.press('Tab')
      await terminal.until(`> /sort ${sort}`)
      await terminal.press('Enter')
      await terminal.until(`\nsort: ${sort}`)
      await terminal.press('C-d')
      await terminal.until(ENDED)
    }
    const third = await openChat(server, { home })
    await third.press('Up')
    expect(await third.until(/> \/sort \w+$/)).toMatch(/> \/sort day$/)
  })
})

test('one answer to a question on the command line is rendered on a terminal', async () => {
  const server = await startAgent(HELD)
  const { provider: model } = server
  const terminal = await openTerminal(['chat', '--url', server.url, 'What', 'is', 'new?'])
  await model.arrived(1)
  model.finish('See [a **bold** story](https://example.org/a).')
  const screen = await terminal.until(`${ENDED} 0`)
  expect(screen).toContain('See a bold story (https://example.org/a).\n')
  expect(screen).toMatch(/left\nended with 0/)
  expect(terminal.written).toContain(`connecting to ${server.url} …`)
  expect(screen).not.toMatch(/waiting for the answer|connecting to/)
})

test('messages of the server are shown on separate lines', async () => {
  const server = await startScripted({
    config: json({ ...CONFIG, model: 'm\n> \u001b[2J\rx' }),
    chat: stream([META, record('error', { error: 'upstream_error', code: 'a\nb' })]),
  })
  const terminal = await openChat(server)
  // The line that named the server while it was awaited has disappeared.
  expect(terminal.written).toContain(`connecting to ${server.url} …`)
  expect(await terminal.screen()).toMatch(/^dash chat at \S+, model m > \\u001b\[2J x\n\/help/)
  await terminal.enter('one')
  await terminal.until('(upstream_error, a b)')
})
