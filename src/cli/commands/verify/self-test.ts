import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { selfTest } from '../../../jobs/self-test.ts'
import type { SelfTestPorts, SelfTestReport } from '../../../jobs/self-test.ts'
import { verifyArchive } from '../../../jobs/verify-archive.ts'
import type { Config } from '../../settings/config.ts'
import { openAuditors, openDamageSample } from '../../wire-audit.ts'

/**
 * Tests the audit itself on a private archive in a temporary folder (docs/auditing.md). Of the configuration it uses
 * everything but where the stores are.
 */
export function testAudit(
  config: Config,
  onProgress: SelfTestPorts['onProgress'],
  signal: AbortSignal,
): Promise<SelfTestReport> {
  return selfTest({ makeSample: openDamageSample, audit, onProgress }, signal)

  async function audit(
    folder: string,
    expectedHead: Parameters<SelfTestPorts['audit']>[1],
  ): ReturnType<SelfTestPorts['audit']> {
    const auditors = openAuditors({
      ...config,
      ledger: { url: pathToFileURL(join(folder, 'ledger.db')).href, authToken: null },
      store: { kind: 'file', path: join(folder, 'objects') },
    })
    const silent = { onProgress: (): void => undefined, onNote: (): void => undefined }
    const options = { sample: null, since: null, expectedHead, payloads: false, jobs: 1, signal }
    try {
      return await verifyArchive({ ...auditors, ...silent, clock: Date.now, random: Math.random }, options)
    } finally {
      await auditors.close()
    }
  }
}
