import { Refusal } from '../../domain/refusal.ts'
import type { HistoryRefusal } from '../../domain/year/refusals.ts'
import { respondPublished } from '../published.ts'
import { route } from '../route.ts'
import type { Route } from '../route.ts'
import { headContract, indexContract, ledgerContract, legacyLedgerContract } from './ledger-contracts.ts'
import type { ProvedPublications } from './proved-publications.ts'

/** The ledgers and the newest head, proved and then published as the texts anyone can hash (docs/auditing.md). */
export function ledgerRoutes(publications: ProvedPublications): Route[] {
  return [
    route(ledgerContract, async (event) =>
      respondPublished(event, ledgerContract.headers, (await publications.ledger()).entries()),
    ),
    route(legacyLedgerContract, async (event) =>
      respondPublished(event, legacyLedgerContract.headers, (await publications.ledger()).legacy()),
    ),
    route(headContract, async (event) => {
      const head = (await publications.ledger()).head()
      if (!head) throw new Refusal<HistoryRefusal>('year_history_not_found')
      return respondPublished(event, headContract.headers, head)
    }),
    route(indexContract, async (event) =>
      respondPublished(event, indexContract.headers, (await publications.ledger()).index()),
    ),
  ]
}
