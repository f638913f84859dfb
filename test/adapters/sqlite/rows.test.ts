import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Client, InStatement } from '@libsql/client'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { selectJsonRows } from '../../../src/adapters/sqlite/rows.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { DAMAGED } from '../../support/refusals.ts'
import { rawClient } from './lock-holder.ts'

async function cells(): Promise<Client> {
  const client = rawClient(pathToFileURL(join(await temporaryFolder(), 'cells.db')).href)
  await client.execute('PRAGMA synchronous = OFF')
  await client.execute('CREATE TABLE cells (id INTEGER PRIMARY KEY, value TEXT, number INTEGER) STRICT')
  return client
}

/** What a driver, a JSON function or a decoder might change. */
const ODD_TEXTS = [
  '\uFEFF',
  '\uFEFF\uFEFFx',
  '\u2028\u2029',
  '"\\\u0001\u007f',
  '😀',
  'a\u0000b',
  '\u0000',
  '',
  ' ',
  '1e3',
  'null',
]

const read = (client: Client): Promise<unknown[][]> =>
  selectJsonRows(
    client,
    'SELECT CAST(json_group_array(json_array(value, number) ORDER BY id) AS BLOB) FROM cells WHERE id > ?',
    [0],
    'the cells',
  )

describe('rows that travel as JSON', () => {
  test('are none for an empty table', async () => {
    expect(await read(await cells())).toEqual([])
  })

  test('arrive as they were written, whatever their text holds', async () => {
    const client = await cells()
    const row = fc.tuple(
      fc.option(fc.string({ unit: 'binary' })),
      fc.option(
        fc.oneof(fc.maxSafeInteger(), fc.constantFrom(Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER)),
      ),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 8 }), async (rows) => {
        const insert = (args: [string | null, number | null]): InStatement => ({
          sql: 'INSERT INTO cells (value, number) VALUES (?, ?)',
          args,
        })
        await client.batch(['DELETE FROM cells', ...rows.map(insert)], 'write')
        expect(await read(client)).toEqual(rows)
      }),
      { numRuns: 60, examples: [[ODD_TEXTS.map((text): [string, number] => [text, 0])]] },
    )
  })

  test.each([
    ['cut inside a character', "x'c3'"],
    ['with an impossible byte', "x'61ff62'"],
    ['with an overlong form', "x'c080'"],
    ['with half of a surrogate pair', "x'eda080'"],
  ])('are refused when a text is not valid UTF-8: %s', async (_what, bytes) => {
    const client = await cells()
    await client.execute(`INSERT INTO cells (value) VALUES ('good'), (CAST(${bytes} AS TEXT))`)
    await expect(read(client)).rejects.toMatchObject(DAMAGED)
  })
})
