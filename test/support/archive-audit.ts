import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { Container } from '../../src/cli/container.ts'
import { readConfig } from '../../src/cli/settings/read-config.ts'
import type { Day } from '../../src/domain/time.ts'
import type { Finding } from '../../src/domain/year/finding.ts'
import { verifyArchive } from '../../src/jobs/verify-archive.ts'
import { reopenWorkspace } from './workspace.ts'

/** What stands in a data folder: everything in it proved, or the reason why it cannot be. */
export interface Standing {
  sound: boolean
  why: string
  publications: string[]
  gaps: string[]
  attempts: number
  /** Objects no publication refers to. */
  orphans: number
  /** Temporary files of writes that were cut. */
  unfinished: number
}

/**
 * Audits a data folder as `dash verify-archive` does, after the recovery any reader of it begins with: chain, heads, and
 * every publication.
 */
export async function audit(folder: string, asOfDay: Day): Promise<Standing> {
  const workspace = reopenWorkspace(folder)
  const nothing = { publications: [], gaps: [], attempts: 0, orphans: 0, unfinished: 0 }
  try {
    const attempts = (await workspace.ledger.attempts(asOfDay)).length
    const { rows } = await workspace.ledger.read()
    const findings = await findingsIn(folder)
    const damage = findings.filter(({ code }) => code !== 'orphan_object')
    const daysOf = (kind: string): string[] =>
      rows.filter((row) => row.kind === kind).map((row) => row.asOfDay ?? '')
    return {
      sound: damage.length === 0,
      why: damage.map(({ code, path, actual }) => `${code} ${path}: ${actual}`).join('; '),
      publications: daysOf('publication'),
      gaps: daysOf('gap'),
      attempts,
      orphans: findings.length - damage.length,
      unfinished: unfinishedIn(workspace.objectsPath),
    }
  } catch (error) {
    return { ...nothing, sound: false, why: String(error) }
  } finally {
    workspace.close()
  }
}

async function findingsIn(folder: string): Promise<Finding[]> {
  const container = new Container({ config: readConfig({ dataDir: folder }, {}, '/'), version: '0' })
  const { ledger, archive } = await container.auditors()
  const ports = {
    ledger,
    archive,
    clock: Date.now,
    random: Math.random,
    onProgress: () => undefined,
    onNote: () => undefined,
  }
  const { signal } = new AbortController()
  const whole = { sample: null, since: null, expectedHead: null, payloads: true, jobs: 1, signal }
  try {
    const { report, cause } = await verifyArchive(ports, whole)
    if (!report.complete) throw cause
    return report.findings
  } finally {
    await container.close()
  }
}

/** Temporary files of writes that were cut, which are no objects. */
function unfinishedIn(objectsPath: string): number {
  const names = readdirSync(objectsPath, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => basename(name).startsWith('.writing-')).length
}
