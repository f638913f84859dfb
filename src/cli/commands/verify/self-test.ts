import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { selfTest } from '../../../jobs/self-test.ts'
import type { SelfTestPorts, SelfTestReport } from '../../../jobs/self-test.ts'
import { verifyArchive } from '../../../jobs/verify-archive.ts'
import type { Container } from '../../container.ts'

/**
 * Tests the audit itself on a private archive in a temporary folder (docs/auditing.md).
 *
 * @param container of the command, whose configuration is used but for where the stores are
 */
export function testAudit(
  container: Container,
  onProgress: SelfTestPorts['onProgress'],
  signal: AbortSignal,
): Promise<SelfTestReport> {
  return selfTest({ makeSample: () => container.damageSample(), audit, onProgress }, signal)

  async function audit(
    folder: string,
    expectedHead: Parameters<SelfTestPorts['audit']>[1],
  ): ReturnType<SelfTestPorts['audit']> {
    const sample = container.withConfig({
      ledger: { url: pathToFileURL(join(folder, 'ledger.db')).href, authToken: null },
      store: { kind: 'file', path: join(folder, 'objects') },
    })
    const silent = { onProgress: (): void => undefined, onNote: (): void => undefined }
    const options = { sample: null, since: null, expectedHead, payloads: false, jobs: 1, signal }
    try {
      const { ledger, archive } = await sample.auditors()
      const ports = { ledger, archive, clock: Date.now, random: Math.random, ...silent }
      return await verifyArchive(ports, options)
    } finally {
      await sample.close()
    }
  }
}
