import { Refusal } from '../../../domain/refusal.ts'
import type { AuditedContents, Manifest } from '../../../domain/year/ledger.ts'
import { chooseManifests } from '../../../domain/year/sample.ts'
import type { VerifyOptions, VerifyResult } from '../../../jobs/verify-archive.ts'
import { verifyPublished } from '../../../jobs/verify-published.ts'
import { isUnfounded, requireFolders } from '../../data-folder.ts'
import type { Container } from '../../container.ts'
import type { Terminal } from '../../terminal.ts'
import { throttled } from './verify-output.ts'

/**
 * An audit of another host by its public answers; our own ledger is held against it where there is one.
 *
 * @throws Refusal `usage` for flags that have no meaning there
 */
export async function auditHost(
  base: string,
  container: Container,
  options: VerifyOptions,
  terminal: Terminal,
): Promise<VerifyResult & { isOwnUnrelated: boolean }> {
  if (options.payloads)
    throw new Refusal('usage', '--payloads is about stored objects; leave it out with --url')
  const published = await container.publishedHistory(base)
  const showProgress = throttled((text: string) => terminal.progress(text))
  const ledger = await readOwnLedger(container)
  const ports = {
    published,
    ledger,
    clock: Date.now,
    onProgress: (done: number, total: number) => showProgress(`${done} of ${total} publications asked for`),
    onNote: terminal.note,
  }
  const chosen = (manifests: readonly Manifest[]): Manifest[] =>
    chooseManifests(manifests, options, Math.random)
  const result = await verifyPublished(ports, { ...options, chosen })
  return { ...result, isOwnUnrelated: ledger !== null && result.report.comparedWith === 'none' }
}

/** Null when this machine has no archive, or an empty one: a host is then held against what it publishes itself. */
async function readOwnLedger(container: Container): Promise<AuditedContents | null> {
  const { config } = container
  if (isUnfounded(config)) return null
  requireFolders(config)
  const { ledger } = await container.auditors()
  const own = await ledger.read()
  return own && own.rows.length + own.unreadable.length > 0 ? own : null
}
