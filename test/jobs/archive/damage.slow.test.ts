import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { expect, test } from 'vitest'
import { addDays } from '../../../src/domain/time.ts'
import { objectPath } from '../../../src/domain/year/examine.ts'
import type { LedgerRow } from '../../../src/domain/year/ledger.ts'
import { dropTriggers } from '../../adapters/ledger/open-ledger.ts'
import { publishSigned } from '../../support/exports.ts'
import { importSample } from '../../support/legacy-archive.ts'
import { findingsIn, signedLogIn } from '../../support/signed-log.ts'
import { AS_OF, openWorkspace } from '../../support/workspace.ts'

/** A copy of the archive to damage: its folder and its rows. */
interface Copy {
  folder: string
  rows: readonly LedgerRow[]
}

/** What is done to the archive, and the findings that all of it must cause. */
type Damage = [what: string, found: string[], apply: (copy: Copy) => void | Promise<void>]

const newest = ({ rows }: Copy): LedgerRow => rows.at(-1) as LedgerRow
const objectOf = (copy: Copy): string => join(copy.folder, 'objects', objectPath(newest(copy).sha256 ?? ''))
const headPath = ({ folder }: Pick<Copy, 'folder'>, seq: number): string =>
  join(folder, 'objects/heads', String(seq))
const logPath = ({ folder }: Copy, name: number | string): string =>
  join(folder, 'objects/tlog/year', String(name))

/** Runs a statement on the ledger without its triggers, as whoever has access to its file could. */
async function changeLedger({ folder }: Copy, statement: string): Promise<void> {
  const client = createClient({ url: pathToFileURL(join(folder, 'ledger.db')).href })
  await dropTriggers(client)
  await client.execute(statement)
  client.close()
}

/** Takes the newest publication out of the ledger. */
const rollBackLedger = (copy: Copy): Promise<void> =>
  changeLedger(copy, `DELETE FROM entries WHERE seq = ${newest(copy).seq}`)

const DAMAGES: Damage[] = [
  [
    'a bit of a note flipped',
    ['note_invalid'],
    (copy) => {
      const path = logPath(copy, newest(copy).seq)
      const bytes = readFileSync(path)
      rmSync(path)
      writeFileSync(path, bytes.with(bytes.length >> 1, (bytes[bytes.length >> 1] ?? 0) ^ 1))
    },
  ],
  ['the policy gone', ['note_invalid'], (copy) => rmSync(logPath(copy, 'policy.1'))],
  [
    'a copy of another head',
    ['head_mismatch'],
    (copy) => cpSync(headPath(copy, newest(copy).seq - 1), headPath(copy, newest(copy).seq)),
  ],
  ['the ledger rolled back', ['head_mismatch', 'log_forked'], rollBackLedger],
  ['the table of entries dropped', ['row_tampered'], (copy) => changeLedger(copy, 'DROP TABLE entries')],
]

test('an audit finds each damage of the log and the ledger of an archive', async () => {
  const workspace = await openWorkspace(() => Date.now() + 60_000)
  await importSample(workspace)
  const source = { ...workspace, log: signedLogIn(workspace.folder) }
  await publishSigned(source, [AS_OF, addDays(AS_OF, 1)])
  const { rows } = await source.ledger.read()
  const { seq } = rows.at(-1) as LedgerRow
  const keptHead = headPath(source, seq)
  source.close()
  const folder = join(source.folder, 'copy')
  const codesAfter = async (apply: Damage[2], headFile?: string) => {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
    for (const name of readdirSync(source.folder).filter((each) => each !== 'copy'))
      cpSync(join(source.folder, name), join(folder, name), { recursive: true })
    await apply({ folder, rows })
    return new Set((await findingsIn(folder, headFile)).map(({ code }) => code))
  }
  expect(await codesAfter(() => undefined, keptHead)).toEqual(new Set())
  for (const [what, found, apply] of DAMAGES)
    expect([...(await codesAfter(apply))], what).toEqual(expect.arrayContaining(found))
  // Both stores rolled back together still prove each other, except to whoever kept a head, or the record of the key.
  const rollBack = async (copy: Copy): Promise<void> => {
    await rollBackLedger(copy)
    for (const path of [objectOf(copy), headPath(copy, seq), logPath(copy, seq)]) rmSync(path)
  }
  expect(await codesAfter(rollBack)).toEqual(new Set(['log_forked']))
  const rollBackAll = async (copy: Copy): Promise<void> => {
    await rollBack(copy)
    rmSync(join(copy.folder, 'key'), { recursive: true })
  }
  expect(await codesAfter(rollBackAll)).toEqual(new Set())
  expect(await codesAfter(rollBackAll, keptHead)).toEqual(new Set(['head_mismatch']))
})
