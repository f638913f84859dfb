import type { Day } from '../../time.ts'
import { drawClock } from './clock-task.ts'
import type { ClockItem } from './clock-task.ts'
import { drawsFrom } from './draw.ts'
import type { Draw } from './draw.ts'
import { drawFiles, solveFiles } from './file-task.ts'
import type { FilesItem } from './file-task.ts'
import { drawShellJob } from './shell-jobs.ts'
import type { ShellJob } from './shell-jobs.ts'
import { textQuestion } from './shell-task.ts'
import { LITE_SUITE } from './suite.ts'
import type { LiteKind, LiteQuestion, ModelResponse } from './suite.ts'

/** Everything that is asked on one day. */
export interface LiteItems {
  day: Day
  files: FilesItem
  shell: ShellJob
  clock: ClockItem
  questions: Record<LiteKind, LiteQuestion>
}

/** The items of a UTC day: a function of the day alone, so that every model gets the same, and anyone can make them. */
export function drawItems(day: Day): LiteItems {
  const files = drawFiles(drawsOf(day, 'files'))
  const shell = drawShellJob(drawsOf(day, 'shell'))
  const clock = drawClock(drawsOf(day, 'clock'))
  return { day, files, shell, clock, questions: { tool: files.question, text: textQuestion(shell, clock) } }
}

function drawsOf(day: Day, task: string): Draw {
  return drawsFrom(`${LITE_SUITE}|${day}|${task}`)
}

/** The replies that earn every point. */
export function solutions({ files, shell, clock }: LiteItems): Record<LiteKind, ModelResponse> {
  return { tool: solveFiles(files), text: said(`COMMAND: ${shell.solution}\nTIME: ${clock.expected}`) }
}

/** Replies by a description of each. */
type NamedReplies = Record<string, ModelResponse>

/**
 * Answers without any work in them: nothing, an echo, noise, another question's solution, the shown result, and commands
 * that only do what cannot be judged.
 */
export function worthlessResponses(items: LiteItems): Record<LiteKind, NamedReplies> {
  const { day, shell, questions } = items
  const prompt = ({ messages }: LiteQuestion): string => messages.map(({ content }) => content).join('\n')
  const noise = drawsOf(day, 'noise')
  // Longer than any tool's name: by chance a short word is one, and its command then no noise.
  const words = (): string => Array.from({ length: 8 }, () => noise.word(noise.integer(11, 14))).join(' ')
  const solved = solutions(items)
  const both: NamedReplies = {
    'an empty answer': said(''),
    'an echo of the tool question': said(prompt(questions.tool)),
    'an echo of the text question': said(prompt(questions.text)),
    noise: said(words()),
    'the calls as text': said(JSON.stringify(solved.tool.toolCalls)),
  }
  const prints = (shell.cases.shown.prints ?? []).map((line) => `'${line}'`).join(' ')
  const tool: NamedReplies = {
    ...both,
    'the solution of the text question': solved.text,
    'calls with noise': writing(noise.word(6), words()),
    'an echo in a call': writing('a.txt', prompt(questions.tool)),
  }
  const text: NamedReplies = {
    ...both,
    'the solution of the tool question': solved.tool,
    'noise in the right form': said(`COMMAND: ${words()}\nTIME: ${words()}`),
    'the shown result': said(`COMMAND: printf '%s\\n' ${prints}\nTIME: 00:00:00`),
    'a command that does nothing': said('COMMAND: true\nTIME: 99:99:99'),
    // Nothing of the job, and no sandbox may be able to run them to the end.
    'a step into a gap alone': said('COMMAND: sort -R nothing\nTIME: 99:99:99'),
    'waiting for nothing': said('COMMAND: tail -f x\nTIME: 99:99:99'),
    'removing everything before a gap': said('COMMAND: rm -rf -- *; sort -z\nTIME: 99:99:99'),
  }
  return { tool, text }
}

function said(text: string): ModelResponse {
  return { text, toolCalls: [], finishReason: 'stop' }
}

function writing(path: string, content: string): ModelResponse {
  const call = { name: 'write_file', arguments: JSON.stringify({ path, content }) }
  return { text: '', toolCalls: [call], finishReason: 'tool_calls' }
}
