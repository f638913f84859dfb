import { Registry, collectDefaultMetrics } from 'prom-client'
import type { Admission } from '../../domain/agent/bounds.ts'
import type { FailureCode } from '../../domain/agent/model-call.ts'
import type { TurnOutcome } from '../agent/answer-stream.ts'
import { counter, gauge, histogram } from './catalogue.ts'

/** Metrics collected in this process. */
export interface Meter {
  /** In Prometheus' text format. */
  metrics(): Promise<string>
}

/** The metrics of the Node process, which are prom-client's. @param version release of dash */
export function processMeter(version: string): Meter {
  const register = new Registry()
  collectDefaultMetrics({ register })
  // Gauges must not be named as totals; those by type have the same values.
  for (const kind of ['handles', 'requests', 'resources'])
    register.removeSingleMetric(`nodejs_active_${kind}_total`)
  gauge(register, 'dash_build_info').set({ version, node: process.versions.node }, 1)
  return register
}

/** Bucket bounds, from a cached file to a chat answer. */
const HTTP_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90]

const METHODS = new Set(['GET', 'HEAD', 'POST', 'OPTIONS'])

/** A request whose response ended, or whose client disconnected before a response. */
interface EndedRequest {
  /** Template of the matched route; `none` if none matched. */
  route: string
  method: string | undefined
  status: number
  hasResponse: boolean
  durationMs: number
}

/** Counts requests and their durations. */
export interface RequestMeter extends Meter {
  /** Counts a request that has arrived. */
  recordStart(): void
  recordEnd(request: EndedRequest): void
}

export function requestMeter(): RequestMeter {
  const registry = new Registry()
  const requests = counter(registry, 'dash_http_requests_total')
  const durations = histogram(registry, 'dash_http_request_duration_seconds', HTTP_BUCKETS_SECONDS)
  const open = gauge(registry, 'dash_http_requests_open')
  const methodsByRoute = new Map<string, Set<string>>()
  return {
    recordStart: () => open.inc(),
    recordEnd({ route, method = '', status: code, hasResponse, durationMs }) {
      open.dec()
      const status = hasResponse ? `${Math.floor(code / 100)}xx` : 'left'
      const methodLabel = METHODS.has(method) ? method : 'other'
      const methods = methodsByRoute.get(route) ?? new Set()
      // Start the 5xx counter at 0: Prometheus sees no increase if it appears with its first error.
      if (!methods.has(methodLabel)) requests.inc({ route, method: methodLabel, status: '5xx' }, 0)
      methodsByRoute.set(route, methods.add(methodLabel))
      requests.inc({ route, method: methodLabel, status })
      durations.observe({ route, status }, durationMs / 1000)
    },
    metrics: () => registry.metrics(),
  }
}

const CHAT_BUCKETS_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 90]

interface EndedTurn {
  outcome: TurnOutcome
  /** Null if it ended before the source was known. */
  source: 'cache' | 'own' | null
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
const SOURCES = ['cache', 'own']

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
  const durations = histogram(registry, 'dash_chat_turn_duration_seconds', CHAT_BUCKETS_SECONDS)
  const firstTexts = histogram(registry, 'dash_chat_first_text_seconds', CHAT_BUCKETS_SECONDS)
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
