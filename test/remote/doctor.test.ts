import { expect, onTestFinished, test } from 'vitest'
import { dash, temporaryFolder } from '../support/dash.ts'
import { startSqld } from '../support/sqld.ts'

test('the doctor inspects a database server without creating anything on it', async () => {
  const server = await startSqld()
  onTestFinished(() => server.stop())
  const options = { cwd: temporaryFolder(), env: { DASH_DATABASE_URL: server.url } }
  const verdicts = async (): Promise<{ code: number | null; verdicts: Record<string, string> }> => {
    const { code, stdout } = await dash(['doctor', '--offline', '--json'], options)
    const { findings } = JSON.parse(stdout) as { findings: { check: string; verdict: string }[] }
    return { code, verdicts: Object.fromEntries(findings.map(({ check, verdict }) => [check, verdict])) }
  }
  expect(await verdicts()).toMatchObject({ code: 0, verdicts: { 'feed.migrations': 'note', clock: 'ok' } })
  // Still a note: the first look has migrated nothing.
  expect(await verdicts()).toMatchObject({ code: 0, verdicts: { 'feed.migrations': 'note' } })
  await dash(['snapshot'], options)
  expect(await verdicts()).toMatchObject({
    code: 0,
    verdicts: { 'feed.migrations': 'ok', snapshot: 'ok', 'ledger.migrations': 'note' },
  })
  await server.kill()
  expect((await verdicts()).code).toBe(74)
})
