import { pathToFileURL } from 'node:url'
import { ledgerAuditor } from '../../src/adapters/ledger/auditor.ts'
import { yearReader } from '../../src/adapters/ledger/ledger.ts'
import { streamingAuditor } from '../../src/adapters/objects/auditor.ts'
import type { Ledger, Objects } from '../../src/domain/ports.ts'
import type { ArchiveStores } from '../../src/jobs/archive/copy-archive.ts'
import { audit } from '../../src/jobs/archive/audit.ts'
import { ownArchive } from '../../src/jobs/archive/own-archive.ts'
import type { Workspace } from './workspace.ts'

/** The stores of a workspace as a copy uses them; ledger and objects may be replaced. */
export function archiveStoresOf(
  workspace: Workspace,
  ledger: Ledger = workspace.ledger,
  objects: Objects = workspace.objects,
): ArchiveStores {
  const location = { url: pathToFileURL(workspace.ledgerPath).href, authToken: null }
  return {
    ledger,
    objects,
    year: yearReader(ledger, objects),
    auditors: {
      ledger: ledgerAuditor(location, { nativeBusyMs: 20, retryMs: 5_000 }),
      objects: streamingAuditor(objects),
    },
  }
}

/** Returns true if an audit of everything in a workspace has no finding. */
export async function isSound(workspace: Workspace): Promise<boolean> {
  const archive = ownArchive(archiveStoresOf(workspace).auditors, {
    expectedHead: null,
    payloads: true,
    isWhole: true,
    onNote: () => undefined,
  })
  const { report } = await audit(
    archive,
    { clock: Date.now, random: () => 0, onProgress: () => undefined },
    { sample: null, since: null, jobs: 2, signal: new AbortController().signal },
  )
  return report.ok && report.findings.length === 0
}
