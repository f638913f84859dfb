import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { DAMAGED } from '../../support/refusals.ts'
import { evaluationsContract } from './evaluations-contract.ts'
import { connectEvaluations, evaluationsInFile, evaluationsInMemory } from './open-chat.ts'
import { rawClient } from '../sqlite/lock-holder.ts'

evaluationsContract('a file', evaluationsInFile)
evaluationsContract('memory', evaluationsInMemory)

test.each([
  "INSERT INTO evaluation_attempts (run, model, kind, day, sent_at, settled_at, class) VALUES (1, 'a/b', 'text', '2026-03-01', 5, 6, 'unheard')",
  "INSERT INTO evaluation_scores VALUES ('a/b', '2026-03-01', 5, 1, 5, '{')",
  "INSERT INTO evaluation_scores VALUES ('a/b', '2026-03-01', 5, 1, 5, CAST(x'ff' AS TEXT))",
])('damaged rows of a file are refused, not misread: %s', async (sql) => {
  const url = pathToFileURL(join(await temporaryFolder(), 'state.db')).href
  const { evaluations } = connectEvaluations(url)
  await evaluations.ping()
  const raw = rawClient(url)
  await raw.execute(sql)
  const reading = sql.includes('scores')
    ? evaluations.scoresSince('2026-01-01')
    : evaluations.attemptsSince(0)
  await expect(reading).rejects.toMatchObject(DAMAGED)
})
