import type { Day } from '../../time.ts'
import type { ModelReply } from '../reply.ts'

export const LITE_SUITE = 'lite-agent-eval-v1'

/** One chat request, without model and provider routing. */
export interface LiteQuestion {
  kind: 'tool' | 'text'
  messages: readonly { role: 'system' | 'user'; content: string }[]
  /** JSON Schema draft 7; none for kind `text`. */
  tools: readonly { name: string; description: string; parameters: Record<string, unknown> }[]
  maxTokens: number
}

/** As in `evalSummary.tasks`. */
export interface TaskResult {
  id: 'task_files_lite' | 'task_shell_command_lite' | 'babylonian_clock_lite'
  source: string
  points: number
  maxPoints: number
  score: number
  status: 'passed' | 'partial' | 'failed' | 'http_timeout_or_error'
  details: Readonly<Record<string, unknown>>
}

/** The suite of one UTC day. */
export interface LiteSuite {
  day: Day
  questions: { tool: LiteQuestion; text: LiteQuestion }
  gradeTool(reply: ModelReply): Promise<TaskResult[]>
  gradeText(reply: ModelReply): Promise<TaskResult[]>
  unanswered(kind: 'tool' | 'text', why: Readonly<Record<string, unknown>>): TaskResult[]
  answeredAsAsked(kind: 'tool' | 'text', reply: ModelReply): boolean
}
