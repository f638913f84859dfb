import { expect, test } from 'vitest'
import { DAMAGED } from '../../support/refusals.ts'
import { evaluationsContract } from './evaluations-contract.ts'
import { connectEvaluations, evaluationsInFile, stateUrl } from './open-chat.ts'
import { rawClient } from '../sqlite/lock-holder.ts'

evaluationsContract('a file', evaluationsInFile)

test.each(["'unheard', NULL", "'answered', '{'", "'answered', CAST(x'ff' AS TEXT)"])(
  'an attempt of a file with the damaged class and tasks %s is refused, not misread',
  async (values) => {
    const url = await stateUrl()
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
