import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createLogKey, openLogSigner } from '../../src/adapters/log-signer.ts'
import type { Finding } from '../../src/domain/year/finding.ts'
import type { Objects, SignedLog } from '../../src/domain/year/ports.ts'
import type { LedgerRow } from '../../src/domain/year/ledger.ts'
import { forkOf, ledgerTree, logFileName, readStoredNote } from '../../src/domain/year/log/log-history.ts'
import { formatPolicy } from '../../src/domain/year/log/signed-note.ts'
import type { Checkpoint, VerifierKey } from '../../src/domain/year/log/signed-note.ts'
import type { VerifyReport } from '../../src/jobs/archive/audit.ts'
import { run } from './dash.ts'

/** Name of the log in tests. */
export const LOG_NAME = 'dash.example/tlog/year'

const keyPathIn = (folder: string): string => join(folder, 'key', 'log.key')

/** Creates a log with a new key in a test's folder. */
export function signedLogIn(folder: string, name = LOG_NAME): SignedLog & { keyPath: string } {
  const keyPath = keyPathIn(folder)
  mkdirSync(dirname(keyPath))
  createLogKey(keyPath, name, new Uint8Array(32).fill(7))
  const signer = openLogSigner(keyPath)
  return { signer, policy: formatPolicy(signer.keys, `https://${name}`), keyPath }
}

/** Returns the settings for the key in a folder; empty without a key. */
export function logSettings(folder: string): Record<string, string> {
  if (!existsSync(keyPathIn(folder))) return {}
  return {
    DASH_LOG_KEY_FILE: keyPathIn(folder),
    DASH_BASE_URL: `https://${LOG_NAME.split('/')[0]}`,
  }
}

/** Reads the checkpoints of all stored notes, ascending by size. */
export async function storedCheckpoints(objects: Objects, key: VerifierKey): Promise<Checkpoint[]> {
  const files = await objects.logFiles.list()
  const checkpoints: Checkpoint[] = []
  for (const file of files) {
    if (file.kind !== 'note') continue
    const read = readStoredNote(await objects.logFiles.get(file), file.size, [key])
    if (read.problem !== null) throw new Error(`${logFileName(file)} ${read.problem}`)
    checkpoints.push(read.checkpoint)
  }
  return checkpoints.sort((a, b) => a.size - b.size)
}

/** Returns one sentence for each signed checkpoint that does not match the ledger; those that match it match each other. */
function inconsistencies(checkpoints: readonly Checkpoint[], rows: readonly LedgerRow[]): string[] {
  const tree = ledgerTree(rows)
  return checkpoints.flatMap((checkpoint) => {
    const fork = forkOf(tree, checkpoint)
    return fork === null ? [] : [`checkpoint ${checkpoint.size}: ${fork}`]
  })
}

/** Returns the size of the newest stored note, and all inconsistencies of the signed checkpoints. */
export async function auditLog(
  { signer }: SignedLog,
  objects: Objects,
  rows: readonly LedgerRow[],
): Promise<{ newest: number; problems: string[] }> {
  const stored = await storedCheckpoints(objects, signer.key)
  const last = await signer.lastSigned()
  const newest = stored.at(-1)?.size ?? 0
  const unrecorded =
    last.size < newest ? [`note ${newest} is stored, but the record has only size ${last.size}`] : []
  return { newest, problems: [...inconsistencies([...stored, last], rows), ...unrecorded] }
}

/** Findings of `dash verify-archive` in a data folder, against a head file if one is given. */
export async function findingsIn(folder: string, headFile?: string): Promise<Finding[]> {
  const flags = ['--data-dir', folder, '--payloads', '--json']
  if (headFile !== undefined) flags.push('--expect-head', headFile)
  const { stdout, stderr } = await run(['verify-archive', ...flags], { env: logSettings(folder) })
  const report = JSON.parse(stdout) as VerifyReport
  if (!report.complete) throw new Error(stderr)
  return report.findings
}
