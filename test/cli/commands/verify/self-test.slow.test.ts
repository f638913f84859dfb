import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { testAudit } from '../../../../src/cli/commands/verify/self-test.ts'
import { Container } from '../../../../src/cli/container.ts'
import { readConfig } from '../../../../src/cli/settings/read-config.ts'
import { dash, temporaryFolder } from '../../../support/dash.ts'

/** A few dozen audits take seconds on an idle machine. */
const SELF_TEST_MS = 120_000

test(
  '`dash verify-archive --self-test` notices every mutation and touches nothing but its own temporary folder',
  { timeout: SELF_TEST_MS },
  async () => {
    const folder = temporaryFolder()
    const [data, scratch] = [join(folder, 'data'), join(folder, 'scratch')]
    mkdirSync(join(data, 'objects'), { recursive: true })
    mkdirSync(scratch)
    const { code, stdout, stderr } = await dash(
      ['verify-archive', '--self-test', '--json', '--data-dir', data],
      { env: { TMPDIR: scratch } },
    )
    expect(stderr).toBe('')
    const report = JSON.parse(stdout) as { ok: boolean; selfTest: { mutations: number; detected: number } }
    expect(report.selfTest.mutations).toBeGreaterThan(40)
    expect(report).toMatchObject({ ok: true, selfTest: { detected: report.selfTest.mutations } })
    expect(report.selfTest).not.toHaveProperty('missed')
    expect(code).toBe(0)
    expect(readdirSync(scratch)).toEqual([])
    expect(readdirSync(data, { recursive: true })).toEqual(['objects'])
  },
)

test('a self-test that a signal ends has closed the stores of every audit it began', async () => {
  const folder = temporaryFolder()
  const container = new Container({ config: readConfig({ dataDir: folder }, {}, folder), version: '0' })
  onTestFinished(() => container.close())
  const stopping = new AbortController()
  const withConfig = container.withConfig.bind(container)
  const opened: { closed: boolean }[] = []
  container.withConfig = (config) => {
    const sample = withConfig(config)
    const close = sample.close.bind(sample)
    const state = { closed: false }
    opened.push(state)
    sample.close = () => ((state.closed = true), close())
    if (opened.length === 3) stopping.abort(new Error('stopped'))
    return sample
  }
  const terminal = { progress: () => undefined, error: () => undefined }
  expect(await testAudit(container, terminal, stopping.signal)).toBeNull()
  expect(opened).toEqual([{ closed: true }, { closed: true }, { closed: true }])
})
