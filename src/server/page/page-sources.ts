import type { State, Clock, CallerSearch } from '../../domain/ports.ts'
import type { Agent } from '../agent/routes.ts'
import type { ProvedSnapshots } from '../feed/proved-snapshots.ts'
import type { ServedRecommendation } from '../models/routes.ts'
import type { ProvedPublications } from '../year/proved-publications.ts'
import type { ReadYearLists } from '../year/year-lists.ts'
import type { ShownLog } from './year/proof-panel.ts'

/** The sources of all panels. */
export interface PageSources {
  clock: Clock
  snapshots: ProvedSnapshots
  publications: Pick<ProvedPublications, 'entries' | 'publication'>
  lists: ReadYearLists
  log: () => Promise<ShownLog>
  recommendation: ServedRecommendation
  agent: Pick<Agent, 'config'> & { status: Agent['lastKnownStatus'] }
  audits: Pick<State['audits'], 'newest'>
  search: Pick<CallerSearch, 'itemTrend' | 'search' | 'similar'>
}
