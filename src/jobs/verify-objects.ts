import type { ReadAhead } from '../domain/ports.ts'
import { examineSeenObject, objectFindings, objectPath } from '../domain/year/finding.ts'
import type { Finding, ObjectOutcome } from '../domain/year/finding.ts'
import type { Manifest } from '../domain/year/ledger.ts'
import type { VerifyOptions, VerifyPorts } from './verify-archive.ts'

type Examination = 'identity' | 'whole'

/** What an audit has found so far, and what it works with. */
export interface ObjectsRun {
  ports: VerifyPorts
  options: VerifyOptions
  findings: Finding[]
  /** Objects and bytes read. */
  objects: number
  bytes: number
}

/**
 * Examines the objects of manifests, and once more those that do not hold.
 *
 * @param ahead objects that are being read already, whichever they are; it is used up
 */
export async function examineObjects(
  run: ObjectsRun,
  manifests: readonly Manifest[],
  examination: Examination,
  ahead: ReadAhead | null,
): Promise<void> {
  const failed: Failed[] = []
  const ofObjects = run.objects + manifests.length
  try {
    for await (const batch of readFirst(run, manifests, examination, ahead)) {
      for (const { index, outcome } of batch) {
        const manifest = manifests[index] as Manifest
        const findings = objectFindings(manifest, outcome)
        if (findings.length > 0) failed.push({ index, manifest, findings })
        run.objects += 1
        if (outcome.found === 'bytes') run.bytes += outcome.byteSize
      }
      run.ports.onProgress({
        objects: run.objects,
        ofObjects,
        bytes: run.bytes,
        findings: run.findings.length + failed.length,
      })
    }
  } catch (error) {
    // What was found stands, although nothing can be read a second time now.
    run.findings.push(...failed.flatMap(({ findings }) => findings))
    throw error
  }
  await examineAgain(
    run,
    failed.sort((a, b) => a.index - b.index),
    examination,
  )
}

interface Failed {
  index: number
  manifest: Manifest
  findings: Finding[]
}

type Outcomes = { index: number; outcome: ObjectOutcome }[]

/** Each object once: by what was seen of it ahead where that tells, all others with their manifests. */
async function* readFirst(
  { ports, options }: ObjectsRun,
  manifests: readonly Manifest[],
  examination: Examination,
  ahead: ReadAhead | null,
): AsyncGenerator<Outcomes> {
  const open = new Map<string, number[]>()
  for (const [index, { sha256 }] of manifests.entries()) {
    const key = objectPath(sha256)
    const same = open.get(key)
    if (same) same.push(index)
    else open.set(key, [index])
  }
  if (ahead !== null) {
    for await (const batch of ahead.seen(options.signal)) {
      const told: Outcomes = []
      for (const { key, seen } of batch) {
        const left: number[] = []
        for (const index of open.get(key) ?? []) {
          const outcome = examineSeenObject(manifests[index] as Manifest, seen)
          if (outcome === null) left.push(index)
          else told.push({ index, outcome })
        }
        open.set(key, left)
      }
      yield told
    }
  }
  const rest = [...open.values()].flat()
  const asked = rest.map((index) => manifests[index] as Manifest)
  for await (const batch of ports.archive.examine(asked, examination, options.jobs, options.signal)) {
    yield batch.map(({ index, outcome }) => ({ index: rest[index] as number, outcome }))
  }
}

/** Once more: a disk or a network that fails now and then is told apart from damage. */
async function examineAgain(
  run: ObjectsRun,
  failed: readonly Failed[],
  examination: Examination,
): Promise<void> {
  const { archive, onNote } = run.ports
  const { jobs, signal } = run.options
  const manifests = failed.map(({ manifest }) => manifest)
  const settled = new Set<number>()
  try {
    for await (const batch of archive.examine(manifests, examination, jobs, signal)) {
      for (const { index, outcome } of batch) {
        const manifest = manifests[index] as Manifest
        const findings = objectFindings(manifest, outcome)
        settled.add(index)
        run.findings.push(...findings)
        if (findings.length > 0) continue
        const [first] = failed[index]?.findings ?? []
        onNote(
          `${objectPath(manifest.sha256)} is sound at the second reading, but not at the first (${first?.code}): look at the disk, the memory or the network`,
        )
      }
    }
  } finally {
    // What could not be read again stands as it was found.
    for (const [index, { findings }] of failed.entries())
      if (!settled.has(index)) run.findings.push(...findings)
  }
}
