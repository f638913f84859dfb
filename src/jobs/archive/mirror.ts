import { areSameBytes } from '../../domain/digest.ts'
import { utf8Text } from '../../domain/text.ts'
import type { Clock, StaticTree } from '../../domain/ports.ts'
import { Refusal, storageDamaged } from '../../domain/refusal.ts'
import { isSound } from '../../domain/year/finding.ts'
import type { Finding } from '../../domain/year/finding.ts'
import type { AuditedContents, Manifest } from '../../domain/year/ledger.ts'
import { forkOf } from '../../domain/year/log/log-history.ts'
import { lostWitness, parsePolicy } from '../../domain/year/log/log-policy.ts'
import { merkleTree, rootAt } from '../../domain/year/log/merkle-tree.ts'
import type { MerkleTree } from '../../domain/year/log/merkle-tree.ts'
import { formatVerifierKey } from '../../domain/year/log/signed-note.ts'
import type { Checkpoint, Note } from '../../domain/year/log/signed-note.ts'
import {
  STATIC_CHECKPOINT,
  STATIC_POLICY,
  staticObjectPath,
  staticTilePath,
} from '../../domain/year/log/static-layout.ts'
import { parseTile, tilesOfSize } from '../../domain/year/log/tiles.ts'
import { provedLedger } from '../../domain/year/published-ledger.ts'
import type { PublishedResponse } from '../../domain/year/published-ledger.ts'
import { examineFile, fileWithoutResponse } from '../../domain/year/history/published-response.ts'
import { readHostLedger } from './host-ledger.ts'
import type { HostLedger, HostLedgerPorts, HostLog } from './host-ledger.ts'
import { openWith, reportFork } from './host-log.ts'
import type { HostNote } from './host-log.ts'
import { addFindings, sendAll } from './host-requests.ts'
import type { CheckRound, HostCheck, HostRun } from './host-requests.ts'
import type { VerifyReport, VerifyResult } from './verify-archive.ts'
import { auditHost } from './verify-published.ts'
import { countFile, hasObject, requireOwnTree, writeStaticFiles } from './write-static.ts'
import type { FileCounts } from './write-static.ts'

export interface MirrorPorts extends HostLedgerPorts {
  /** Opens the target, and creates a missing folder. */
  openTree: () => Promise<StaticTree>
  clock: Clock
  onProgress: HostRun['onProgress']
}

/** The host and the target of a mirror. */
interface CopyPorts extends HostLedgerPorts {
  target: StaticTree
}

/** The JSON result of `mirror` (docs/backup.md): that of an audit, with the files of the target. */
export interface MirrorReport extends VerifyReport, FileCounts {
  /** Sum of the bytes written to the target. */
  bytes: number
  /** The checkpoint of the host; null if the host is not sound. */
  checkpoint: Pick<Checkpoint, 'origin' | 'size'> | null
}

/**
 * Copies the signed log of a host, its ledger and its publications to a tree of static files. The log is audited first;
 * each publication is verified before it is written. The checkpoint is written last, and only if there is no finding.
 * An interrupted mirror continues: files that are there are verified and not requested again.
 *
 * @throws Refusal `usage` if the host has no signed log
 */
export async function mirrorHost(
  ports: MirrorPorts,
  options: Pick<HostRun, 'jobs' | 'signal'>,
): Promise<VerifyResult & { report: MirrorReport }> {
  const { published } = ports
  const counts: FileCounts = { files: 0, written: 0, unchanged: 0, bytes: 0 }
  let checkpoint: MirrorReport['checkpoint'] = null
  const readLedger = async (run: HostRun): Promise<HostLedger> => {
    const response = await published.file(`/${STATIC_CHECKPOINT}`, 0, run.signal)
    if (response.is === 'absent')
      throw new Refusal(
        'usage',
        `the host ${published.base} has no signed log to mirror (404 for /${STATIC_CHECKPOINT})`,
      )
    return readHostLedger(ports, { own: null, ownNote: null, expectedHead: null }, run)
  }
  const { report, cause } = await auditHost(ports, options, readLedger, async (run, host) => {
    if (!isSound(run.findings) || host.log === null) return
    await copyLog({ ...ports, target: await ports.openTree() }, host, run, counts)
    const { origin, size } = host.log.note.checkpoint
    checkpoint = { origin, size }
  })
  return { report: { ...report, ...counts, checkpoint: report.ok ? checkpoint : null }, cause }
}

async function copyLog(
  ports: CopyPorts,
  { contents: all, head, isStatic, log }: HostLedger,
  run: HostRun,
  counts: FileCounts,
): Promise<void> {
  const { target } = ports
  const tree = log?.tiles.tree ?? null
  if (all === null || log === null || tree === null)
    throw new Error('a sound host with a checkpoint has a ledger and a tree')
  if (!(await mayReplace(ports, { ...log, tree }, run, await target.get(STATIC_CHECKPOINT)))) return
  noteOtherKeys(ports, log.note)
  await requireOwnTree(target)
  // A server may have published more since its checkpoint.
  const contents: AuditedContents = { ...all, rows: all.rows.slice(0, tree.size) }
  const proved = provedLedger(contents)
  const rounds = proved.timeline.map(({ manifest }) => objectRound(ports, manifest, isStatic, counts))
  await sendAll(run, rounds)
  if (!isSound(run.findings)) return
  const content = {
    contents,
    proved,
    head: head?.seq === tree.size ? head : null,
    tree,
    policy: log.note.policy,
    note: log.note.text,
  }
  await writeStaticFiles(
    target,
    content,
    counts,
    (there) => mayReplace(ports, { ...log, tree }, run, there),
    run.signal,
  )
}

/** Notes the keys of the host's policy that are not in the trusted one, which the mirror gets. */
function noteOtherKeys({ published, onNote }: CopyPorts, { policy, hostPolicy }: HostNote): void {
  const trusted = keysOf(policy)
  const others = keysOf(hostPolicy ?? policy).filter((key) => !trusted.includes(key))
  if (others.length > 0)
    onNote(
      `the mirror has the trusted policy; that of ${published.base} also has the keys ${others.join(' and ')}`,
    )
}

function keysOf(policy: string): string[] {
  const parsed = parsePolicy(policy)
  return parsed.problem === null
    ? [...parsed.policy.logs, ...parsed.policy.witnesses].map(({ key }) => formatVerifierKey(key))
    : []
}

/** Requests a publication that the target does not have, and writes it. */
function objectRound(
  { published, target }: CopyPorts,
  manifest: Manifest,
  isStatic: boolean,
  counts: FileCounts,
): CheckRound {
  const path = staticObjectPath(manifest.sha256)
  const check: HostCheck = {
    async send(signal) {
      const response = await published.file(`/${path}`, manifest.byteSize, signal)
      // A server that has no objects by digest has them by time.
      return response.is === 'absent' && !isStatic ? published.at(manifest.publishedAt, [], signal) : response
    },
    async examine(response: PublishedResponse): Promise<Finding[]> {
      const findings = examineFile(manifest, response)
      if (findings.length > 0) return findings
      if (response.is !== 'text' || response.bytes === null)
        return fileWithoutResponse(manifest, 'the response is too large')
      await target.put(path, response.bytes)
      countFile(counts, response.bytes)
      return []
    },
    withoutResponse: (reason) => fileWithoutResponse(manifest, reason),
  }
  return async () => {
    const isStored = await hasObject(target, manifest.sha256)
    if (isStored) countFile(counts, null)
    return { checks: isStored ? [] : [check], findings: [] }
  }
}

/**
 * Compares the checkpoint of the target with the log of the host.
 *
 * @param bytes the checkpoint of the target; null if it has none
 * @returns false if the target is newer or has newer cosignatures, as a note says, or if the log is forked, as a finding says
 * @throws Refusal `storage_damaged` if the target's checkpoint or tiles are damaged, `copy_refused` if the target holds
 *   another log
 */
async function mayReplace(
  ports: CopyPorts,
  { note, tree, report }: HostLog & { tree: MerkleTree },
  run: HostRun,
  bytes: Uint8Array | null,
): Promise<boolean> {
  if (bytes === null) return true
  const text = utf8Text(bytes)
  const opened = openWith(note.policy, text)
  if (opened.problem !== null)
    throw storageDamaged(
      `${STATIC_CHECKPOINT} in the target is not a checkpoint of ${report.origin} (${opened.problem}); if the file is damaged, remove it and run the command again, otherwise choose another target`,
    )
  const { checkpoint } = opened
  const isNewer = checkpoint.size > tree.size
  const newest = isNewer ? await treeIn(ports.target, checkpoint) : tree
  if (forkOf(newest, isNewer ? note.checkpoint : checkpoint) !== null) {
    const { findings, fork } = await reportFork(ports, report.origin, text, note.text)
    report.fork = fork
    addFindings(run, findings)
    return false
  }
  if (isNewer)
    ports.onNote(
      `the target has ${checkpoint.size} entries and ${ports.published.base} only ${tree.size}; nothing was changed`,
    )
  if (isNewer) return false
  const lost = checkpoint.size === tree.size ? await witnessLost(ports.target, opened.note, note) : null
  if (lost !== null)
    ports.onNote(
      `the target has a newer cosignature of ${lost} than ${ports.published.base}; nothing was changed`,
    )
  return lost === null
}

/** Name of a witness, of the trusted policy or the target's, whose newest cosignature only the target's note has. */
async function witnessLost(
  target: StaticTree,
  there: Note,
  { parsedNote, policy }: HostNote,
): Promise<string | null> {
  const own = utf8Text(await target.get(STATIC_POLICY))
  const witnesses = [policy, own].flatMap((each) => {
    const parsed = parsePolicy(each)
    return parsed.problem === null ? parsed.policy.witnesses : []
  })
  return lostWitness(there, parsedNote, { witnesses })
}

async function treeIn(target: StaticTree, { size, root }: Checkpoint): Promise<MerkleTree> {
  const leaves: Uint8Array[] = []
  for (const tile of tilesOfSize(size).filter(({ level }) => level === 0)) {
    const hashes = parseTile((await target.get(staticTilePath(tile))) ?? new Uint8Array(), tile.width)
    leaves.push(...(hashes ?? []))
  }
  const tree = merkleTree(leaves)
  if (tree.size !== size || !areSameBytes(rootAt(tree, size), root))
    throw storageDamaged(
      `the tiles in the target are not those of its checkpoint of ${size} entries; mirror to an empty target`,
    )
  return tree
}
