import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Prices } from '../../domain/agent/model-call.ts'
import { costOfAnswer } from './answer.ts'
import type { AnswerPart, Tally } from './answer.ts'
import type { AgentPorts } from './service.ts'
import { stopAfter } from './stop.ts'

/** An answer that is made for a turn. */
export interface OwnAnswer {
  /** The turn that pays for it. */
  turn: string
  /** Under which it may be kept; null: it may not. */
  key: string | null
  /** The model that key is of; an answer of another one is not kept under it. */
  model: string
  tally: Tally
  prices: Prices
}

export const OVERTIME = { error: 'timeout', code: 'total' } as const
export const BROKEN = { error: 'upstream_error', code: 'failed' } as const

/** An answer within the time of a turn, kept where it may be, and charged to the turn that began it on every way out. */
export async function* settledAnswer(
  ports: AgentPorts,
  { turn, key, model, tally, prices }: OwnAnswer,
  make: (signal: AbortSignal) => AsyncIterable<AnswerPart>,
  signal: AbortSignal,
): AsyncGenerator<AnswerPart, void> {
  const time = stopAfter(ports.settings.turnMs, signal)
  try {
    yield* make(time.signal)
    // What was said is with the sockets before the stores hold up this thread.
    await nextTurn()
    if (key !== null && tally.whole && tally.keepable && tally.model === model)
      await keep(ports, key, tally.text)
  } catch (error) {
    if (signal.aborted) throw error
    if (!time.timedOut) ports.log.error({ turn, err: error }, 'a chat answer failed')
    yield { kind: 'failed', failure: time.timedOut ? OVERTIME : BROKEN, last: true }
  } finally {
    time.cancel()
    await settle(ports, turn, costOfAnswer(tally, prices))
  }
}

async function keep({ cache, clock, log }: AgentPorts, key: string, text: string): Promise<void> {
  try {
    await cache.put(key, { text, storedAt: clock() })
  } catch (error) {
    // The answer is given; it is only made again next time.
    log.warn({ err: error }, 'a chat answer was not kept')
  }
}

/** Charges a turn. What cannot be written now is charged at what was reserved once the lease of the turn ends. */
export async function settle({ ledger, clock, log }: AgentPorts, turn: string, cost: number): Promise<void> {
  try {
    await ledger.settle(turn, cost, clock())
  } catch (error) {
    log.error({ turn, err: error }, 'a chat turn was not settled; the sweep settles it')
  }
}
