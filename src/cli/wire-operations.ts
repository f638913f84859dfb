import { openReach as reach } from '../adapters/http.ts'
import type { FeedFacts, LedgerFacts, StateFacts, Survey } from '../domain/survey.ts'
import type { Reach } from '../domain/ports.ts'
import type { Config } from './settings/config.ts'

/** A look waits no longer than this for whoever is writing. */
const BUSY = { nativeBusyMs: 1_000, retryMs: 5_000 }

/** Asks addresses whether they answer. Apart from wire.ts, so that a health check loads nothing else. */
export function openReach(): Reach & { close: () => Promise<void> } {
  return reach()
}

/** Looks at the databases, which nothing is changed in. */
export interface Surveys {
  ledger: () => Promise<Survey<LedgerFacts>>
  feed: () => Promise<Survey<FeedFacts>>
  state: () => Promise<Survey<StateFacts>>
}

/** The databases of a configuration; loaded when one is asked. */
export function openSurveys({ ledger, feed, state }: Config): Surveys {
  const survey = async () => (await import('../adapters/sqlite/untouched.ts')).surveyDatabase
  return {
    async ledger() {
      const { ledgerFacts } = await import('../adapters/ledger/auditor.ts')
      return (await survey())(ledger, 'ledger', BUSY, ledgerFacts)
    },
    async feed() {
      const { feedFacts } = await import('../adapters/feed/feed.ts')
      return (await survey())(feed, 'feed', BUSY, (reader) => feedFacts(reader, Date.now()))
    },
    async state() {
      const { stateFacts } = await import('../adapters/state/job-log.ts')
      return (await survey())(state, 'state', BUSY, stateFacts)
    },
  }
}
