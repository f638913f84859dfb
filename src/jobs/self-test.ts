import { Refusal } from '../domain/refusal.ts'
import type { Finding, DamageSample, Mutation } from '../domain/year/finding.ts'
import type { KeptHead } from '../domain/year/ledger.ts'

/** Result of one audit; `cause` is the error that ended it early, or null. */
export interface SelfTestAudit {
  report: { ok: boolean; findings: readonly Finding[] }
  cause: unknown
}

export interface SelfTestPorts {
  makeSample: () => Promise<DamageSample>
  /** Audits the archive in a folder with the code that audits the operator's. */
  audit: (folder: string, expectedHead: KeptHead | null) => Promise<SelfTestAudit>
  onProgress: (progress: { mutations: number; ofMutations: number }) => void
}

export interface SelfTestReport {
  mutations: number
  detected: number
  /** Mutations that were not detected, and the codes reported instead. */
  missed: { name: string; reported: string[] }[]
}

/**
 * Applies every mutation to a private archive and audits each result (docs/auditing.md). The operator's archive is not
 * touched.
 *
 * @param signal ends the test between two mutations, with its reason
 * @throws when the undamaged sample is not clean, which makes the test meaningless
 */
export async function selfTest(
  { makeSample, audit, onProgress }: SelfTestPorts,
  signal: AbortSignal,
): Promise<SelfTestReport> {
  signal.throwIfAborted()
  const sample = await makeSample()
  try {
    requireClean(await audit(await sample.restore(), sample.keptHead))
    const missed: SelfTestReport['missed'] = []
    for (const [index, mutation] of sample.mutations.entries()) {
      signal.throwIfAborted()
      const folder = await sample.restore()
      await mutation.apply(folder)
      const audited = await audit(folder, mutation.needsKeptHead ? sample.keptHead : null)
      signal.throwIfAborted()
      if (!isDetected(mutation, audited))
        missed.push({ name: mutation.name, reported: reportedCodes(audited) })
      onProgress({ mutations: index + 1, ofMutations: sample.mutations.length })
    }
    const mutations = sample.mutations.length
    return { mutations, detected: mutations - missed.length, missed }
  } finally {
    await sample.remove()
  }
}

function requireClean(audited: SelfTestAudit): void {
  const reported = reportedCodes(audited)
  if (audited.report.ok && reported.length === 0) return
  throw new Error(`the undamaged sample of the self-test has findings: ${reported.join(', ') || 'not ok'}`, {
    cause: audited.cause,
  })
}

/** True when an expected code and the expected overall result were reported. */
function isDetected(mutation: Mutation, audited: SelfTestAudit): boolean {
  const expected: readonly string[] = mutation.expects
  return (
    audited.report.ok === mutation.sound && reportedCodes(audited).some((code) => expected.includes(code))
  )
}

/** Distinct codes of the findings and of the refusal that ended the audit; other errors count as faults. */
function reportedCodes({ report, cause }: SelfTestAudit): string[] {
  const codes = new Set<string>(report.findings.map(({ code }) => code))
  if (cause instanceof Refusal) codes.add(cause.code)
  else if (cause !== null) codes.add(`fault: ${cause instanceof Error ? cause.message : 'no error'}`)
  return [...codes]
}
