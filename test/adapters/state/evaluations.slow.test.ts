import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { connectEvaluations } from './open-chat.ts'
import { RESERVED_REQUESTS } from '../../../src/domain/models/quota.ts'
import { startOfDay } from '../../../src/domain/time.ts'
import { builtModule, runScript } from '../../support/compiled-sources.ts'
import type { ScriptProcess } from '../../support/compiled-sources.ts'

const NOW = startOfDay('2026-03-01') + 3 * 3_600_000
const MOST = 60

/** Counts requests of its kind until it is refused, and prints how many were let pass. */
const RACER = `
  const [, url, kind, token] = process.argv
  const { database } = await import('${builtModule('adapters/sqlite/database.js')}')
  const { libsqlEvaluations } = await import('${builtModule('adapters/state/evaluations.js')}')
  const { libsqlRouterAllowance } = await import('${builtModule('adapters/state/evaluations.js')}')
  const store = database({
    location: { url, authToken: null }, store: 'state', nativeBusyMs: 10, retryMs: 20000,
  })
  const evaluations = libsqlEvaluations(store)
  const allowance = libsqlRouterAllowance(store)
  const countRequest = {
    chat: () => allowance.countChatRequest('a/b:free', ${NOW}, ${MOST + RESERVED_REQUESTS}),
    evaluation: async (number) => {
      const attempt = { model: 'a/' + number + ':free', kind: 'text', sentAt: ${NOW} }
      const guard = { token, maxCountedBefore: ${MOST - 1} }
      return 'counted' in await evaluations.countAttempt(attempt, guard)
    },
  }[kind]
  await evaluations.requestsSince(0)
  console.log('ready')
  for await (const _ of process.stdin) break
  let passed = 0
  while (await countRequest(passed)) passed += 1
  console.log(passed)
  store.close()
  process.exit(0)`

test('processes that race for the requests of a day never exceed the limit', async () => {
  const url = pathToFileURL(join(await temporaryFolder(), 'state.db')).href
  const { evaluations } = connectEvaluations(url)
  const grant = await evaluations.takeLease({ name: 'the test', process: null }, NOW, 600_000, () => false)
  if (!grant.granted) throw new Error('the lease of a new store is held')
  const race = (kind: string): ScriptProcess => runScript(RACER, [url, kind, grant.token])
  const racers = [race('chat'), race('chat'), race('evaluation')]
  for (const racer of racers) expect(await racer.line()).toBe('ready')
  for (const racer of racers) racer.writeLine('go')
  const passed = await Promise.all(racers.map(async (racer) => Number(await racer.line())))
  expect(passed.reduce((sum, each) => sum + each, 0)).toBe(MOST)
  expect(await evaluations.requestsSince(0)).toHaveLength(MOST)
})
