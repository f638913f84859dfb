import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createLogKey, openLogSigner } from '../../src/adapters/log-signer.ts'
import type { Finding } from '../../src/domain/year/finding.ts'
import type { Objects, SignedLog } from '../../src/domain/year/ports.ts'
import { formatPolicy } from '../../src/domain/year/log/signed-note.ts'
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

/** Sizes of the stored notes, ascending. */
export async function noteSizes(objects: Pick<Objects, 'logFiles'>): Promise<number[]> {
  const files = await objects.logFiles.list()
  return files.flatMap((file) => (file.kind === 'note' ? [file.size] : [])).sort((a, b) => a - b)
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
