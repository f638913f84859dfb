import { rmSync } from 'node:fs'

import { consistentForgery, damage, ENTRY, headFile, objectFile, overwrite, publicationAt } from './damage.ts'
import type { Copy, Damage } from './damage.ts'
import { changeLedger } from './raw-ledger.ts'

/** Stores put back to where they once stood, one of them or both. */
export function rollbacks(): Damage[] {
  return [
    damage('roll-back of the ledger file by one entry', ['head_mismatch'], (copy) =>
      rollBackLedger(copy, ENTRY.previous),
    ),
    damage('roll-back of the ledger file by two entries', ['head_mismatch'], (copy) =>
      rollBackLedger(copy, ENTRY.beforePrevious),
    ),
    damage('roll-back of the ledger by deleting its newest entry', ['head_mismatch'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, [`DELETE FROM entries WHERE seq = ${ENTRY.newest}`]),
    ),
    damage('roll-back of the object store by one publication', ['object_missing'], (copy) =>
      rollBackObjects(copy, [ENTRY.newest]),
    ),
    damage('roll-back of the object store by two publications', ['head_mismatch'], (copy) =>
      rollBackObjects(copy, [ENTRY.previous, ENTRY.newest]),
    ),
    consistentForgery('roll-back of both stores by one publication', (copy) => {
      rollBackLedger(copy, ENTRY.previous)
      rollBackObjects(copy, [ENTRY.newest])
    }),
    consistentForgery('roll-back of both stores by two publications', (copy) => {
      rollBackLedger(copy, ENTRY.beforePrevious)
      rollBackObjects(copy, [ENTRY.previous, ENTRY.newest])
    }),
    consistentForgery('both stores emptied', ({ ledgerPath, objectsPath }) => {
      overwrite(ledgerPath, '')
      for (const area of ['sha256', 'heads']) rmSync(`${objectsPath}/${area}`, { recursive: true })
    }),
  ]
}

function rollBackLedger({ ledgerPath, sample }: Copy, seq: number): void {
  const older = sample.olderLedgers.get(seq)
  if (!older) throw new Error(`the sample kept no ledger of entry ${seq}`)
  overwrite(ledgerPath, older)
}

function rollBackObjects(copy: Copy, seqs: readonly number[]): void {
  for (const seq of seqs) {
    rmSync(objectFile(copy, publicationAt(copy, seq)))
    rmSync(headFile(copy, seq))
  }
}
