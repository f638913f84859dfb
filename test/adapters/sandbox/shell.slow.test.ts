import { expect, test } from 'vitest'
import { builtModule } from '../../support/compiled-sources.ts'
import { runScript } from '../script-process.ts'

const OPEN = `const { memoryShell } = await import(${JSON.stringify(builtModule('adapters/sandbox/shell.js'))})
const shell = memoryShell()
const limits = { timeMs: 5000, outputBytes: 1000 }
const children = () => process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length
`

test('a sandbox starts with its first command, and does not keep its parent alive', async () => {
  const user = runScript(
    `${OPEN}console.log(children())
    const run = await shell.run('echo sound', new Map(), limits)
    console.log(run.stdout.trim())`,
    [],
  )
  expect(await user.line()).toBe('0')
  expect(await user.line()).toBe('sound')
  expect(await user.ended).toMatchObject({ code: 0, errors: '' })
})

test('a closed sandbox starts again with the next command', async () => {
  const user = runScript(
    `${OPEN}await shell.close()
    await shell.run('x=1', new Map(), limits)
    await shell.close()
    const run = await shell.run('echo sound', new Map(), limits)
    console.log(run.stdout.trim())
    await shell.close()`,
    [],
  )
  expect(await user.line()).toBe('sound')
  expect(await user.ended).toMatchObject({ code: 0, errors: '' })
})

test('a sandbox may read only the program, and ends with its parent process', async () => {
  const user = runScript(
    `${OPEN}const { execFileSync } = await import('node:child_process')
    await shell.run('true', new Map(), limits)
    console.log(execFileSync('pgrep', ['-a', '-f', '-P', String(process.pid), 'shell-process'], { encoding: 'utf8' }).trim())
    setInterval(() => undefined, 1000)`,
    [],
  )
  const [, pid = '', args = ''] = /^(\d+) (.*)$/.exec((await user.line()) ?? '') ?? []
  expect(args).toMatch(/ --(?:experimental-)?permission .*\/shell-process\.js$/)
  expect(args).not.toMatch(/--allow-(?!fs-read=)|--allow-fs-read=(?:\*|\/\*?)(?: |$)/)
  const sandbox = Number(pid)
  user.kill()
  await user.ended
  const gone = (): boolean => {
    try {
      return !process.kill(sandbox, 0)
    } catch {
      return true
    }
  }
  await expect.poll(gone, { timeout: 20_000 }).toBe(true)
})
