import type { Archive, Ledger, YearReader } from '../../domain/ports.ts'
import { proveLedger } from '../../domain/year/chain.ts'

/** Publishers commit once a day, so a reading that keeps being overtaken means something else is wrong. */
const READINGS = 5

/**
 * Reads and proves both ledgers against the newest head. The head is read first: a commit in between leaves the
 * ledger one entry ahead, which is sound. Several commits in between would look like lost heads, so a reading that
 * does not hold counts only if the head is still the same afterwards.
 */
export function yearReader(ledger: Pick<Ledger, 'read'>, archive: Pick<Archive, 'newestHead'>): YearReader {
  return {
    async read() {
      let head = await archive.newestHead()
      for (let reading = 1; ; reading += 1) {
        const contents = await ledger.read()
        // Reading and proving ten years take some twenty milliseconds each: a server must get to other work between.
        await new Promise((resolve) => setImmediate(resolve))
        try {
          return { proved: proveLedger(contents, head), contents, head }
        } catch (error) {
          const newest = await archive.newestHead()
          if (newest?.seq === head?.seq || reading === READINGS) throw error
          head = newest
        }
      }
    },
  }
}
