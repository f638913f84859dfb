import { proveBytes } from '../../src/domain/year/envelope.ts'
import { reopenWorkspace } from './workspace.ts'

/** What stands in a data folder: everything in it proved, or the reason why it cannot be. */
export interface Standing {
  sound: boolean
  why: string
  publications: string[]
  gaps: string[]
  attempts: number
}

/** Proves a data folder as a new process would find it: chain, head, and the bytes of every publication. */
export async function audit(folder: string, asOfDay: string): Promise<Standing> {
  const workspace = reopenWorkspace(folder)
  const attempts = (await workspace.ledger.attempts(asOfDay)).length
  try {
    const { proved } = await workspace.year.read()
    for (const { manifest } of proved.timeline)
      proveBytes(manifest, await workspace.archive.get(manifest.sha256))
    return {
      sound: true,
      why: '',
      publications: proved.timeline.map(({ manifest }) => manifest.asOfDay),
      gaps: proved.entries.flatMap((entry) => (entry.kind === 'gap' ? [entry.asOfDay] : [])),
      attempts,
    }
  } catch (error) {
    return { sound: false, why: String(error), publications: [], gaps: [], attempts }
  }
}
