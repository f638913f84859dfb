import { readAnswer } from '../../domain/models/lite/answer.ts'
import { gradeClock } from '../../domain/models/lite/clock-task.ts'
import { gradeFiles } from '../../domain/models/lite/file-task.ts'
import { drawItems, solutions, worthlessResponses } from '../../domain/models/lite/items.ts'
import type { LiteItems } from '../../domain/models/lite/items.ts'
import { SHELL_LIMITS, gradeShell } from '../../domain/models/lite/shell-task.ts'
import type { ShellRuns } from '../../domain/models/lite/shell-task.ts'
import { cutText, taskResult } from '../../domain/models/lite/suite.ts'
import type { LiteRefusal, LiteSuite, TaskResult } from '../../domain/models/lite/suite.ts'
import type { Shell } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Day } from '../../domain/time.ts'

/**
 * The suite of one UTC day, after it has judged its own solutions and worthless replies (docs/lite-suite.md).
 *
 * @param day must be a real day
 * @param shell runs the commands; it is used by the suite's graders as long as they are used
 * @throws Refusal `lite_suite_refused` when a solution does not earn every point, or a worthless reply earns any
 */
export function makeLiteSuite(day: Day, shell: Shell): Promise<LiteSuite> {
  return provedSuite(drawItems(day), shell)
}

/** As {@link makeLiteSuite}, of items that were drawn before. */
export async function provedSuite(items: LiteItems, shell: Shell): Promise<LiteSuite> {
  const suite = suiteOf(items, shell)
  const solved = solutions(items)
  const worthless = worthlessResponses(items)
  for (const kind of ['tool', 'text'] as const) {
    for (const result of await suite.grade(kind, solved[kind])) {
      if (result.points < result.maxPoints || 'sandboxUnsupported' in result.details)
        throw refused(items.day, result, 'its own solution')
    }
    for (const [name, reply] of Object.entries(worthless[kind])) {
      const paid = (await suite.grade(kind, reply)).find(({ points }) => points > 0)
      if (paid) throw refused(items.day, paid, name)
    }
  }
  return suite
}

function suiteOf(items: LiteItems, shell: Shell): LiteSuite {
  const { day, questions } = items
  return {
    day,
    questions,
    async grade(kind, reply) {
      if (kind === 'tool') return [taskResult('task_files_lite', day, gradeFiles(items.files, reply))]
      const { command, time } = readAnswer(reply.text)
      const runs = command === null ? null : await runEverywhere(items, command, shell)
      return [
        taskResult('task_shell_command_lite', day, gradeShell(items.shell, command, runs)),
        taskResult('babylonian_clock_lite', day, gradeClock(items.clock, time)),
      ]
    },
  }
}

async function runEverywhere({ shell: job }: LiteItems, command: string, shell: Shell): Promise<ShellRuns> {
  const { shown, other, awkward } = job.cases
  return {
    shown: await shell.run(command, shown.files, SHELL_LIMITS),
    other: await shell.run(command, other.files, SHELL_LIMITS),
    awkward: await shell.run(command, awkward.files, SHELL_LIMITS),
  }
}

function refused(day: Day, result: TaskResult, whose: string): Refusal<LiteRefusal> {
  const { id, points, maxPoints, details } = result
  const found = cutText(JSON.stringify(details))
  return new Refusal(
    'lite_suite_refused',
    `${id} of ${day} gives ${whose} ${points} of ${maxPoints} points: ${found}`,
  )
}
