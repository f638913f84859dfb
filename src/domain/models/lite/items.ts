import type { Day } from '../../time.ts'
import { drawClock } from './clock-task.ts'
import type { ClockItem } from './clock-task.ts'
import { drawsFrom } from './draw.ts'
import type { Draw } from './draw.ts'
import { drawFiles } from './file-task.ts'
import type { FilesItem } from './file-task.ts'
import { drawShellJob } from './shell-jobs.ts'
import type { ShellJob } from './shell-jobs.ts'
import { textPrompt } from './shell-task.ts'
import { LITE_SUITE } from './suite.ts'
import type { LiteKind, LitePrompt } from './suite.ts'

/** All tasks and prompts of a day. */
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
