import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { dash, startDash } from '../../../support/dash.ts'
import { delta, META, startScripted, stream } from '../../../support/scripted-server.ts'
import type { Responder } from '../../../support/scripted-server.ts'

const chat = (args: readonly string[], options: Parameters<typeof dash>[1] = {}) =>
  dash(['chat', ...args], options)

test.each([[['--json']], [[]]])(
  'with the flags %j a turn ends when standard output is closed',
  async (flags) => {
    let left: () => void = () => undefined
    const gone = new Promise<void>((resolve) => (left = resolve))
    const endless: Responder = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(META)
      const words = setInterval(() => response.write(delta('word ')), 10)
      response.once('close', () => {
        clearInterval(words)
        left()
      })
    }
    const { url } = await startScripted({ chat: endless })
    const { child, until, end } = startDash(['chat', ...flags, '--url', url, 'x'])
    await until('stdout')
    child.stdout?.destroy()
    await gone
    expect(await end()).toBe(0)
  },
)

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a command ended by %s has its exit code and prints the partial answer', async (signal, code) => {
  const { url } = await startScripted({ chat: stream([META, delta('Hel')], 'hold') })
  const { output, until, end } = startDash(['chat', '--url', url, 'x'])
  await until('stdout')
  expect([await end(signal), output.stdout]).toEqual([code, 'Hel\n'])
})

test('a question from a pipe that does not end is answered', async () => {
  const { url } = await startScripted()
  const { child, output, end } = startDash(['chat', '--url', url])
  child.stdin?.on('error', () => undefined)
  child.stdin?.write('What is new? '.repeat(1_000))
  expect([await end(), output.stdout]).toEqual([0, 'Hello\n'])
})

test('a private server serves the demo, and its folder is deleted afterwards', async () => {
  // DASH_CHAT_DISABLED applies to the operator's own server only.
  const finished = await chat(['--demo', 'what is trending?'], { env: { DASH_CHAT_DISABLED: '1' } })
  expect(finished).toMatchObject({ code: 0 })
  expect(finished.stdout).toMatch(/^_Demo: a script answers here/)
  const [, folder = ''] = /^DEMO: filling (\S+) with the bundled sample/.exec(finished.stderr) ?? []
  expect(folder).toContain('dash-demo-')
  expect(existsSync(folder)).toBe(false)
})
