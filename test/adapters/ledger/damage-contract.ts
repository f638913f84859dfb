import { describe, expect, test } from 'vitest'
import { proveLedger } from '../../../src/domain/year/check.ts'
import { headAt, sampleLedger } from '../../domain/year/ledger-rows.ts'
import { DAMAGED } from '../../support/refusals.ts'
import { dropTriggers, dropTypes, fill } from './open-ledger.ts'
import type { LedgerOpener, OpenLedger } from './open-ledger.ts'

/** Bytes and values a damaged disk or a careless hand may leave in the cells of the ledger. */

/** A filled ledger without its append-only triggers. */
async function fillNew(open: LedgerOpener): Promise<OpenLedger> {
  const opened = await open()
  await fill(opened, sampleLedger())
  await dropTriggers(opened.raw)
  return opened
}

const DAMAGED_TEXTS: Record<string, string> = {
  'a byte that is not UTF-8': "CAST(x'c328' AS TEXT)",
  'a text cut inside a character': "CAST(x'e282' AS TEXT)",
  'half of a surrogate pair': "CAST(x'eda080' AS TEXT)",
  'a NUL at its end': "leaf || CAST(x'00' AS TEXT)",
  'nothing but a NUL': "CAST(x'00' AS TEXT)",
}

const ENTRY_TEXTS = ['as_of_day', 'publication_id', 'sha256', 'leaf', 'previous_leaf', 'envelope_kind']
const TEXT_COLUMNS = [
  ...ENTRY_TEXTS.map((column) => ['entries', column, 3] as const),
  ['legacy_publications', 'publication_id', 2] as const,
]

const read = async (opened: OpenLedger): Promise<unknown> => {
  // Through a new connection, as a server that starts now would read it.
  const contents = await opened.another().ledger.read()
  return proveLedger(contents, headAt(sampleLedger().rows, 7))
}

/** Contract of every ledger engine: damage is refused and never ends the process. */
export function damageContract(engine: string, open: LedgerOpener): void {
  const filled = (): Promise<OpenLedger> => fillNew(open)

  describe(`a damaged ledger in ${engine}`, () => {
    test.each(Object.entries(DAMAGED_TEXTS))(
      'the ledger is refused for %s in any text of a row',
      async (_what, text) => {
        const opened = await filled()
        for (const [table, column, row] of TEXT_COLUMNS) {
          const set = `UPDATE ${table} SET ${column} =`
          const sql = `SELECT ${column} AS cell FROM ${table} WHERE rowid = ${row}`
          const original = (await opened.raw.execute(sql)).rows[0]?.['cell'] ?? null
          await opened.raw.execute(`${set} ${text.replace('leaf', column)} WHERE rowid = ${row}`)
          await expect(read(opened), column).rejects.toMatchObject(DAMAGED)
          await opened.raw.execute({ sql: `${set} ? WHERE rowid = ${row}`, args: [original] })
          await expect(read(opened), column).resolves.toBeDefined()
        }
      },
    )

    test.each([
      ['a text where a number belongs', 'published_at', "'1772410200000'"],
      ['a fraction', 'recorded_at', '1.5'],
      ['a number too large to be exact', 'generated_at', '9007199254740993'],
      ['a number where a text belongs', 'sha256', '12'],
      ['bytes that are binary JSON', 'window_end', "x'01'"],
      ['nothing where something belongs', 'leaf', 'NULL'],
    ])('the ledger is refused for %s', async (_what, column, value) => {
      const opened = await filled()
      await dropTypes(opened.raw, 'entries')
      await expect(read(opened)).resolves.toBeDefined()
      await opened.raw.execute(`UPDATE entries SET ${column} = ${value} WHERE seq = 3`)
      await expect(read(opened)).rejects.toMatchObject(DAMAGED)
    })

    test.each([
      ['the table of entries is gone', 'DROP TABLE entries'],
      ['the legacy table is gone', 'DROP TABLE legacy_publications'],
      ['a column is gone', 'ALTER TABLE entries DROP COLUMN reason'],
    ])('the ledger is refused if %s', async (_what, sql) => {
      const opened = await filled()
      await opened.raw.executeMultiple(sql)
      await expect(read(opened)).rejects.toMatchObject(DAMAGED)
    })
  })
}
