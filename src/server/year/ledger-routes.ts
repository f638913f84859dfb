import type { H3Event } from 'h3'
import { matchesEntityTag } from '../../domain/conditional.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { HistoryRefusal } from '../../domain/year/refusals.ts'
import { respond } from '../respond.ts'
import { route } from '../route.ts'
import type { Route } from '../route.ts'
import { headContract, ledgerContract, legacyLedgerContract } from './ledger-contracts.ts'
import type { ProvedPublications } from './proved-publications.ts'
import type { PublishedText } from './published-ledger.ts'

/** The ledgers and the newest head, proved and then published as the texts anyone can hash (docs/auditing.md). */
export function ledgerRoutes(publications: ProvedPublications): Route[] {
  return [
    route(ledgerContract, async (event) =>
      answer(event, ledgerContract, (await publications.ledger()).entries()),
    ),
    route(legacyLedgerContract, async (event) =>
      answer(event, legacyLedgerContract, (await publications.ledger()).legacy()),
    ),
    route(headContract, async (event) => {
      const head = (await publications.ledger()).head()
      if (!head) throw new Refusal<HistoryRefusal>('year_history_not_found')
      return answer(event, headContract, head)
    }),
  ]
}

function answer(
  event: H3Event,
  contract: { headers: Readonly<Record<string, string>> },
  published: PublishedText,
): Response {
  const headers = { ...contract.headers, ...published.headers }
  const unchanged = matchesEntityTag(event.req.headers.get('if-none-match'), published.etag)
  if (unchanged) return respond(event, 304, headers, null)
  return respond(event, 200, { ...headers, ...published.contentHeaders }, published.body)
}
