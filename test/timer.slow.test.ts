import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from './support/dash.ts'

const TIMER = fileURLToPath(new URL('../ops/container/timer.sh', import.meta.url))
const SCHEDULE = fileURLToPath(new URL('../ops/container/schedule', import.meta.url))

/** A Saturday. */
const NOW = Date.parse('2026-11-21T21:30:00Z') / 1000

/**
 * Programs in place of the system's, so that the script lives by the test's own clock: `date` tells the time of a file,
 * `sleep` moves it, and dash says when it was begun with what.
 *
 * @param program what it does then, in sh
 * @param sleepsFor how much longer each sleep takes than it was asked for, in seconds
 */
function worldAt(now: number, program = '', sleepsFor = 0): Record<string, string> {
  const folder = temporaryFolder()
  const clock = join(folder, 'clock')
  writeFileSync(clock, String(now))
  const place = (name: string, body: string): string => {
    const path = join(folder, name)
    writeFileSync(path, `#!/bin/sh\n${body}\n`)
    chmodSync(path, 0o755)
    return path
  }
  place('date', `if [ "$2" = +%s ]; then cat ${clock}; else exec /bin/date "$@"; fi`)
  place('sleep', `echo $(($(cat ${clock}) + $1 + ${sleepsFor})) > ${clock}.next && mv ${clock}.next ${clock}`)
  const DASH_PROGRAM = place('dash-program', `echo "$(cat ${clock}) $*"\n${program}`)
  return { PATH: `${folder}:/usr/bin:/bin`, DASH_PROGRAM }
}

function scheduleOf(text: string): string {
  const path = join(temporaryFolder(), 'schedule')
  writeFileSync(path, text)
  return path
}

const run = (args: readonly string[], env: Record<string, string>) =>
  spawnSync('/bin/sh', [TIMER, ...args], { env, encoding: 'utf8' })

const dueAt = (now: number, schedule: string): string[] =>
  run(['--next', schedule], worldAt(now)).stdout.split('\n').filter(Boolean)

describe('the schedule', () => {
  test('the schedule of the image is due at its times of the UTC day', () => {
    expect(dueAt(NOW, SCHEDULE)).toEqual([
      '2026-11-22T00:10:00Z publish-year --once --quiet',
      '2026-11-22T03:17:00Z evaluate-models --quiet',
      '2026-11-22T04:30:00Z verify-archive --quiet',
      '2026-11-21T22:05:00Z collect --quiet --source hn lobsters lesswrong hype:github hype:huggingface',
    ])
    const justAfter = Date.parse('2026-11-22T04:30:00Z') / 1000
    expect(dueAt(justAfter, SCHEDULE)[2]).toBe('2026-11-29T04:30:00Z verify-archive --quiet')
    expect(dueAt(justAfter - 1, SCHEDULE)[2]).toBe('2026-11-22T04:30:00Z verify-archive --quiet')
  })

  test('a schedule accepts days of the week, times in any order, and hours that look octal', () => {
    const schedule = scheduleOf('# mine\n\n1,3  09:08,00:09  snapshot   # early in the week\n')
    expect(dueAt(NOW, schedule)).toEqual(['2026-11-23T00:09:00Z snapshot'])
    expect(dueAt(Date.parse('2026-11-23T00:09:00Z') / 1000, schedule)).toEqual([
      '2026-11-23T09:08:00Z snapshot',
    ])
    expect(dueAt(Date.parse('2026-11-23T23:00:00Z') / 1000, schedule)).toEqual([
      '2026-11-25T00:09:00Z snapshot',
    ])
  })

  test.each([
    ['* 24:00 collect', "the time '24:00' is not HH:MM"],
    ['* 1:00 collect', "the time '1:00' is not HH:MM"],
    ['* , collect', "the times ',' are no list of HH:MM"],
    ['* 01:00,,02:00 collect', "the times '01:00,,02:00' are no list of HH:MM"],
    [', 01:00 collect', "the days ',' are neither"],
    ['12 01:00 collect', "the days '12' are neither"],
    ['* 01:00', "the line '* 01:00' names no command"],
    ['# nothing', 'it has no line'],
  ])('a schedule with the line %j is refused before anything begins', (line, reason) => {
    const { status, stdout, stderr } = run(
      [scheduleOf(`* 21:31 snapshot\n${line}\n`.replace(/^.*\n(?=# nothing)/, ''))],
      worldAt(NOW),
    )
    expect([status, stdout, stderr]).toEqual([78, '', expect.stringContaining(reason)])
  })
})

const at = (instant: string): number => Date.parse(instant) / 1000

describe('the timer', () => {
  interface Timer {
    child: ChildProcess
    /** Waits for a number of started runs and returns them, each with the time of the clock. */
    begun(count: number): Promise<string[]>
    output: { stdout: string; stderr: string }
  }

  function start(schedule: string, env: Record<string, string>): Timer {
    const child = spawn('/bin/sh', [TIMER, scheduleOf(schedule)], { env, detached: true })
    const output = { stdout: '', stderr: '' }
    child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
    onTestFinished(() => {
      try {
        process.kill(-(child.pid ?? 0), 'SIGKILL')
      } catch {
        // It has ended, as it should.
      }
    })
    const lines = (): string[] => output.stdout.split('\n').slice(0, -1)
    return {
      child,
      output,
      async begun(count) {
        while (lines().length < count) await once(child.stdout, 'data')
        return lines().slice(0, count)
      },
    }
  }

  test('the timer starts dash at each time with its arguments, and reports failures', async () => {
    const timer = start('* 21:35,21:50,22:10 publish-year --once\n', worldAt(NOW, 'exit 69'))
    expect(await timer.begun(3)).toEqual([
      `${at('2026-11-21T21:35:00Z')} publish-year --once`,
      `${at('2026-11-21T21:50:00Z')} publish-year --once`,
      `${at('2026-11-21T22:10:00Z')} publish-year --once`,
    ])
    expect(timer.output.stderr).toContain('publish-year ended with 69\n')
  })

  test('the timer starts the runs missed during sleep at once, and each once', async () => {
    const timer = start('* 22:00,22:30,23:59 collect\n', worldAt(NOW, '', 7_200))
    expect(await timer.begun(2)).toEqual([
      `${at('2026-11-21T23:31:00Z')} collect`,
      `${at('2026-11-22T01:32:00Z')} collect`,
    ])
  })

  test('the timer stops the current run, waits for its end, and starts no other', async () => {
    const program = 'trap "echo stopped; exit 143" TERM\necho ready\nwhile :; do /bin/sleep 0.05; done'
    const timer = start('* 21:31,21:32 collect\n', worldAt(NOW, program))
    await timer.begun(2)
    timer.child.kill('SIGTERM')
    expect(await once(timer.child, 'close')).toEqual([0, null])
    expect(timer.output.stdout.split('\n').slice(1)).toEqual(['ready', 'stopped', ''])
  })
})
