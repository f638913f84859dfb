import { areSameBytes } from '../../digest.ts'
import {
  formatVerifierKey,
  openCheckpoint,
  parseDecimal,
  parseVerifierKey,
  verifyNote,
} from './signed-note.ts'
import type { Checkpoint, Note, VerifierKey } from './signed-note.ts'

/** Policies of a verifier (C2SP tlog-policy): trusted keys of logs and witnesses, and the quorum of witnesses. */

/** Key of a log or a witness, and its URL; null if the policy does not state one. */
interface PolicyParty {
  key: VerifierKey
  url: string | null
}

/** Rule of a policy: one witness, or at least `atLeast` members of a group. */
type Quorum = { witness: VerifierKey } | { atLeast: number; of: Quorum[] }

export interface LogPolicy {
  logs: PolicyParty[]
  witnesses: PolicyParty[]
  /** Null if no witness is required. */
  quorum: Quorum | null
}

/** The lines of a policy after its logs if it names no witnesses. */
const NO_WITNESSES = 'quorum none\n'

/**
 * Formats a policy for one log, any of whose keys may sign.
 *
 * @param witnesses the other lines of the policy: witnesses, groups and the quorum
 */
export function formatPolicy(
  keys: readonly VerifierKey[],
  url: string | null,
  witnesses = NO_WITNESSES,
): string {
  const lines = keys.map((key) => `log ${formatVerifierKey(key)}${url === null ? '' : ` ${url}`}\n`)
  return lines.join('') + witnesses
}

/** Definitions in the lines of a policy that have been read. */
interface Draft extends LogPolicy {
  /** Witnesses and groups by their names. */
  names: Map<string, Quorum>
  /** Names that are already members of a group. */
  members: Set<string>
  hasQuorum: boolean
}

/**
 * Parses a policy.
 *
 * @returns the policy, or a `problem` that names the invalid line
 */
export function parsePolicy(text: string): { problem: null; policy: LogPolicy } | { problem: string } {
  const logs: PolicyParty[] = []
  const witnesses: PolicyParty[] = []
  const draft: Draft = {
    logs,
    witnesses,
    quorum: null,
    names: new Map(),
    members: new Set(),
    hasQuorum: false,
  }
  for (const [index, line] of text.split('\n').entries()) {
    const problem = readLine(draft, line)
    if (problem !== null) return { problem: `line ${index + 1} ${problem}` }
  }
  if (!draft.hasQuorum) return { problem: 'the quorum line is missing' }
  if (!text.endsWith('\n')) return { problem: 'the last line does not end with a newline' }
  return { problem: null, policy: { logs, witnesses, quorum: draft.quorum } }
}

const CONTROL_BUT_TAB = /[^\t\P{Cc}]/u

/** Reason why a line is invalid; null if it is valid. */
type Problem = string | null

function readLine(draft: Draft, line: string): Problem {
  if (CONTROL_BUT_TAB.test(line)) return 'contains a control character'
  if (/^[ \t]*(#|$)/.test(line)) return null
  const [keyword = '', ...items] = line.split(/[ \t]+/).filter((item) => item !== '')
  switch (keyword) {
    case 'log':
      return addLog(draft, items)
    case 'witness':
      return addWitness(draft, items)
    case 'group':
      return addGroup(draft, items)
    case 'quorum':
      return setQuorum(draft, items)
    default:
      return `begins with ${JSON.stringify(keyword.slice(0, 40))}; expected log, witness, group or quorum`
  }
}

function addLog({ logs }: Draft, [vkey = '', url, ...more]: string[]): Problem {
  if (more.length > 0) return 'has extra items after the key and the URL'
  const key = parseVerifierKey(vkey)
  return key?.type === 'log' ? addParty(logs, { key, url: url ?? null }) : 'needs the verifier key of a log'
}

function addWitness(draft: Draft, [name = '', vkey = '', url, ...more]: string[]): Problem {
  if (more.length > 0) return 'has extra items after the name, the key and the URL'
  const key = parseVerifierKey(vkey)
  if (key?.type !== 'witness') return 'needs the verifier key of a witness'
  return addParty(draft.witnesses, { key, url: url ?? null }) ?? define(draft, name, { witness: key })
}

function addParty(parties: PolicyParty[], party: PolicyParty): Problem {
  const bytes = party.key.publicKey
  if (parties.some(({ key }) => areSameBytes(key.publicKey, bytes))) return 'repeats a key of an earlier line'
  parties.push(party)
  return null
}

const NO_QUORUM = 'none'

function define({ names }: Draft, name: string, quorum: Quorum): Problem {
  if (name === NO_QUORUM || names.has(name)) return `defines ${JSON.stringify(name)} again`
  names.set(name, quorum)
  return null
}

function addGroup(draft: Draft, [name = '', threshold = '', ...members]: string[]): Problem {
  const { length } = members
  const atLeast = threshold === 'any' ? 1 : threshold === 'all' ? length : (parseDecimal(threshold) ?? 0)
  if (atLeast < 1 || atLeast > length)
    return 'needs a name, a threshold (any, all, or a number from 1 to the number of members) and members'
  const of: Quorum[] = []
  for (const member of members) {
    const quorum = draft.names.get(member)
    if (!quorum) return undefinedName(member)
    if (draft.members.has(member))
      return `adds ${JSON.stringify(member)}, which is already a member of a group`
    draft.members.add(member)
    of.push(quorum)
  }
  return define(draft, name, { atLeast, of })
}

function undefinedName(name: string): Problem {
  return `refers to ${JSON.stringify(name)}, which no earlier line defines`
}

function setQuorum(draft: Draft, [name = '', ...more]: string[]): Problem {
  if (draft.hasQuorum || more.length > 0) return 'must be the only quorum line and name one quorum'
  const quorum = name === NO_QUORUM ? null : draft.names.get(name)
  if (quorum === undefined) return undefinedName(name)
  draft.hasQuorum = true
  draft.quorum = quorum
  return null
}

/** A witness that signed a note. */
interface Cosigner {
  name: string
  /** Time of its newest cosignature, in seconds since 1970. */
  time: number
}

/** Result of evaluating a policy: the witnesses that signed and whether they meet the quorum, or a problem. */
export type PolicyVerdict = { problem: string } | { problem: null; cosigners: Cosigner[]; hasQuorum: boolean }

/**
 * Verifies the cosignatures of a note against the witnesses and the quorum of a policy. The signature of the log is not
 * verified here.
 *
 * @param since only cosignatures of this time or later count for the quorum, in seconds since 1970
 */
export function evaluatePolicy({ witnesses, quorum }: LogPolicy, note: Note, since = 0): PolicyVerdict {
  const times = new Map<VerifierKey, number>()
  for (const { key } of witnesses) {
    const verdict = verifyNote(note, key)
    if (verdict.is === 'invalid') return { problem: `the cosignature of ${key.name} is invalid` }
    if (verdict.is === 'valid') times.set(key, Math.max(...verdict.times))
  }
  const isMet = (rule: Quorum): boolean =>
    'witness' in rule
      ? (times.get(rule.witness) ?? -1) >= since
      : rule.of.filter(isMet).length >= rule.atLeast
  const cosigners = [...times].map(([{ name }, time]) => ({ name, time }))
  return { problem: null, cosigners, hasQuorum: quorum === null || isMet(quorum) }
}

/** A checkpoint that a key of a policy signed, and the result of evaluating the policy's witnesses. */
export interface TrustedNote {
  checkpoint: Checkpoint
  note: Note
  cosigners: Cosigner[]
  /** True if enough witnesses cosigned it. */
  hasQuorum: boolean
}

/** Opens a signed checkpoint with a policy. A quorum that is not met is reported, but is no problem. */
export function openTrusted(
  text: string,
  policy: LogPolicy,
): { problem: string } | ({ problem: null } & TrustedNote) {
  const opened = openCheckpoint(
    text,
    policy.logs.map(({ key }) => key),
  )
  if (opened.problem !== null) return opened
  const { checkpoint, note } = opened
  const verdict = evaluatePolicy(policy, note)
  return verdict.problem === null ? { ...verdict, checkpoint, note } : verdict
}

/**
 * Compares two notes of the same checkpoint.
 *
 * @returns the name of a witness whose newest cosignature is missing in `later`; null if `later` may replace `earlier`
 */
export function lostWitness(
  earlier: Note,
  later: Note,
  { witnesses }: Pick<LogPolicy, 'witnesses'>,
): string | null {
  const lost = witnesses.find(({ key }) => newestTime(earlier, key) > newestTime(later, key))
  return lost?.key.name ?? null
}

/** Time of a witness's newest cosignature; 0 without a valid one. */
function newestTime(note: Note, witness: VerifierKey): number {
  const verdict = verifyNote(note, witness)
  return verdict.is === 'valid' ? Math.max(...verdict.times) : 0
}
