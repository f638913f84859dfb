import { Refusal } from '../domain/refusal.ts'
import type { Finding, DamageSample, Mutation } from '../domain/year/finding.ts'
import type { KeptHead } from '../domain/year/ledger.ts'

/** What one audit said; `cause` is what ended it early, or null. */
export interface SelfTestAudit {
  report: { ok: boolean; findings: readonly Finding[] }
  cause: unknown
}

export interface SelfTestPorts {
  makeSample: () => Promise<DamageSample>
  /** The audit of the archive in a folder, by the very code that audits the operator's. */
  audit: (folder: string, expectedHead: KeptHead | null) => Promise<SelfTestAudit>
  onProgress: (progress: { mutations: number; ofMutations: number }) => void
}

export interface SelfTestReport {
  mutations: number
  detected: number
  /** What was not noticed for what it is, and what was reported instead. */
  missed: { name: string; reported: string[] }[]
}

/**
 * Damages a private archive in every way there is a mutation for, and audits each (docs/auditing.md). The
 * operator's archive is not touched.
 *
 * @param signal ends the test between two mutations, with its reason
 * @throws when the undamaged sample is not clean: nothing could be told from it
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
  throw new Error(`the self-test's own sample is not clean: ${reported.join(', ') || 'not ok'}`, {
    cause: audited.cause,
  })
}

/** Reported under a code that fits, and with the verdict that follows from it. */
function isDetected(mutation: Mutation, audited: SelfTestAudit): boolean {
  const expected: readonly string[] = mutation.expects
  return (
    audited.report.ok === mutation.sound && reportedCodes(audited).some((code) => expected.includes(code))
  )
}

/** Codes of the findings, each once, and of the refusal that ended the audit; other ends are told as faults. */
function reportedCodes({ report, cause }: SelfTestAudit): string[] {
  const codes = new Set<string>(report.findings.map(({ code }) => code))
  if (cause instanceof Refusal) codes.add(cause.code)
  else if (cause !== null) codes.add(`fault: ${cause instanceof Error ? cause.message : 'no error'}`)
  return [...codes]
}
