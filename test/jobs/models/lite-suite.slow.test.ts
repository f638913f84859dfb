import { describe, expect, test } from 'vitest'
import { drawItems, makeLiteSuite } from '../../../src/jobs/models/lite-suite.ts'
import { SHELL_CASES } from '../../../src/domain/models/lite/shell-jobs.ts'
import { gradeShell, responseFollowsFormat } from '../../../src/domain/models/lite/text-tasks.ts'
import type { ShellRuns } from '../../../src/domain/models/lite/text-tasks.ts'
import type { LiteKind, ShellRun } from '../../../src/domain/models/lite/suite.ts'
import type { ShellJob } from '../../../src/domain/models/lite/shell-jobs.ts'
import { addDays } from '../../../src/domain/time.ts'
import { solutions, worthlessResponses } from './lite-responses.ts'
import { sandbox, inRealBash } from '../../adapters/sandbox/lite-shell.ts'

const shell = await sandbox()

test('a suite gives its own solutions all points and worthless responses none, on 12 days in a row', async () => {
  for (let index = 0; index < 12; index += 1) {
    const day = addDays('2026-11-01', index)
    const suite = makeLiteSuite(day, shell)
    expect(suite.prompts.text.tools).toEqual([])
    const items = drawItems(day)
    const solved = solutions(items)
    for (const [kind, responses] of Object.entries(worthlessResponses(items)))
      for (const [name, response] of Object.entries(responses))
        for (const { points } of await suite.grade(kind as LiteKind, response)) expect(points, name).toBe(0)
    expect(await suite.grade('tool', solved.tool)).toMatchObject([{ points: 350 }])
    expect(await suite.grade('text', solved.text)).toMatchObject([{ points: 300 }, { points: 100 }])
    expect(responseFollowsFormat('tool', solved.tool)).toBe(true)
    expect(responseFollowsFormat('text', solved.text)).toBe(true)
  }
})

const jobsOf = (days: number): ShellJob[] =>
  Array.from({ length: days }, (_, index) => drawItems(addDays('2026-01-01', index)).shell)

const asRuns = (runs: readonly ShellRun[]): ShellRuns =>
  Object.fromEntries(SHELL_CASES.map((name, index) => [name, runs[index]])) as unknown as ShellRuns

async function pointsInRealBash(each: readonly { job: ShellJob; command: string }[]): Promise<number[]> {
  const runs = await inRealBash(
    each.flatMap(({ job, command }) =>
      SHELL_CASES.map((name) => ({ command, files: job.cases[name].files })),
    ),
  )
  const size = SHELL_CASES.length
  return each.map(
    ({ job, command }, index) =>
      gradeShell(job, command, asRuns(runs.slice(index * size, (index + 1) * size))).points,
  )
}

describe('the shell jobs in a real bash', () => {
  test('the solutions solve the shell jobs in a real bash, on 60 days', { timeout: 120_000 }, async () => {
    const each = jobsOf(60).map((job) => ({ job, command: job.solution }))
    expect(await pointsInRealBash(each)).toEqual(each.map(() => 300))
  })
})
