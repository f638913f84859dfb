import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createLogKey, openLogSigner } from '../../src/adapters/log-signer.ts'
import type { Objects } from '../../src/domain/ports.ts'
import type { LedgerRow } from '../../src/domain/year/ledger.ts'
import { forkOf, ledgerTree, logFileName, readStoredNote } from '../../src/domain/year/log-history.ts'
import { formatPolicy } from '../../src/domain/year/log-policy.ts'
import { consistencyProof, isConsistent } from '../../src/domain/year/merkle-tree.ts'
import type { Checkpoint, VerifierKey } from '../../src/domain/year/signed-note.ts'
import type { SignedLog } from '../../src/jobs/sign-checkpoint.ts'

/** Name of the log in tests. */
export const LOG_NAME = 'dash.example/tlog/year'

/** A log with a new key in a test's folder. */
export function signedLogIn(folder: string, name = LOG_NAME): SignedLog & { keyPath: string } {
  const keyPath = newLogKey(folder, name)
  const signer = openLogSigner(keyPath)
  return { signer, policy: formatPolicy(signer.key, `https://${name}`), keyPath }
}

/** Path of a new key in the folder `key` of a folder. */
function newLogKey(folder: string, name = LOG_NAME): string {
  mkdirSync(join(folder, 'key'))
  const keyPath = join(folder, 'key', 'log.key')
  createLogKey(keyPath, name, new Uint8Array(32).fill(7))
  return keyPath
}

/** The checkpoints of all stored notes, ascending by size. */
export async function storedCheckpoints(archive: Objects, key: VerifierKey): Promise<Checkpoint[]> {
  const files = await archive.logFiles.list()
  const checkpoints: Checkpoint[] = []
  for (const file of files) {
    if (file.kind !== 'note') continue
    const read = readStoredNote(await archive.logFiles.get(file), file.size, key)
    if (read.problem !== null) throw new Error(`${logFileName(file)} ${read.problem}`)
    checkpoints.push(read.checkpoint)
  }
  return checkpoints.sort((a, b) => a.size - b.size)
}

/** What is wrong with the checkpoints that were ever signed: each must fit the ledger, and every other one. */
export function inconsistencies(checkpoints: readonly Checkpoint[], rows: readonly LedgerRow[]): string[] {
  const tree = ledgerTree(rows)
  const forks = checkpoints.flatMap((checkpoint) => {
    const fork = forkOf(tree, checkpoint)
    return fork === null ? [] : [`checkpoint ${checkpoint.size}: ${fork}`]
  })
  if (forks.length > 0) return forks
  return checkpoints.flatMap((older) =>
    checkpoints
      .filter((newer) => newer.size >= older.size)
      .filter((newer) => !isConsistent(older, newer, consistencyProof(tree, older.size, newer.size)))
      .map((newer) => `checkpoints ${older.size} and ${newer.size} are not consistent`),
  )
}
