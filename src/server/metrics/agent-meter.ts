import type { Admission } from '../../domain/agent/bounds.ts'
import type { FailureCode } from '../../domain/agent/model-call.ts'
import { single } from './catalogue.ts'
import type { MetricFamily } from './catalogue.ts'
import type { Ending } from '../agent/event-stream.ts'
import { counter, histogram } from './instruments.ts'

const BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 90]

/** How a turn of the chat went. */
interface EndedTurn {
  ending: Ending
  /** null: it ended before that was known. */
  source: 'cache' | 'shared' | 'own' | null
  firstDeltaMs: number | null
  durationMs: number
  /** What it is charged, in millionths of a US dollar. */
  costMicroUsd: number
}

/** Counts turns of the chat. */
export interface AgentMeter {
  asked(admission: Admission): void
  /** An answer is being streamed. */
  streaming(): void
  ended(turn: EndedTurn): void
  families(): MetricFamily[]
}

const OUTCOMES = ['normal', 'degraded', 'ip', 'session', 'global-budget']
const SOURCES = ['cache', 'shared', 'own']

type BoundedCode = Exclude<FailureCode['code'], `http_${number}`> | 'http_4xx' | 'http_5xx'

/** Every code, or the compiler names the one that is missing. */
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

export function agentMeter(): AgentMeter {
  const admissions = counter(
    'dash_chat_admissions_total',
    OUTCOMES.map((outcome) => ({ outcome })),
  )
  const answers = counter(
    'dash_chat_answers_total',
    SOURCES.map((source) => ({ source })),
  )
  const turns = counter('dash_chat_turns_total', [
    ...['done', 'gone'].map((terminal) => ({ terminal, code: '' })),
    ...Object.keys(CODES).map((code) => ({ terminal: 'error', code })),
  ])
  const durations = histogram('dash_chat_turn_duration_seconds', BOUNDS)
  const firstTexts = histogram('dash_chat_first_text_seconds', BOUNDS)
  const cost = counter('dash_chat_cost_usd_total', [{}])
  let open = 0
  return {
    asked(admission) {
      admissions.add({
        outcome: admission.admitted ? (admission.degraded ? 'degraded' : 'normal') : admission.scope,
      })
    },
    streaming() {
      open += 1
    },
    ended({ ending, source, firstDeltaMs, durationMs, costMicroUsd }) {
      open -= 1
      const terminal = ending.kind
      turns.add({ terminal, code: ending.kind === 'error' ? boundedCode(ending.code) : '' })
      durations.observe({ terminal }, durationMs / 1000)
      if (source !== null) answers.add({ source })
      if (firstDeltaMs !== null) firstTexts.observe({}, firstDeltaMs / 1000)
      cost.add({}, costMicroUsd / 1_000_000)
    },
    families: () => [
      single('dash_chat_streams_open', open),
      ...[admissions, answers, turns, durations, firstTexts, cost].map((instrument) => instrument.family()),
    ],
  }
}

/** A provider's status is any number: its class is one of few. */
function boundedCode(code: string): string {
  return code.replace(/^http_(\d)\d*$/, 'http_$1xx')
}
