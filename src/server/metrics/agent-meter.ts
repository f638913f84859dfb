import { Registry } from 'prom-client'
import type { Admission } from '../../domain/agent/bounds.ts'
import type { FailureCode } from '../../domain/agent/model-call.ts'
import type { TurnOutcome } from '../agent/answer-stream.ts'
import { counter, gauge, histogram } from './catalogue.ts'
import type { Meter } from './instruments.ts'

const BUCKETS_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 90]

/** A finished turn of the chat. */
interface EndedTurn {
  outcome: TurnOutcome
  /** Null if it ended before the source was known. */
  source: 'cache' | 'shared' | 'own' | null
  firstDeltaMs: number | null
  durationMs: number
  /** Charged cost, in millionths of a US dollar. */
  costMicroUsd: number
}

/** Counts turns of the chat. */
export interface AgentMeter extends Meter {
  recordAdmission(admission: Admission): void
  /** Counts a turn whose stream has started. */
  recordStart(): void
  recordEnd(turn: EndedTurn): void
}

const OUTCOMES = ['normal', 'degraded', 'ip', 'session', 'global-budget']
const SOURCES = ['cache', 'shared', 'own']

type BoundedCode = Exclude<FailureCode['code'], `http_${number}`> | 'http_4xx' | 'http_5xx'

/** All codes; the compiler reports a missing one. */
const CODES: Readonly<Record<BoundedCode, true>> = {
  first_event: true,
  idle: true,
  total: true,
  connect: true,
  http_4xx: true,
  http_5xx: true,
  truncated: true,
  invalid_stream: true,
  failed: true,
  incomplete: true,
  empty: true,
}

const ENDINGS = [
  ...['done', 'gone'].map((terminal) => ({ terminal, code: '' })),
  ...Object.keys(CODES).map((code) => ({ terminal: 'error', code })),
]

export function agentMeter(): AgentMeter {
  const registry = new Registry()
  const open = gauge(registry, 'dash_chat_streams_open')
  const outcomes = OUTCOMES.map((outcome) => ({ outcome }))
  const admissions = counter(registry, 'dash_chat_admissions_total', outcomes)
  const sources = SOURCES.map((source) => ({ source }))
  const answers = counter(registry, 'dash_chat_answers_total', sources)
  const turns = counter(registry, 'dash_chat_turns_total', ENDINGS)
  const durations = histogram(registry, 'dash_chat_turn_duration_seconds', BUCKETS_SECONDS)
  const firstTexts = histogram(registry, 'dash_chat_first_text_seconds', BUCKETS_SECONDS)
  const cost = counter(registry, 'dash_chat_cost_usd_total')
  return {
    recordAdmission(admission) {
      admissions.inc({
        outcome: admission.admitted ? (admission.degraded ? 'degraded' : 'normal') : admission.scope,
      })
    },
    recordStart: () => open.inc(),
    recordEnd({ outcome, source, firstDeltaMs, durationMs, costMicroUsd }) {
      open.dec()
      const terminal = outcome.kind
      turns.inc({ terminal, code: outcome.kind === 'error' ? boundedCode(outcome.code) : '' })
      durations.observe({ terminal }, durationMs / 1000)
      if (source !== null) answers.inc({ source })
      if (firstDeltaMs !== null) firstTexts.observe(firstDeltaMs / 1000)
      cost.inc(costMicroUsd / 1_000_000)
    },
    metrics: () => registry.metrics(),
  }
}

/** Replaces a provider's HTTP status by its class, which bounds the number of labels. */
function boundedCode(code: string): string {
  return code.replace(/^http_(\d)\d*$/, 'http_$1xx')
}
