import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import type { Day } from '../../src/domain/time.ts'
import { proveBytes } from '../../src/domain/year/envelope.ts'
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

/** Proves a data folder as a new process would find it: chain, head, and the bytes of every publication. */
export async function audit(folder: string, asOfDay: Day): Promise<Standing> {
  const workspace = reopenWorkspace(folder)
  const nothing = { publications: [], gaps: [], attempts: 0, orphans: 0, unfinished: 0 }
  try {
    const attempts = (await workspace.ledger.attempts(asOfDay)).length
    const { proved } = await workspace.year.read()
    for (const { manifest } of proved.timeline)
      proveBytes(manifest, await workspace.archive.get(manifest.sha256))
    const referred = new Set(proved.timeline.map(({ manifest }) => manifest.sha256))
    return {
      sound: true,
      why: '',
      publications: proved.timeline.map(({ manifest }) => manifest.asOfDay),
      gaps: proved.entries.flatMap((entry) => (entry.kind === 'gap' ? [entry.asOfDay] : [])),
      attempts,
      ...unreferred(workspace.objectsPath, referred),
    }
  } catch (error) {
    return { ...nothing, sound: false, why: String(error) }
  } finally {
    workspace.close()
  }
}

function unreferred(
  objectsPath: string,
  referred: ReadonlySet<string>,
): { orphans: number; unfinished: number } {
  const names = readdirSync(objectsPath, { recursive: true, encoding: 'utf8' }).map((path) => basename(path))
  const objects = names.filter((name) => /^[0-9a-f]{64}$/.test(name))
  return {
    orphans: objects.filter((name) => !referred.has(name)).length,
    unfinished: names.filter((name) => name.startsWith('.writing-')).length,
  }
}
