import type { Day } from '../../time.ts'

/** Name of the suite, the form of its summaries, and part of every day's seed. */
export const LITE_SUITE = 'lite-agent-eval-v1'

/** Refusals of the maker of a day's suite: an item that its own solution does not solve, or that junk does. */
export type LiteRefusal = 'lite_suite_refused'

/** Which of the two chat requests a question goes out with. */
export type LiteKind = 'tool' | 'text'

/** One chat request, without model and routing. */
export interface LiteQuestion {
  kind: LiteKind
  messages: readonly { role: 'system' | 'user'; content: string }[]
  /** `parameters` is JSON Schema draft 7; empty for kind `text`. */
  tools: readonly { name: string; description: string; parameters: Record<string, unknown> }[]
  /** Tokens of the whole answer, reasoning included. */
  maxTokens: number
}

export type LiteTaskId = 'task_files_lite' | 'task_shell_command_lite' | 'babylonian_clock_lite'
export type TaskStatus = 'passed' | 'partial' | 'failed' | 'http_timeout_or_error'

/** What one task of the suite came to (docs/lite-suite.md). */
export interface TaskResult {
  id: LiteTaskId
  /** Where the item comes from. */
  source: string
  /** Integer, 0 to `maxPoints`. */
  points: number
  maxPoints: number
  /** `points / maxPoints`, three decimals. */
  score: number
  status: TaskStatus
  details: Readonly<Record<string, unknown>>
}

/** The suite of one UTC day, tested against its own solutions before anyone gets it. */
export interface LiteSuite {
  day: Day
  questions: { tool: LiteQuestion; text: LiteQuestion }
  /** The files task. */
  gradeTool(reply: ModelReply): Promise<TaskResult[]>
  /** The shell command and the clock. */
  gradeText(reply: ModelReply): Promise<TaskResult[]>
  /** The tasks of a question that got no answer; `why` becomes their details. */
  unanswered(kind: LiteKind, why: Readonly<Record<string, unknown>>): TaskResult[]
  /** Whether a reply has the form that was asked for, whatever it says. */
  answeredAsAsked(kind: LiteKind, reply: ModelReply): boolean
}

/** What a model answered to one question. */
export interface ModelReply {
  /** The content; '' when there is none. */
  text: string
  /** The calls in the order they came; `arguments` verbatim as sent, JSON text that may be broken. */
  toolCalls: readonly { name: string; arguments: string }[]
  finishReason: string | null
}

/** Content by path: relative, with `/`. A map, because a model chooses names like `__proto__`. */
export type ShellFiles = ReadonlyMap<string, string>

export interface ShellLimits {
  /** Wall time of one command, and the time that its `sleep`s may add up to. */
  timeMs: number
  /** Standard output and standard error together, and the files it leaves. */
  outputBytes: number
}

/**
 * How a command ended. `not-executable`: no shell would run it (syntax, or a command that exists nowhere).
 * `unsupported`: a real shell might have run it, the sandbox cannot.
 */
export type ShellOutcome = 'ran' | 'not-executable' | 'unsupported' | 'timeout' | 'too-much-output'

export interface ShellRun {
  outcome: ShellOutcome
  /** Empty unless `ran`. */
  stdout: string
  stderr: string
  /** null unless `ran`. */
  exitCode: number | null
  /** Every regular file below the working folder afterwards; empty unless `ran`. */
  files: ShellFiles
  /** What the sandbox could not do or would not allow, in one line; null when `ran`. */
  why: string | null
  /** Real tools that the command called and the sandbox does not have. */
  missingTools: readonly string[]
}
