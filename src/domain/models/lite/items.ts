import type { Day } from '../../time.ts'
import type { ModelReply, LiteQuestion } from './suite.ts'
import { drawClock } from './clock-task.ts'
import type { ClockItem } from './clock-task.ts'
import { drawsFrom } from './grade.ts'
import { drawFiles, solveFiles } from './file-task.ts'
import type { FilesItem } from './file-task.ts'
import { drawShell, textQuestion } from './shell-task.ts'
import type { ShellJob } from './shell-jobs.ts'
import { LITE_SUITE } from './suite.ts'

/** Everything that is asked on one day. */
export interface LiteItems {
  day: Day
  files: FilesItem
  shell: ShellJob
  clock: ClockItem
  questions: { tool: LiteQuestion; text: LiteQuestion }
}

/** The items of a UTC day: a function of the day alone, so that every model gets the same, and anyone can make them. */
export function drawItems(day: Day): LiteItems {
  const draws = (task: string): ReturnType<typeof drawsFrom> => drawsFrom(`${LITE_SUITE}|${day}|${task}`)
  const files = drawFiles(draws('files'))
  const shell = drawShell(draws('shell'))
  const clock = drawClock(draws('clock'))
  return { day, files, shell, clock, questions: { tool: files.question, text: textQuestion(shell, clock) } }
}

/** The replies that earn every point. */
export function solutions({ files, shell, clock }: LiteItems): { tool: ModelReply; text: ModelReply } {
  return { tool: solveFiles(files), text: said(`COMMAND: ${shell.solution}\nTIME: ${clock.expected}`) }
}

/** A reply that must earn nothing, and what it is. */
export interface WorthlessReply {
  name: string
  reply: ModelReply
}

/** Commands that do nothing of the job and that no sandbox may be able to run to the end. */
const UNJUDGED = {
  'a step into a gap alone': 'sort -R nothing',
  'waiting for nothing': 'tail -f x',
  'removing everything before a gap': 'rm -rf -- *; sort -z',
} as const

/**
 * Answers without any work in them: nothing, an echo, noise, another question's solution, the shown result, and commands
 * that only do what cannot be judged.
 */
export function worthlessReplies(items: LiteItems): { tool: WorthlessReply[]; text: WorthlessReply[] } {
  const { day, files, shell } = items
  const prompt = ({ messages }: LiteQuestion): string => messages.map(({ content }) => content).join('\n')
  const noise = drawsFrom(`${LITE_SUITE}|${day}|noise`)
  // Longer than any tool's name: by chance a short word is one, and its command then no noise.
  const words = (): string => Array.from({ length: 8 }, () => noise.word(noise.integer(11, 14))).join(' ')
  const solved = solutions(items)
  const asText = JSON.stringify(solved.tool.toolCalls)
  const both = [
    { name: 'an empty answer', reply: said('') },
    { name: 'an echo of the tool question', reply: said(prompt(items.questions.tool)) },
    { name: 'an echo of the text question', reply: said(prompt(items.questions.text)) },
    { name: 'noise', reply: said(words()) },
    { name: 'the calls as text', reply: said(asText) },
  ]
  const prints = (shell.cases.shown.prints ?? []).map((line) => `'${line}'`).join(' ')
  return {
    tool: [
      ...both,
      { name: 'the solution of the text question', reply: solved.text },
      { name: 'calls with noise', reply: calling('write_file', { path: noise.word(6), content: words() }) },
      {
        name: 'an echo in a call',
        reply: calling('write_file', { path: 'a.txt', content: prompt(files.question) }),
      },
    ],
    text: [
      ...both,
      { name: 'the solution of the tool question', reply: solved.tool },
      { name: 'noise in the right form', reply: said(`COMMAND: ${words()}\nTIME: ${words()}`) },
      { name: 'the shown result', reply: said(`COMMAND: printf '%s\\n' ${prints}\nTIME: 00:00:00`) },
      { name: 'a command that does nothing', reply: said('COMMAND: true\nTIME: 99:99:99') },
      ...Object.entries(UNJUDGED).map(([name, command]) => ({
        name,
        reply: said(`COMMAND: ${command}\nTIME: 99:99:99`),
      })),
    ],
  }
}

function said(text: string): ModelReply {
  return { text, toolCalls: [], finishReason: 'stop' }
}

function calling(name: string, values: Record<string, string>): ModelReply {
  return { text: '', toolCalls: [{ name, arguments: JSON.stringify(values) }], finishReason: 'tool_calls' }
}
