import { drawsFrom } from '../../domain/models/lite/draw.ts'
import type { Draw } from '../../domain/models/lite/draw.ts'
import { gradeFiles, drawFiles } from '../../domain/models/lite/file-task.ts'
import type { FilesItem } from '../../domain/models/lite/file-task.ts'
import { drawShellJob } from '../../domain/models/lite/shell-jobs.ts'
import type { ShellCase, ShellJob } from '../../domain/models/lite/shell-jobs.ts'
import { taskResult, LITE_SUITE } from '../../domain/models/lite/suite.ts'
import type { LiteSuite, LiteKind, LitePrompt, ShellRun } from '../../domain/models/lite/suite.ts'
import { parseTextResponse } from '../../domain/models/lite/text-tasks.ts'
import {
  gradeClock,
  SHELL_LIMITS,
  gradeShell,
  drawClock,
  textPrompt,
} from '../../domain/models/lite/text-tasks.ts'
import type { ShellRuns, ClockItem } from '../../domain/models/lite/text-tasks.ts'
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
  const run = ({ files }: ShellCase): Promise<ShellRun> => shell.run(command, files, SHELL_LIMITS)
  const { shown, other, awkward } = job.cases
  return { shown: await run(shown), other: await run(other), awkward: await run(awkward) }
}

export interface LiteItems {
  day: Day
  files: FilesItem
  shell: ShellJob
  clock: ClockItem
  prompts: Record<LiteKind, LitePrompt>
}

/**
 * Draws the items of a UTC day. They depend on the day alone, so that every model gets the same, and anyone can
 * reproduce them.
 */
export function drawItems(day: Day): LiteItems {
  const files = drawFiles(drawsFor(day, 'files'))
  const shell = drawShellJob(drawsFor(day, 'shell'))
  const clock = drawClock(drawsFor(day, 'clock'))
  return { day, files, shell, clock, prompts: { tool: files.prompt, text: textPrompt(shell, clock) } }
}

function drawsFor(day: Day, task: string): Draw {
  return drawsFrom(`${LITE_SUITE}|${day}|${task}`)
}
