import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { dash, temporaryFolder } from '../../../support/dash.ts'

/** Some dozen audits: seconds on an idle machine. */
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
