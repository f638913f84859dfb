import { encodeBase64 } from '../../domain/digest.ts'
import { utf8Text } from '../../domain/text.ts'
import type { PublishedHistory, SeenLogs } from '../../domain/year/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { finding } from '../../domain/year/finding.ts'
import type { Finding } from '../../domain/year/finding.ts'
import { forkOf, ledgerTree } from '../../domain/year/log/log-history.ts'
import type { SeenLog } from '../../domain/year/log/log-history.ts'
import { entryCount } from '../../domain/year/log/log-proof.ts'
import { parsePolicy, openCheckpoint, readCheckpoint } from '../../domain/year/log/signed-note.ts'
import type { MerkleTree } from '../../domain/year/log/merkle-tree.ts'
import type { Checkpoint } from '../../domain/year/log/signed-note.ts'
import { STATIC_CHECKPOINT, STATIC_INDEX, STATIC_POLICY } from '../../domain/year/log/static-layout.ts'
import { LINES_MAX } from '../../domain/year/published-ledger.ts'
import type { PublishedRefusal, Reference, WithoutText } from '../../domain/year/published-ledger.ts'

export interface HostLogPorts {
  published: Pick<PublishedHistory, 'base' | 'file'>
  seenLogs: SeenLogs
  /** Text of the policy that the user trusts; null to trust the one kept earlier, or the host's at first use. */
  policy: string | null
  /** Reports a note that is not a finding. */
  onNote: (note: string) => void
}

/** Where the trusted key of the log came from. */
type Trust = 'policy' | 'kept' | 'first use'

/** A checkpoint of a host that a trusted key signed. */
export interface HostNote {
  text: string
  checkpoint: Checkpoint
  trust: Trust
  /** Text of the trusted policy. */
  policy: string
}

/** A note and the file that holds it. */
interface KeptNote {
  file: string
  note: string
}

export interface LogReport {
  origin: string
  /** Number of entries that the host's checkpoint covers, and the root of their tree in base64. */
  size: number
  root: string
  trust: Trust
  /** Number of entries by which the host is behind a checkpoint that was seen earlier. */
  behind: number
  /** Two signed notes that contradict each other; null if there are none. */
  fork: readonly KeptNote[] | null
}

/** Longest note or policy that is read, in bytes. */
const TEXT_MAX_BYTES = 1024 * 1024

/**
 * Reads the checkpoint of a host and verifies it with the trusted policy.
 *
 * @returns null if the host has no checkpoint and none is expected: no policy is given, no earlier audit saw a log there,
 *   and it has no index of an export. `note` is null if the checkpoint is not valid, as a finding says
 * @throws Refusal `usage` for a host that sends a page in place of a checkpoint that is not expected
 */
export async function readHostNote(
  ports: HostLogPorts,
  signal: AbortSignal,
): Promise<{ note: HostNote | null; findings: Finding[] } | null> {
  const { text, admitted } = await readText(ports, STATIC_CHECKPOINT, signal)
  const refuse = (path: string, actual: string | null): { note: null; findings: Finding[] } => ({
    note: null,
    findings: [invalid(path, actual)],
  })
  const known = await ports.seenLogs.originOf(ports.published.base)
  if (admitted !== null) return refuse(STATIC_CHECKPOINT, admitted)
  if (text === null || isWebPage(text)) {
    const isExpected = ports.policy !== null || known !== null || (await hasIndex(ports, signal))
    if (isExpected) return refuse(STATIC_CHECKPOINT, text && 'a web page')
    if (text === null) return null
    throw foreignHost(ports.published.base, `/${STATIC_CHECKPOINT}`, 'a web page')
  }
  const read = readCheckpoint(text)
  if (read.problem !== null) return refuse(STATIC_CHECKPOINT, read.problem)
  const { origin, size } = read.checkpoint
  const { text: hostPolicy, admitted: policyAdmitted } = await readText(ports, STATIC_POLICY, signal)
  if (policyAdmitted !== null) return refuse(STATIC_POLICY, policyAdmitted)
  const { policy, trust } = await trustedPolicy(ports, origin, hostPolicy)
  if (policy === null) return refuse(STATIC_POLICY, null)
  if (trust === 'first use' && known !== null && known !== origin)
    return refuse(STATIC_CHECKPOINT, `a checkpoint of ${origin}; earlier, the host had the log ${known}`)
  const opened = openWith(policy, text)
  if (opened.problem !== null) return refuse(opened.path, opened.problem)
  if (size > LINES_MAX)
    throw unavailable(
      `the checkpoint of ${ports.published.base} has ${size} entries, more than a ledger can have`,
    )
  if (trust === 'first use')
    ports.onNote(
      `the key of the log ${origin} is trusted on first use, as ${ports.published.base} names it; to verify it, give a policy from another source with --policy`,
    )
  const ofHost = hostPolicy === null ? { problem: null } : openWith(hostPolicy, text)
  const isPolicyWrong = hostPolicy === null || ofHost.problem !== null
  return {
    note: { text, checkpoint: opened.checkpoint, trust, policy },
    findings: isPolicyWrong ? [invalid(STATIC_POLICY, ofHost.problem)] : [],
  }
}

/** Returns true for a host of static files, which only an export has. */
async function hasIndex({ published }: HostLogPorts, signal: AbortSignal): Promise<boolean> {
  const response = await published.file(`/${STATIC_INDEX}`, TEXT_MAX_BYTES, signal)
  return response.is === 'text' && !isWebPage(utf8Text(response.bytes))
}

/** Many hosts send a page for every path that they do not have. */
export function isWebPage(text: string): boolean {
  return text.trimStart().startsWith('<')
}

/** Reads a text of the log; null if the host has none. `admitted`: its response if it reports damage of the log itself. */
async function readText(
  { published }: HostLogPorts,
  path: string,
  signal: AbortSignal,
): Promise<{ text: string | null; admitted: string | null }> {
  const response = await published.file(`/${path}`, TEXT_MAX_BYTES, signal)
  if (response.is === 'text') return { text: utf8Text(response.bytes), admitted: null }
  if (response.is === 'absent') return { text: null, admitted: null }
  if (response.is === 'other' && response.damaged === 'log')
    return { text: null, admitted: response.description }
  throw unexpectedResponse(published.base, `/${path}`, response)
}

async function trustedPolicy(
  { seenLogs, policy }: HostLogPorts,
  origin: string,
  hostPolicy: string | null,
): Promise<{ policy: string | null; trust: Trust }> {
  if (policy !== null) return { policy, trust: 'policy' }
  const kept = await seenLogs.read(origin)
  return kept ? { policy: kept.policy, trust: 'kept' } : { policy: hostPolicy, trust: 'first use' }
}

function invalid(path: string, actual: string | null): Finding {
  const expected =
    path === STATIC_POLICY ? 'a policy with the key of the log' : 'a checkpoint signed by the log'
  return finding('note_invalid', path, expected, actual)
}

/** Verifies a note with a policy; `path` is the file that is wrong. */
function openWith(
  policy: string,
  note: string,
): { problem: string; path: string } | { problem: null; checkpoint: Checkpoint } {
  const parsed = parsePolicy(policy)
  if (parsed.problem !== null) return { problem: parsed.problem, path: STATIC_POLICY }
  const opened = openCheckpoint(note, parsed.keys)
  return opened.problem === null ? opened : { problem: opened.problem, path: STATIC_CHECKPOINT }
}

/**
 * Compares the checkpoint of a host with the own one and the one that was seen earlier, and stores the newer one.
 *
 * @param tree tree of the host's checkpoint; null if the host does not have it
 * @param isSound true if the host had no finding; otherwise nothing is stored
 */
export async function mergeNote(
  ports: HostLogPorts,
  note: HostNote,
  tree: MerkleTree | null,
  isSound: boolean,
  own: EarlierNote | null,
): Promise<{ findings: Finding[]; report: LogReport }> {
  const { published, seenLogs, onNote } = ports
  const { origin, size, root } = note.checkpoint
  const report: LogReport = {
    origin,
    size,
    root: encodeBase64(root),
    trust: note.trust,
    behind: 0,
    fork: null,
  }
  // Another process may store a checkpoint of the same log meanwhile: compare with that one.
  for (;;) {
    const seen = await seenLogs.read(origin)
    // A note of another key is no evidence: another host may have shown it at first use.
    const kept = seen && openWith(note.policy, seen.note).problem === null ? seen : null
    if (seen !== null && kept === null)
      onNote(
        `the checkpoint of ${origin} seen earlier is not signed by a key of the policy and proves nothing`,
      )
    const other = [kept, own].find((each) => each && isForked(each, note, tree))
    if (other) {
      const { findings, fork } = await reportFork(ports, other.note, note.text)
      return { findings, report: { ...report, fork } }
    }
    const behind = Math.max(0, (kept?.checkpoint.size ?? 0) - size)
    if (behind > 0)
      onNote(
        `${published.base} is ${entryCount(behind)} behind the newest checkpoint that was seen of ${origin}`,
      )
    const merged = { findings: [], report: { ...report, behind } }
    if (!isSound || tree === null) return merged
    const isKept =
      kept !== null && (behind > 0 || (kept.checkpoint.size === size && kept.policy === note.policy))
    if (isKept && kept.hosts.includes(published.base)) return merged
    const hosts = [...new Set([...(kept?.hosts ?? []), published.base])]
    const { text, policy, checkpoint } = note
    const newest = isKept ? { ...kept, hosts } : { note: text, hosts, policy, checkpoint, tree }
    if (await seenLogs.replace(seen, newest)) return merged
  }
}

/** Returns the newest checkpoint of the own archive, whose tree is the own ledger; null if the policy does not trust it. */
export function ownLog({ own, ownNote }: Reference, policy: string): EarlierNote | null {
  if (own === null || ownNote === null) return null
  const opened = openWith(policy, ownNote)
  const tree = ledgerTree(own.rows)
  // The note of a damaged ledger cannot be compared with another one.
  if (opened.problem !== null || forkOf(tree, opened.checkpoint) !== null) return null
  return { note: ownNote, checkpoint: opened.checkpoint, tree }
}

/** A checkpoint of the log that was signed earlier, and a tree that continues it. */
type EarlierNote = Pick<SeenLog, 'note' | 'checkpoint' | 'tree'>

/** Without the host's tree, a larger checkpoint cannot be compared; the missing tree is a finding already. */
function isForked(kept: EarlierNote, { checkpoint }: HostNote, tree: MerkleTree | null): boolean {
  if (checkpoint.size <= kept.checkpoint.size) return forkOf(kept.tree, checkpoint) !== null
  return tree !== null && forkOf(tree, kept.checkpoint) !== null
}

/** Stores two notes of one log that contradict each other; returns the finding, and the notes for the report. */
async function reportFork(
  { seenLogs }: HostLogPorts,
  earlier: string,
  later: string,
): Promise<{ findings: Finding[]; fork: KeptNote[] }> {
  const [before, now] = [await seenLogs.keepFork(earlier), await seenLogs.keepFork(later)]
  return {
    findings: [
      finding(
        'log_forked',
        STATIC_CHECKPOINT,
        `the log of the note in ${before}`,
        `another log, note in ${now}`,
      ),
    ],
    fork: [
      { file: before, note: earlier },
      { file: now, note: later },
    ],
  }
}

export function unavailable(reason: string): Refusal<PublishedRefusal> {
  return new Refusal('source_unavailable', reason)
}

/** Returns the refusal of a response that neither has a file of the host nor says that there is none. */
export function unexpectedResponse(
  base: string,
  path: string,
  { description }: WithoutText,
): Refusal<PublishedRefusal> {
  return unavailable(`the host ${base} responded with ${description} for ${path}; run the audit again later`)
}

/** Returns the refusal of an address without an archive; nothing that it sends is damage. */
export function foreignHost(base: string, path: string, response: string): Refusal {
  return new Refusal(
    'usage',
    `there is no archive at ${base} (${response} for ${path}); give the address of a dash server or of an exported folder`,
  )
}
