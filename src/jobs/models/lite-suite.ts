import { parseTextResponse } from '../../domain/models/lite/text-response.ts'
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
 * Creates the suite of a UTC day and verifies it with its own solutions and with worthless responses
 * (docs/lite-suite.md).
 *
 * @param day must be a valid day
 * @param shell runs the commands; must stay open as long as the suite grades
 * @throws Refusal `lite_suite_refused` when a solution does not earn all points, or a worthless response earns any
 */
export function makeLiteSuite(day: Day, shell: Shell): Promise<LiteSuite> {
  return verifiedSuite(drawItems(day), shell)
}

/** {@link makeLiteSuite} for given items. */
export async function verifiedSuite(items: LiteItems, shell: Shell): Promise<LiteSuite> {
  const suite = suiteOf(items, shell)
  const solutionOf = solutions(items)
  const worthless = worthlessResponses(items)
  for (const kind of ['tool', 'text'] as const) {
    for (const result of await suite.grade(kind, solutionOf[kind])) {
      if (result.points < result.maxPoints || 'sandboxUnsupported' in result.details)
        throw refused(items.day, result, 'its own solution')
    }
    for (const [name, response] of Object.entries(worthless[kind])) {
      const rewarded = (await suite.grade(kind, response)).find(({ points }) => points > 0)
      if (rewarded) throw refused(items.day, rewarded, name)
    }
  }
  return suite
}

function suiteOf(items: LiteItems, shell: Shell): LiteSuite {
  const { day, prompts } = items
  return {
    day,
    prompts,
    async grade(kind, response) {
      if (kind === 'tool') return [taskResult('task_files_lite', day, gradeFiles(items.files, response))]
      const { command, time } = parseTextResponse(response.text)
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

function refused(day: Day, result: TaskResult, responseName: string): Refusal<LiteRefusal> {
  const { id, points, maxPoints, details } = result
  const found = cutText(JSON.stringify(details))
  return new Refusal(
    'lite_suite_refused',
    `${id} of ${day} gives ${responseName} ${points} of ${maxPoints} points: ${found}`,
  )
}
