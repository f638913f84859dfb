import type { CatalogueModel } from '../../../src/domain/models/catalogue.ts'
import { toolUseOf } from '../../../src/domain/models/evaluation.ts'
import type { LiteEvaluation } from '../../../src/domain/models/evaluation.ts'
import type { TaskResult } from '../../../src/domain/models/lite/suite.ts'
import type { Candidate } from '../../../src/domain/models/ranking.ts'
import { recommend } from '../../../src/domain/models/recommend.ts'
import type { RunFacts } from '../../../src/domain/models/recommend.ts'
import type { StoredRun } from '../../../src/domain/models/schema.ts'
import type { Instant } from '../../../src/domain/time.ts'

/** Time of the runs of the tests. */
export const RUN_AT: Instant = Date.UTC(2026, 7, 22, 3, 17, 1, 124)

/** A row of the routing service's catalogue. */
export function catalogueRow(id: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id,
    name: `Name of ${id}`,
    created: 1_780_000_000,
    context_length: 131_072,
    architecture: { modality: 'text->text', input_modalities: ['text'], output_modalities: ['text'] },
    pricing: { prompt: '0', completion: '0' },
    top_provider: { context_length: 131_072, max_completion_tokens: 32_768 },
    supported_parameters: ['tools', 'tool_choice', 'reasoning', 'seed'],
    expiration_date: null,
    description: 'A model made for the tests.',
    ...changes,
  }
}

/** An eligible model, as it was parsed. */
export function catalogueModel(id: string, changes: Partial<CatalogueModel> = {}): CatalogueModel {
  return {
    id,
    name: `Name of ${id}`,
    createdAt: Date.UTC(2026, 4, 28),
    contextLength: 131_072,
    maxCompletionTokens: 32_768,
    prices: { prompt: 0, completion: 0 },
    inputModalities: ['text'],
    outputModalities: ['text'],
    supportedParameters: ['tools', 'tool_choice', 'reasoning', 'seed'],
    expirationDay: null,
    expirationUnreadable: false,
    description: '',
    isRouterOrAlias: false,
    ...changes,
  }
}

const MOST = { task_files_lite: 350, task_shell_command_lite: 300, babylonian_clock_lite: 100 } as const

export function task(id: TaskResult['id'], points: number, details: TaskResult['details'] = {}): TaskResult {
  const maxPoints = MOST[id]
  const status = points === maxPoints ? 'passed' : points === 0 ? 'failed' : 'partial'
  const score = Math.round((points / maxPoints) * 1000) / 1000
  return { id, source: 'made for the tests', points, maxPoints, score, status, details }
}

/** An evaluation with so many points of the files, the shell and the clock task. */
export function evaluation(
  updatedAt: Instant,
  [files, shell, clock]: readonly [number, number, number] = [350, 300, 100],
  usedTool: boolean | null = true,
): LiteEvaluation {
  return {
    updatedAt,
    tasks: [
      task('task_files_lite', files, usedTool === null ? {} : { usedTool }),
      task('task_shell_command_lite', shell, { command: 'ls' }),
      task('babylonian_clock_lite', clock, { expected: '02:12:48', received: '' }),
    ],
  }
}

export function candidate(id: string, changes: Partial<Candidate> = {}): Candidate {
  const { evaluation: counted = evaluation(RUN_AT) } = changes
  return {
    model: catalogueModel(id),
    health: { status: 'passed', latencyMs: 900, rateLimitKind: 'none', checkedAt: RUN_AT },
    evaluation: counted,
    toolUse: toolUseOf(counted),
    gone: false,
    failuresIn72h: 0,
    ...changes,
  }
}

/**
 * Four models: a perfect one, a talker that used no tool, one whose score is a day old, and one never evaluated.
 *
 * @param at when they were measured
 */
export function sampleCandidates(at: Instant = RUN_AT): Candidate[] {
  const passed = { status: 'passed', latencyMs: 900, rateLimitKind: 'none', checkedAt: at } as const
  return [
    candidate('maker/good:free', {
      model: catalogueModel('maker/good:free', {
        contextLength: 262_144,
        supportedParameters: [
          'tools',
          'tool_choice',
          'structured_outputs',
          'response_format',
          'reasoning',
          'seed',
          'stop',
        ],
      }),
      health: passed,
      evaluation: evaluation(at),
    }),
    candidate('maker/talker:free', { health: passed, evaluation: evaluation(at, [0, 300, 100], false) }),
    candidate('other/cached:free', {
      health: { status: 'http_429', latencyMs: null, rateLimitKind: 'model', checkedAt: at },
      evaluation: evaluation(at - 86_400_000, [220, 300, 0]),
      failuresIn72h: 2,
    }),
    candidate('third/new:free', {
      model: catalogueModel('third/new:free', { contextLength: 32_768, supportedParameters: ['stop'] }),
      health: { status: 'not_probed', latencyMs: null, rateLimitKind: 'none', checkedAt: null },
      evaluation: null,
    }),
  ]
}

function runFacts(changes: Partial<RunFacts> = {}): RunFacts {
  return {
    now: RUN_AT,
    rankingVersion: '2026-08-22.v1',
    refreshMode: 'fullEval',
    probeMode: 'active',
    liteEvalMode: 'active',
    baseUrl: 'https://openrouter.ai/api/v1',
    candidates: sampleCandidates(),
    rejections: [{ id: 'maker/guard:free', reason: 'guard_model' }],
    attemptedToday: 3,
    notes: [],
    previous: null,
    ...changes,
  }
}

export function sampleRun(changes: Partial<RunFacts> = {}): StoredRun {
  return recommend(runFacts(changes))
}
