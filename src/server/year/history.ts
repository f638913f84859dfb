import type { Clock } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { formatInstant } from '../../domain/time.ts'
import { parseHistoryQuery } from '../../domain/year/history.ts'
import type { HistoryRefusal } from '../../domain/year/refusals.ts'
import { respondPublished } from '../published.ts'
import { route } from '../route.ts'
import type { Route } from '../route.ts'
import { historyContract } from './contract.ts'
import type { ProvedPublications } from './proved-publications.ts'

/** `GET /api/feed/history`: parse the question, prove the answer, serve its bytes as they were archived. */
export function history(publications: ProvedPublications, clock: Clock): Route {
  return route(historyContract, async (event) => {
    const { at } = parseHistoryQuery(event.url.searchParams, clock())
    const publication = await publications.latestAt(at)
    if (!publication) throw new Refusal<HistoryRefusal>('year_history_not_found')
    const headers = { ...historyContract.headers, 'x-year-history-requested-at': formatInstant(at) }
    return respondPublished(event, headers, publication.published)
  })
}
