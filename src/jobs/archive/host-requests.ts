import { Refusal } from '../../domain/refusal.ts'
import type { Finding } from '../../domain/year/finding.ts'
import type { WithoutText, PublishedRefusal, PublishedResponse } from '../../domain/year/published-ledger.ts'

/** Most findings of one host; more of them only use memory. */
const FINDINGS_MAX = 1_000

/** Consecutive requests without a response after which the host counts as unavailable. */
const UNANSWERED_MAX = 5

/** State of an audit of another host. */
export interface HostRun {
  findings: Finding[]
  /** Number of fetched bodies, and their total bytes. */
  objects: number
  bytes: number
  /** Concurrent publications. */
  jobs: number
  signal: AbortSignal
  onProgress: (done: number, total: number) => void
}

/** One request, and the rule for its response. */
export interface HostCheck {
  send(signal: AbortSignal): Promise<PublishedResponse>
  examine(response: PublishedResponse): Finding[]
  /** The findings if there is no response. */
  withoutResponse(reason: string): Finding[]
}

/** Creates the checks of one publication, sent one after another. */
export type CheckRound = () => { checks: readonly HostCheck[]; findings: readonly Finding[] }

export function unavailable(reason: string): Refusal<PublishedRefusal> {
  return new Refusal('source_unavailable', reason)
}

/** Returns the refusal of a response that neither has a file of the host nor says that there is none. */
export function unexpectedResponse(
  base: string,
  path: string,
  { description }: WithoutText,
): Refusal<PublishedRefusal> {
  return unavailable(`the host ${base} responded with ${description} for ${path}; run the audit again later`)
}

/** Returns the refusal of an address without an archive; nothing that it sends is damage. */
export function foreignHost(base: string, path: string, response: string): Refusal {
  return new Refusal(
    'usage',
    `there is no archive at ${base} (${response} for ${path}); give the address of a dash server or of an exported folder`,
  )
}

/** @throws Refusal `source_unavailable` when the host has too many findings */
export function addFindings(run: HostRun, findings: readonly Finding[]): void {
  const remaining = FINDINGS_MAX - run.findings.length
  run.findings.push(...findings.slice(0, remaining))
  if (findings.length > remaining) throw tooManyFindings()
}

function tooManyFindings(): Refusal<PublishedRefusal> {
  return unavailable(`the host has more than ${FINDINGS_MAX} findings; the rest was not audited`)
}

/** Sends the requests of all rounds and adds the findings to the run, also after an error. */
export async function sendAll(run: HostRun, rounds: readonly CheckRound[]): Promise<void> {
  const { jobs, signal, onProgress } = run
  /** Findings by round, which keeps the order of the ledger. */
  const found = rounds.map((): Finding[] => [])
  const stopped = new AbortController()
  const until = AbortSignal.any([signal, stopped.signal])
  const state = { unansweredInARow: 0, findings: 0, done: 0 }
  const waiting = rounds.entries()
  const add = (index: number, findings: readonly Finding[]): void => {
    found[index]?.push(...findings)
    state.findings += findings.length
    if (state.findings > FINDINGS_MAX) throw tooManyFindings()
  }
  const work = async (): Promise<void> => {
    for (const [index, round] of waiting) {
      const { checks, findings } = round()
      add(index, findings)
      for (const check of checks) add(index, await sendCheck(run, check, state, until))
      state.done += 1
      onProgress(state.done, rounds.length)
    }
  }
  signal.throwIfAborted()
  try {
    await Promise.all(Array.from({ length: jobs }, work))
  } catch (error) {
    stopped.abort(error)
    throw error
  } finally {
    const remaining = FINDINGS_MAX - run.findings.length
    run.findings.push(...distinct(found.flat()).slice(0, remaining))
  }
}

/** A missing publication is one finding, although several requests find it. */
function distinct(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((one) => [JSON.stringify(one), one])).values()]
}

/**
 * Sends one request and examines the response. A missing response is a finding.
 *
 * @throws after too many consecutive requests without a response
 */
async function sendCheck(
  run: HostRun,
  check: HostCheck,
  state: { unansweredInARow: number },
  signal: AbortSignal,
): Promise<Finding[]> {
  signal.throwIfAborted()
  let response: PublishedResponse
  try {
    response = await check.send(signal)
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof Refusal) || error.code !== 'source_unavailable') throw error
    state.unansweredInARow += 1
    if (state.unansweredInARow >= UNANSWERED_MAX) throw error
    return check.withoutResponse(error.detail ?? error.code)
  }
  state.unansweredInARow = 0
  if (response.is === 'text') run.objects += 1
  run.bytes += response.byteSize
  return check.examine(response)
}
