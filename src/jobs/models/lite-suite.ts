import { parseTextResponse } from '../../domain/models/lite/text-response.ts'
import { gradeClock } from '../../domain/models/lite/clock-task.ts'
import { gradeFiles } from '../../domain/models/lite/file-task.ts'
import { drawItems } from '../../domain/models/lite/items.ts'
import type { LiteItems } from '../../domain/models/lite/items.ts'
import { SHELL_LIMITS, gradeShell } from '../../domain/models/lite/shell-task.ts'
import type { ShellRuns } from '../../domain/models/lite/shell-task.ts'
import { taskResult } from '../../domain/models/lite/suite.ts'
import type { LiteSuite } from '../../domain/models/lite/suite.ts'
import type { Shell } from '../../domain/ports.ts'
import type { Day } from '../../domain/time.ts'

/**
 * Creates the suite of a UTC day (docs/lite-suite.md).
 *
 * @param day must be a valid day
 * @param shell runs the commands; must stay open as long as the suite grades
 */
export function makeLiteSuite(day: Day, shell: Shell): LiteSuite {
  const items = drawItems(day)
  return {
    day,
    prompts: items.prompts,
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
