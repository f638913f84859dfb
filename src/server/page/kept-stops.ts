import { stopsOf } from '../../domain/year/calendar.ts'
import type { Stop } from '../../domain/year/calendar.ts'
import type { ProvedLedger } from '../../domain/year/chain.ts'
import type { LedgerEntry } from '../../domain/year/ledger.ts'

/** Makes what gives the stops of a proved ledger, made once for each. */
export function keptStops(): (proved: ProvedLedger) => readonly Stop[] {
  const kept = new WeakMap<readonly LedgerEntry[], readonly Stop[]>()
  return (proved) => {
    const stops = kept.get(proved.entries) ?? stopsOf(proved)
    kept.set(proved.entries, stops)
    return stops
  }
}
