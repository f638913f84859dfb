import type { Suspicion } from '../domain/models/answer-class.ts'
import type { AttemptEnd } from '../domain/models/evaluation-ledger.ts'
import type { EvaluationLedger } from '../domain/ports.ts'
import type { QueuedCall } from './call-queue.ts'

/** An answer nobody can attribute, as it was settled. */
export interface Suspect {
  attempt: number
  end: AttemptEnd
  call: QueuedCall
  suspicion: Suspicion
  /** When its call started and when it was settled, by the clock that only goes forward. */
  startedAt: number
  now: number
}

/** Watches for answers that models of different vendors get with no reply in between. */
export interface Suspicions {
  /**
   * Notes one. Once models of two vendors agree, theirs are settled anew as what was suspected: not the models' own.
   *
   * @returns the others that are settled anew when they agree, else null
   */
  suspect(suspect: Suspect): Promise<Suspect[] | null>
  /** True while one stands that no reply has refuted. */
  standing(): boolean
  /** A reply to a call refutes what was suspected before that call started. */
  answered(startedAt: number): void
}

export function openSuspicions(evaluations: Pick<EvaluationLedger, 'settleAttempt'>): Suspicions {
  let standing: Suspect[] = []
  const settledAnew = new Set<number>()
  return {
    async suspect(suspect) {
      standing.push(suspect)
      const alike = standing.filter(({ suspicion }) => suspicion === suspect.suspicion)
      if (new Set(alike.map(({ call }) => call.vendor)).size < 2) return null
      const mistaken = alike.filter((each) => !settledAnew.has(each.attempt))
      for (const { attempt } of mistaken) settledAnew.add(attempt)
      for (const { attempt, end } of mistaken) {
        await evaluations.settleAttempt(attempt, { ...end, class: suspect.suspicion })
      }
      return mistaken.filter((each) => each !== suspect)
    },
    standing: () => standing.length > 0,
    answered(startedAt) {
      standing = standing.filter(({ now }) => now > startedAt)
    },
  }
}
