import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { drawItems } from '../../../src/domain/models/lite/items.ts'
import type { LiteItems } from '../../../src/domain/models/lite/items.ts'
import { responseFollowsFormat } from '../../../src/domain/models/lite/text-response.ts'
import type { TaskResult } from '../../../src/domain/models/lite/suite.ts'
import { addDays } from '../../../src/domain/time.ts'
import { makeLiteSuite, verifiedSuite } from '../../../src/jobs/models/lite-suite.ts'
import { sandbox } from '../../support/lite-shell.ts'

const shell = await sandbox()

/** A day whose job is of a kind. */
function dayOf(kind: string): LiteItems {
  for (let index = 0; index < 400; index += 1) {
    const items = drawItems(addDays('2026-01-01', index))
    if (items.shell.kind === kind) return items
  }
  throw new Error(`no day asks for ${kind}`)
}

const text = (content: string): { text: string; toolCalls: []; finishReason: string } => ({
  text: content,
  toolCalls: [],
  finishReason: 'stop',
})
const pointsOf = (results: readonly TaskResult[]): number[] => results.map(({ points }) => points)

describe('the suite of a day', () => {
  test('a suite grades the same response the same twice', async () => {
    const items = dayOf('count')
    const suite = await makeLiteSuite(items.day, shell)
    const reply = text(`COMMAND: grep -rh '${items.clock.expected}' . | wc -l\nTIME: ${items.clock.expected}`)
    expect(await suite.grade('text', reply)).toEqual(await suite.grade('text', reply))
  })

  test('a suite gives no points for a written-out result, and part of them for a command that fails on spaces', async () => {
    const { day, shell: job, clock } = dayOf('search')
    const [, ext, mark] = /\*\.(\w+)' '(\w+:)'/.exec(job.solution) ?? []
    const suite = await makeLiteSuite(day, shell)
    const echoed = (job.cases.shown.prints ?? []).join(' ')
    const [parrot] = await suite.grade('text', text(`COMMAND: echo ${echoed} | tr ' ' '\\n'\nTIME: -`))
    expect(parrot).toMatchObject({ points: 0, status: 'failed', details: { rightOnShownFiles: true } })
    const loop = `for f in $(find . -name '*.${ext}'); do grep -l '${mark}' $f; done`
    const [careless, time] = await suite.grade(
      'text',
      text(`Sure:\nCOMMAND: \`${loop}\`\nTIME: ${clock.expected}`),
    )
    expect(careless).toMatchObject({
      points: 230,
      status: 'partial',
      details: { command: loop, rightOnOtherFiles: true, rightOnAwkwardFiles: false },
    })
    expect(time).toMatchObject({ points: 100, status: 'passed' })
    expect(responseFollowsFormat('text', text(`COMMAND: ${loop}`))).toBe(false)
  })

  test('a suite reports what the sandbox cannot do, and counts a command that was judged nowhere neither as right nor as wrong', async () => {
    const { day, shell: job } = dayOf('search')
    const [, ext, mark] = /\*\.(\w+)' '(\w+:)'/.exec(job.solution) ?? []
    const suite = await makeLiteSuite(day, shell)
    const command = `find . -name '*.${ext}' -print0 | xargs -0 -L1 grep -l ${mark}`
    const [result] = await suite.grade('text', text(`COMMAND: ${command}\nTIME: -`))
    expect(result).toMatchObject({ points: 0, status: 'http_timeout_or_error' })
    expect(result?.details).toEqual({
      command,
      plausiblyExecutable: true,
      shellOnly: true,
      usesGivenTools: true,
      sandboxUnsupported: "xargs: invalid option -- 'L'",
    })
    for (const idle of ['sort -R nothing', 'tail -f x', 'rm -rf -- *; sort -z']) {
      const [nothing] = await suite.grade('text', text(`COMMAND: ${idle}\nTIME: -`))
      expect(nothing, idle).toMatchObject({ points: 0, details: { plausiblyExecutable: true } })
    }
  })
})

describe('the refusal of a day', () => {
  const items = dayOf('top')
  const refused = (changed: Partial<LiteItems>): Promise<unknown> =>
    verifiedSuite({ ...items, ...changed }, shell)

  test.each([
    ['does not do the job', 'true', /task_shell_command_lite of .* gives its own solution 0 of 300 points/],
    ['does it on the shown files alone', "echo '1'", /its own solution 0 of 300/],
    [
      'is nothing that the sandbox can run',
      'perl -ne print',
      /its own solution 0 of 300 .*"sandboxUnsupported":"perl"/,
    ],
    ['steps into a gap', `${items.shell.solution} | xargs -L1 echo`, /its own solution 0 of 300 .*xargs/],
  ])('a day is refused when the solution of its command %s', async (_why, solution, message) => {
    const wrong = refused({ shell: { ...items.shell, solution } })
    await expect(wrong).rejects.toMatchObject({ code: 'lite_suite_refused' })
    await expect(wrong).rejects.toThrow(message)
  })

  test('a day is refused when its clock or its files are not solved by their solutions', async () => {
    const [first, ...others] = items.files.requested
    if (!first) throw new Error('no file is asked for')
    await expect(refused({ clock: { ...items.clock, expected: '25:00' } })).rejects.toThrow(
      /babylonian_clock_lite/,
    )
    const unsolved = { ...items.files, requested: [{ ...first, solution: '' }, ...others] }
    await expect(refused({ files: unsolved })).rejects.toThrow(
      /task_files_lite .* its own solution 290 of 350/,
    )
  })

  test('a day is refused when the shown result equals a hidden one', async () => {
    const { cases } = items.shell
    const same = { ...items.shell, cases: { shown: cases.shown, other: cases.shown, awkward: cases.shown } }
    await expect(refused({ shell: same })).rejects.toThrow(/the shown result 300 of 300/)
  })

  test('a day is refused when an echo or nothing solves its files', async () => {
    const file = items.files.requested[0]
    if (!file) throw new Error('no file is asked for')
    const echo = { ...file, path: 'a.txt', properties: { any: () => true } }
    const easy = { ...items.files, requested: [echo, ...items.files.requested.slice(1)] }
    await expect(refused({ files: easy })).rejects.toMatchObject({ code: 'lite_suite_refused' })
  })
})

describe('the example of docs/lite-suite.md', () => {
  const page = readFileSync(fileURLToPath(new URL('../../../docs/lite-suite.md', import.meta.url)), 'utf8')
  const items = drawItems('2026-11-21')

  test('the example shows the prompts of its day', () => {
    for (const { messages } of Object.values(items.prompts)) expect(page).toContain(messages[0]?.content)
  })

  test('the example shows the points of each response', async () => {
    const suite = await makeLiteSuite('2026-11-21', shell)
    const rows = [
      ...page.matchAll(/^\| ([^|\n]*`(?:COMMAND|TIME): (?:[^|\n]|\\\|)*)\|\s+(\d+) \|\s+(\d+) \|$/gm),
    ]
    expect(rows).toHaveLength(5)
    for (const [, answer = '', command, clock] of rows) {
      const lines = [...answer.matchAll(/`((?:COMMAND|TIME): [^`]*)`/g)].map(([, line = '']) => line)
      const reply = text(lines.join('\n').replaceAll('\\|', '|'))
      expect(pointsOf(await suite.grade('text', reply)), answer).toEqual([Number(command), Number(clock)])
    }
  })
})
