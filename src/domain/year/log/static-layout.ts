import { objectPath } from '../examine.ts'

/**
 * Layout of an exported archive (docs/decisions/0071-static-export.md): paths relative to the root of the export, the
 * same at every host. Files of the log are below `tlog/year`.
 */

/** Every publication and gap, as `/api/feed/history/index` of a server. Replaced at every export. */
export const STATIC_INDEX = 'index.json'

/** Text of the legacy ledger, as `/api/feed/history/legacy-ledger` of a server; never changes once sealed. */
export const STATIC_LEGACY_LEDGER = 'ledger/legacy.ndjson'

/** Response headers for hosts that read this file. Replaced at every export. */
export const STATIC_HEADERS = '_headers'

/** Returns the path of a publication's bytes, below `/` at a server and below the root of an export. */
export function staticObjectPath(sha256: string): string {
  return `objects/${objectPath(sha256)}.json`
}
