import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { dash, startDash, temporaryFolder } from '../../support/dash.ts'

const message = (rest: object): string => `${JSON.stringify({ jsonrpc: '2.0', ...rest })}\n`

const HELLO = message({
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  },
})

const parsed = (stdout: string): unknown[] =>
  stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown)

test('standard output has only messages, a line that is none gets an error, and pending requests are answered after the input has ended', async () => {
  const { code, stdout, stderr } = await dash(['mcp', '--demo', '--quiet'], {
    stdin: `\uFEFF${HELLO}no message\n\n[${HELLO.trim()}]\n{"id":"a"}\n${message({ id: 2, method: 'tools/call', params: { name: 'get_feed_snapshot', arguments: { sort: 'day', limit: 1 } } }).trimEnd()}`,
  })
  expect(code).toBe(0)
  const answers = parsed(stdout) as { id: unknown }[]
  const answersTo = (id: unknown): unknown[] => answers.filter((answer) => answer.id === id)
  expect(answersTo(1)).toMatchObject([{ result: { serverInfo: { name: 'dash', title: 'DEMO: dash' } } }])
  expect(answersTo(2)).toMatchObject([{ result: { structuredContent: { untrusted: true } } }])
  expect(answersTo('a')).toMatchObject([{ jsonrpc: '2.0', error: { code: -32_600 } }])
  expect(answersTo(null)).toMatchObject([
    { jsonrpc: '2.0', error: { code: -32_700 } },
    { jsonrpc: '2.0', error: { code: -32_600, message: expect.stringContaining('batches') as string } },
  ])
  expect(answers).toHaveLength(5)
  expect(stderr).toBe('error: a line on standard input was not a valid message\n'.repeat(3))
})

/** Creates a data folder with an empty feed. */
async function emptyFeed(): Promise<string> {
  const folder = temporaryFolder()
  const { code } = await dash(['import', 'signals', '-', '--data-dir', folder], { stdin: '' })
  expect(code).toBe(0)
  return folder
}

test('a signal, and a closed standard output, end the MCP server with 0 while its client is connected', async () => {
  const folder = await emptyFeed()
  for (const ending of ['SIGTERM', 'closed'] as const) {
    const { child, until, end } = startDash(['mcp', '--data-dir', folder])
    child.stdin?.on('error', () => undefined)
    child.stdin?.write(HELLO)
    await until('stdout')
    if (ending === 'closed') {
      child.stdout?.destroy()
      child.stdin?.write(message({ id: 2, method: 'ping' }))
      expect(await end()).toBe(0)
    } else expect(await end(ending)).toBe(0)
  }
})

test.each([
  ['mcp', 'SIGTERM', 143],
  ['mcp', 'SIGINT', 130],
  ['serve', 'SIGTERM', 143],
] as const)(
  '%s --demo that gets %s before it is filled ends with %i and keeps no folder',
  async (command, signal, code) => {
    const TMPDIR = temporaryFolder()
    const { until, end } = startDash([command, '--demo'], { env: { TMPDIR, PORT: '0' } })
    await until('stderr', 'DEMO: filling')
    expect(await end(signal)).toBe(code)
    expect(readdirSync(TMPDIR).filter((name) => name.startsWith('dash-demo-'))).toEqual([])
  },
)

test('an endless line, a missing feed and --json each end the MCP server with one line', async () => {
  const folder = await emptyFeed()
  expect(await dash(['mcp', '--data-dir', folder], { stdin: 'x'.repeat(2_000_000) })).toEqual({
    code: 1,
    stdout: '',
    stderr: 'error: a line on standard input has more than 1048576 characters\n',
  })
  const missing = await dash(['mcp', '--data-dir', temporaryFolder()], { stdin: HELLO })
  expect([missing.code, missing.stdout]).toEqual([74, ''])
  expect(missing.stderr).toMatch(/^error: no feed database at .*\n$/)
  expect((await dash(['mcp', '--data-dir', folder, '--json'], { stdin: HELLO })).code).toBe(64)
})
