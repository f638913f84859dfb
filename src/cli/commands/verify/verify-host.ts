import { Refusal } from '../../../domain/refusal.ts'
import { chooseManifests } from '../../../domain/year/audit.ts'
import type { AuditedContents } from '../../../domain/year/audit.ts'
import { isDamage, isReadError } from '../../../domain/year/finding.ts'
import type { VerifyOptions, VerifyResult } from '../../../jobs/verify-archive.ts'
import { verifyPublished } from '../../../jobs/verify-published.ts'
import { isUnfounded, requireFolders } from '../../data-folder.ts'
import type { Container } from '../../container.ts'
import type { Terminal } from '../../terminal.ts'
import { everySoOften } from './verify-output.ts'

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
  const startedAt = Date.now()
  const published = await container.publishedHistory(base)
  const onProgress = everySoOften((text: string) => terminal.progress(text))
  const own = await readOwnLedger(container)
  const ledger = own && own.rows.length > 0 ? own : null
  const { report, cause } = await verifyPublished(
    {
      published,
      ledger,
      clock: Date.now,
      onProgress: (done, total) => onProgress(`${done} of ${total} publications asked for`),
      onNote: terminal.note,
    },
    { ...options, chosen: (manifests) => chooseManifests(manifests, options, Math.random) },
  )
  const complete = cause === null
  const { findings } = report
  const ok = complete && !findings.some((finding) => isDamage(finding) || isReadError(finding.actual))
  const isOwnUnrelated = ledger !== null && report.comparedWith === 'none'
  return { report: { ok, complete, ...report, durationMs: Date.now() - startedAt }, cause, isOwnUnrelated }
}

/** Null when this machine has no archive: a stranger holds a host against what it publishes itself. */
async function readOwnLedger(container: Container): Promise<AuditedContents | null> {
  const { config } = container
  if (isUnfounded(config)) return null
  requireFolders(config)
  const { ledger } = await container.auditors()
  return ledger.read()
}
