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

test.each(["'unheard', NULL", "'answered', '{'", "'answered', CAST(x'ff' AS TEXT)"])(
  'an attempt of a file with the damaged class and tasks %s is refused, not misread',
  async (values) => {
    const url = pathToFileURL(join(temporaryFolder(), 'state.db')).href
    const { evaluations } = connectEvaluations(url)
    await evaluations.attemptsSince(0)
    const raw = rawClient(url)
    await raw.execute(
      `INSERT INTO evaluation_attempts (model, kind, day, sent_at, settled_at, class, tasks)
      VALUES ('a/b', 'text', '2026-03-01', 5, 6, ${values})`,
    )
    await expect(evaluations.attemptsSince(0)).rejects.toMatchObject(DAMAGED)
  },
)
