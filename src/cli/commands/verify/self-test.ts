import { join } from 'node:path'
import { selfTest } from '../../../jobs/self-test.ts'
import type { SelfTestPorts } from '../../../jobs/self-test.ts'
import { verifyArchive } from '../../../jobs/archive/verify-archive.ts'
import type { Container } from '../../container.ts'
import { databaseAt } from '../../data-folder.ts'
import type { Terminal } from '../../terminal.ts'
import { throttled } from './verify-output.ts'

/** Self-test in the result; `missed` is present only if a mutation was missed. */
export interface TestedAudit {
  mutations: number
  detected: number
  missed?: string[]
}

/**
 * Tests the audit itself on a private archive in a temporary folder (docs/auditing.md).
 *
 * @param container container of the command; its configuration is used, except for the location of the stores
 * @returns null if a signal ended the test, so that the audit before it is reported nevertheless
 */
export async function testAudit(
  container: Container,
  terminal: Pick<Terminal, 'progress' | 'error'>,
  signal: AbortSignal,
): Promise<TestedAudit | null> {
  const onProgress = throttled<{ mutations: number; ofMutations: number }>(({ mutations, ofMutations }) =>
    terminal.progress(`self-test: ${mutations} of ${ofMutations} mutations`),
  )
  const makeSample = (): ReturnType<SelfTestPorts['makeSample']> => container.damageSample()
  const audit: SelfTestPorts['audit'] = (folder, keptHead) => auditSample(container, folder, keptHead, signal)
  try {
    const { mutations, detected, missed } = await selfTest({ makeSample, audit, onProgress }, signal)
    for (const { name, reported } of missed)
      terminal.error(`the audit missed the mutation ${name}; it reported ${reported.join(', ') || 'nothing'}`)
    const names = missed.map(({ name }) => name)
    return { mutations, detected, ...(names.length > 0 ? { missed: names } : {}) }
  } catch (error) {
    if (signal.aborted) return null
    throw error
  }
}

async function auditSample(
  container: Container,
  folder: string,
  expectedHead: Parameters<SelfTestPorts['audit']>[1],
  signal: AbortSignal,
): ReturnType<SelfTestPorts['audit']> {
  const sample = container.withConfig({
    ledger: databaseAt(join(folder, 'ledger.db')),
    store: { kind: 'file', path: join(folder, 'objects') },
  })
  const silent = { onProgress: (): void => undefined, onNote: (): void => undefined }
  const options = { sample: null, since: null, expectedHead, payloads: false, jobs: 1, signal }
  try {
    const { ledger, objects } = await sample.auditors()
    return await verifyArchive({ ledger, objects, clock: Date.now, random: Math.random, ...silent }, options)
  } finally {
    await sample.close()
  }
}
