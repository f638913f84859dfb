import type { z } from 'zod'
import { sha256Hex } from '../../digest.ts'
import { parseJson, utf8Text } from '../../text.ts'
import { parseInstant } from '../../time.ts'
import type { ProvedLedger } from '../chain.ts'
import { proveLedger } from '../check.ts'
import { finding } from '../finding.ts'
import type { Finding } from '../finding.ts'
import { historyIndex, historyIndexSchema } from '../history/history.ts'
import type { Head, LedgerContents } from '../ledger.ts'
import { STATIC_INDEX, STATIC_LEGACY_LEDGER } from './static-layout.ts'

/** Audit rules for the files of a static host that are not part of the signed tree. */

/**
 * Compares the index of a static host with its ledger. The index is written before the checkpoint, so that it may list
 * later entries.
 *
 * @param contents a ledger without findings
 * @param bytes null if the host has no index
 * @returns the findings, and the number of listed entries that are not in the ledger yet
 */
export function auditIndex(
  contents: LedgerContents,
  bytes: Uint8Array | null,
): { findings: Finding[]; later: number } {
  const index = bytes && parseIndex(bytes)
  const isKnown = ({ seq, leaf }: { seq: number; leaf: string | null }): boolean =>
    leaf === null || seq <= contents.rows.length
  const publications = (index?.publications ?? []).filter(isKnown)
  const gaps = (index?.gaps ?? []).filter(isKnown)
  const listed = (index?.publications.length ?? 0) + (index?.gaps.length ?? 0)
  const later = listed - publications.length - gaps.length
  const head = bytes && headOfIndex(contents, bytes)
  const expected = historyIndex(provedLedger(contents), head)
  // The head of a later entry is not in the ledger either.
  const known = { head: later > 0 ? expected.head : (index?.head ?? null), publications, gaps }
  const isSame =
    index !== null && JSON.stringify(known) === JSON.stringify(historyIndexSchema.parse(expected))
  if (isSame) return { findings: [], later }
  const actual = bytes && sha256Hex(bytes)
  return {
    findings: [finding('digest_mismatch', STATIC_INDEX, sha256Hex(JSON.stringify(expected)), actual)],
    later: 0,
  }
}

/** Returns a ledger without findings, which ends with its last entry. */
export function provedLedger(contents: LedgerContents): ProvedLedger {
  const last = contents.rows.at(-1)
  return proveLedger(contents, last ? { seq: last.seq, leaf: last.leaf, time: last.recordedAt } : null)
}

function parseIndex(bytes: Uint8Array): z.infer<typeof historyIndexSchema> | null {
  return historyIndexSchema.safeParse(parseJson(utf8Text(bytes))).data ?? null
}

/** Returns the head in the index of a host if the ledger contains it. The time of a head is in no ledger. */
export function headOfIndex({ rows }: LedgerContents, bytes: Uint8Array): Head | null {
  const { seq = 0, leaf, time = '' } = parseIndex(bytes)?.head ?? {}
  const instant = parseInstant(time)
  const isInLedger = leaf !== undefined && rows[seq - 1]?.leaf === leaf
  return isInLedger && instant !== null ? { seq, leaf, time: instant } : null
}

/**
 * Compares the legacy ledger of a static host with the seal.
 *
 * @param bytes null if the host has no legacy ledger
 */
export function auditLegacyFile({ rows }: Pick<LedgerContents, 'rows'>, bytes: Uint8Array | null): Finding[] {
  const seal = rows.find(({ kind }) => kind === 'legacy-seal')
  const expected = seal?.legacyDigest ?? null
  // An empty legacy ledger needs no file.
  if (expected === null || sha256Hex(bytes ?? new Uint8Array()) === expected) return []
  return [finding('digest_mismatch', STATIC_LEGACY_LEDGER, expected, bytes && sha256Hex(bytes))]
}
