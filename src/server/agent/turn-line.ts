import type { MicroUsd } from '../../domain/agent/money.ts'
import { costOfAnswer } from './answer.ts'
import type { Tally } from './answer.ts'
import type { Turn } from './admitted-turn.ts'
import type { Ending } from './ending.ts'

/** What is told of a turn in the log, beside its ending. */
export interface Facts {
  scope: 'site' | 'item' | null
  source: 'cache' | 'shared' | 'own' | null
  firstDeltaMs: number | null
  tally: Tally
  startedAt: number
}

interface TurnLine extends Record<string, unknown> {
  costMicroUsd: MicroUsd
  durationMs: number
}

/** Ids, counts and durations: nothing that anyone wrote, and nothing of who asked. */
export function lineOf(
  { admission, provider, stream, requestId, request }: Turn,
  ending: Ending,
  facts: Facts,
): TurnLine {
  const { tally, startedAt, firstDeltaMs, scope, source } = facts
  const { usage, rounds, calls, text, reserved } = tally
  return {
    requestId,
    turn: admission.turn,
    scope,
    sort: request.sort,
    messages: request.messages.length,
    source,
    degraded: admission.degraded || tally.degraded,
    terminal: ending.kind,
    ...(ending.kind === 'error' ? { error: ending.error, code: ending.code } : {}),
    ...(ending.kind === 'gone' ? { cut: stream.cut } : {}),
    rounds,
    calls,
    characters: text.length,
    usage,
    costMicroUsd: costOfAnswer(tally, provider.prices),
    reservedMicroUsd: reserved,
    firstDeltaMs: firstDeltaMs === null ? null : Math.round(firstDeltaMs),
    durationMs: Math.round(performance.now() - startedAt),
  }
}
