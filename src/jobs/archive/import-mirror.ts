import type { Auditors, StaticTree } from '../../domain/ports.ts'
import { utf8Text } from '../../domain/text.ts'
import { Refusal, storageDamaged } from '../../domain/refusal.ts'
import type { StorageRefusal } from '../../domain/refusal.ts'
import type { Instant } from '../../domain/time.ts'
import { describeFinding } from '../../domain/year/finding.ts'
import type { Finding } from '../../domain/year/finding.ts'
import type { Head, LedgerContents } from '../../domain/year/ledger.ts'
import { auditTiles } from '../../domain/year/log/audit-tiles.ts'
import type { PublishedTile } from '../../domain/year/log/audit-tiles.ts'
import { readCosignature } from '../../domain/year/log/cosigning.ts'
import { logFileName, newestPolicyNumber } from '../../domain/year/log/log-history.ts'
import type { LogFile } from '../../domain/year/log/log-history.ts'
import type { Checkpoint, VerifierKey } from '../../domain/year/log/signed-note.ts'
import {
  STATIC_CHECKPOINT,
  STATIC_LEGACY_LEDGER,
  staticObjectPath,
  staticTilePath,
} from '../../domain/year/log/static-layout.ts'
import { tilesOfSize } from '../../domain/year/log/tiles.ts'
import { auditPublishedLedger, ledgerTextOf, provedLedger } from '../../domain/year/published-ledger.ts'
import { copyFrom, copyRefused } from './copy-archive.ts'
import type { CopyReport, CopySource, CopyTargetPorts } from './copy-archive.ts'
import { openWith } from './host-log.ts'
import type { OpenedNote } from './host-log.ts'

export interface MirrorImportPorts extends CopyTargetPorts {
  mirror: StaticTree
  /** Text of the policy that the user trusts; null without one. */
  policy: string | null
  /** Returns the policy of the log key; null if no key is set. Called if there is no other policy. */
  keyPolicy: () => Promise<string | null>
  /** Creates the folders of the stores; called before the stores are used. */
  prepare: () => void
}

/**
 * Copies what an archive lost from a mirror or an export of it (docs/backup.md): publications, heads, entries, and the
 * newest checkpoint. The checkpoint must be signed by the log of the archive, and everything must follow from it.
 * Counted attempts are in no mirror.
 *
 * @throws Refusal `usage` if the tree is not a mirror or no policy names the key, `copy_refused` if it is a mirror of
 *   another log or another history, `storage_damaged` if it is damaged; the refusals of `copyArchive`
 */
export async function importMirror(ports: MirrorImportPorts, signal: AbortSignal): Promise<CopyReport> {
  const { mirror, target, onNote } = ports
  const text = await readText(mirror, STATIC_CHECKPOINT)
  if (text === '')
    throw new Refusal(
      'usage',
      `the source has no file ${STATIC_CHECKPOINT}; name the folder or bucket of a mirror or an export`,
    )
  ports.prepare()
  const trusted = await trustedPolicy(ports)
  const opened = openTrusted(text, trusted.policy)
  if (ports.policy !== null) openTrusted(text, ports.policy)
  const mirrored = await readLedger(mirror, opened.checkpoint)
  const source: CopySource = {
    name: 'the mirror',
    async read(before) {
      const { length } = mirrored.rows
      if (before.rows.length > length)
        onNote(
          `the archive has ${before.rows.length} entries and the mirror only ${length}: no entry is copied`,
        )
      const contents = continuing(mirrored, before)
      const { timeline } = provedLedger({ ...mirrored, founding: contents.founding })
      return { contents, timeline, heads: await headsOf(mirrored, target.auditors.objects) }
    },
    objects: { get: (sha256) => mirror.get(staticObjectPath(sha256)) },
    everyAttempt: async () => [],
    logFiles: logFilesOf(opened, trusted, ports.clock()),
  }
  return copyFrom(source, ports, signal)
}

async function readText(mirror: StaticTree, path: string): Promise<string> {
  return utf8Text(await mirror.get(path))
}

/** The policy to verify the mirror with. */
interface TrustedPolicy {
  policy: string
  /** True if the archive has it already. */
  isStored: boolean
}

/** @throws Refusal `usage` without any policy */
async function trustedPolicy({ target, policy, keyPolicy }: MirrorImportPorts): Promise<TrustedPolicy> {
  const { logFiles } = target.objects
  const number = newestPolicyNumber(await logFiles.list())
  if (number > 0) {
    const stored = await logFiles.get({ kind: 'policy', number })
    return { policy: utf8Text(stored), isStored: true }
  }
  const given = policy ?? (await keyPolicy())
  if (given !== null) return { policy: given, isStored: false }
  const advice = 'set DASH_LOG_KEY_FILE to the key of the log, or give a policy with --policy'
  throw new Refusal('usage', `no policy names the key that must have signed the mirror; ${advice}`)
}

/** @throws Refusal `copy_refused` if the policy does not accept the checkpoint */
function openTrusted(text: string, policy: string): OpenedNote {
  const opened = openWith(policy, text)
  if (opened.problem !== null)
    throw copyRefused(`the mirror has no checkpoint of this log (${opened.path}: ${opened.problem})`)
  return opened
}

/**
 * Reads the ledgers of a mirror and proves them against the signed checkpoint.
 *
 * @throws Refusal `storage_damaged`
 */
async function readLedger(mirror: StaticTree, checkpoint: Checkpoint): Promise<LedgerContents> {
  const files: PublishedTile[] = []
  for (const tile of tilesOfSize(checkpoint.size))
    files.push({ tile, bytes: await mirror.get(staticTilePath(tile)) })
  const { isWhole, entries, findings } = auditTiles(checkpoint, files, null)
  // A damaged tile of hashes loses nothing: the entries give the signed root.
  if (!isWhole) throw damaged(findings)
  const ledger = ledgerTextOf(entries)
  const legacy = await mirror.get(STATIC_LEGACY_LEDGER)
  const audit = auditPublishedLedger({ ledger, legacy, head: null, laterHead: null }, NO_REFERENCE)
  if (audit.findings.length > 0) throw damaged(audit.findings)
  return audit.contents
}

const NO_REFERENCE = { own: null, ownNote: null, expectedHead: null }

function damaged([first]: readonly Finding[]): Refusal<StorageRefusal> {
  const what = first === undefined ? 'its entries do not give the signed root' : describeFinding(first)
  return storageDamaged(`the mirror is damaged: ${what}; use another mirror`)
}

/**
 * Returns the ledgers of the target after the import: those of the mirror, and what only the target has. Damage and
 * other histories are left to the comparison with the target.
 */
function continuing({ rows, legacy }: LedgerContents, before: LedgerContents): LedgerContents {
  const { founding } = before
  return {
    rows: [...rows, ...before.rows.slice(rows.length)],
    legacy: [...legacy, ...before.legacy.slice(legacy.length)],
    // A mirror has no mark of a founding.
    founding: founding && rows[founding.seq - 1]?.leaf === founding.leaf ? founding : null,
  }
}

/**
 * Returns the heads that an archive needs: those of the target, and new ones with the times of their entries. A founding
 * import writes no head before its last entry, which the seal follows.
 */
async function headsOf(
  { rows }: LedgerContents,
  objects: Pick<Auditors['objects'], 'heads'>,
): Promise<Head[]> {
  const existing = new Map((await objects.heads()).map(({ seq, head }) => [seq, head]))
  const seal = rows.findIndex(({ kind }) => kind === 'legacy-seal')
  return rows.slice(Math.max(0, seal - 1)).map(({ seq, leaf, recordedAt }) => {
    const own = existing.get(seq)
    return own?.leaf === leaf ? own : { seq, leaf, time: recordedAt }
  })
}

/**
 * Returns the checkpoint of a mirror as files of an archive: the note, its cosignatures, and the policy if the archive
 * has none.
 */
function logFilesOf(
  { checkpoint: { size }, note, policy }: OpenedNote,
  trusted: TrustedPolicy,
  now: Instant,
): CopySource['logFiles'] {
  const linesOf = ({ name, id }: VerifierKey): string =>
    note.signatures
      .flatMap((each) => (each.name === name && each.keyId === id ? `${each.line}\n` : []))
      .join('')
  const signed = `${note.text}\n${policy.logs.map(({ key }) => linesOf(key)).join('')}`
  const texts: [LogFile, string][] = trusted.isStored ? [] : [[{ kind: 'policy', number: 1 }, trusted.policy]]
  texts.push([{ kind: 'note', size }, signed])
  for (const { key } of policy.witnesses) {
    const read = readCosignature(signed, linesOf(key), key, Math.floor(now / 1000))
    if (read.problem === null)
      texts.push([{ kind: 'cosignature', size, keyId: key.id, time: read.time }, read.line])
  }
  const byName = new Map(texts.map(([file, text]) => [logFileName(file), new TextEncoder().encode(text)]))
  return {
    list: async () => texts.map(([file]) => file),
    get: async (file) => byName.get(logFileName(file)) ?? null,
  }
}
