import { openObjects, openObjectsAuditor } from '../adapters/objects/open.ts'
import type { openPublishedHistory } from '../adapters/published-history.ts'
import type { DamageSample } from '../domain/year/finding.ts'
import type { Auditors } from '../domain/ports.ts'
import type { Config } from './settings/config.ts'

/** A batch command has nothing else to do than to wait for a lock. */
export const BATCH_BUSY = { nativeBusyMs: 5_000, retryMs: 10_000 }

/** What an audit reads; whoever opens it closes it. */
export interface OpenAuditors extends Auditors {
  close(): Promise<void>
}

/** What an audit reads. Nothing is opened before its first use, and nothing is ever written. */
export function openAuditors(config: Config): OpenAuditors {
  const archive = openObjects(config.store)
  return {
    ledger: {
      // Loaded when it is asked: objects are being read ahead by then.
      async read() {
        const { ledgerAuditor } = await import('../adapters/ledger/auditor.ts')
        return ledgerAuditor(config.ledger, BATCH_BUSY).read()
      },
    },
    archive: openObjectsAuditor(config.store, archive),
    close: () => archive.close(),
  }
}

/** The public answers of another host; `close` ends the connections to it. Loaded only where it is asked for. */
export async function openPublished(base: string): Promise<ReturnType<typeof openPublishedHistory>> {
  return (await import('../adapters/published-history.ts')).openPublishedHistory(base)
}

/** A private archive to damage, in a temporary folder. Loaded only where it is asked for. */
export async function openDamageSample(): Promise<DamageSample> {
  return (await import('../adapters/damage/sample.ts')).makeDamageSample()
}
