import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { drawItems } from '../../../src/domain/models/lite/items.ts'
import type { LiteItems } from '../../../src/domain/models/lite/items.ts'
import { responseFollowsFormat } from '../../../src/domain/models/lite/text-response.ts'
import type { TaskResult } from '../../../src/domain/models/lite/suite.ts'
import { addDays } from '../../../src/domain/time.ts'
import { makeLiteSuite } from '../../../src/jobs/models/lite-suite.ts'
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
    const suite = makeLiteSuite(items.day, shell)
    const reply = text(`COMMAND: grep -rh '${items.clock.expected}' . | wc -l\nTIME: ${items.clock.expected}`)
    expect(await suite.grade('text', reply)).toEqual(await suite.grade('text', reply))
  })

  test('a suite gives no points for a written-out result, and part of them for a command that fails on spaces', async () => {
    const { day, shell: job, clock } = dayOf('search')
    const [, ext, mark] = /\*\.(\w+)' '(\w+:)'/.exec(job.solution) ?? []
    const suite = makeLiteSuite(day, shell)
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
    const suite = makeLiteSuite(day, shell)
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

describe('the example of docs/lite-suite.md', () => {
  const page = readFileSync(fileURLToPath(new URL('../../../docs/lite-suite.md', import.meta.url)), 'utf8')
  const items = drawItems('2026-11-21')

  test('the example shows the prompts of its day', () => {
    for (const { messages } of Object.values(items.prompts)) expect(page).toContain(messages[0]?.content)
  })

  test('the example shows the points of each response', async () => {
    const suite = makeLiteSuite('2026-11-21', shell)
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
