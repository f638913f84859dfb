import { areSameBytes } from '../../digest.ts'
import { formatVerifierKey, parseDecimal, parseVerifierKey, verifyNote } from './signed-note.ts'
import type { Note, VerifierKey } from './signed-note.ts'

/** Whom a verifier believes (C2SP tlog-policy): the keys of logs and witnesses, and how many witnesses are enough. */

/** A log or a witness, and where it is reached; null: the policy does not say. */
interface PolicyParty {
  key: VerifierKey
  url: string | null
}

/** A rule of a policy: one witness, or so many members of a group. */
type Quorum = { witness: VerifierKey } | { atLeast: number; of: Quorum[] }

export interface LogPolicy {
  logs: PolicyParty[]
  witnesses: PolicyParty[]
  /** Null: no witness is needed. */
  quorum: Quorum | null
}

/** The text of a policy for one log without witnesses. */
export function formatPolicy(key: VerifierKey, url: string | null): string {
  return `log ${formatVerifierKey(key)}${url === null ? '' : ` ${url}`}\nquorum none\n`
}

/** The definitions in the lines of a policy read so far. */
interface Draft extends LogPolicy {
  /** Witnesses and groups by their names. */
  names: Map<string, Quorum>
  /** Names that are members of a group already. */
  members: Set<string>
  hasQuorum: boolean
}

/**
 * The policy of a text.
 *
 * @returns `problem`, naming the line, for a text that is not a policy
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
  if (!draft.hasQuorum) return { problem: 'it has no quorum line' }
  if (!text.endsWith('\n')) return { problem: 'the last line has no newline at its end' }
  return { problem: null, policy: { logs, witnesses, quorum: draft.quorum } }
}

const CONTROL_BUT_TAB = /[^\t\P{Cc}]/u

/** Each reader of a line returns why it cannot be part of a policy, or null. */
type Problem = string | null

function readLine(draft: Draft, line: string): Problem {
  if (CONTROL_BUT_TAB.test(line)) return 'has a control character'
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
      return `begins with ${JSON.stringify(keyword)}, not with log, witness, group or quorum`
  }
}

function addLog({ logs }: Draft, [vkey = '', url, ...more]: string[]): Problem {
  if (more.length > 0) return 'has more than a key and a URL'
  const key = parseVerifierKey(vkey)
  return key?.type === 'log' ? addParty(logs, { key, url: url ?? null }) : 'has no key of a log'
}

function addWitness(draft: Draft, [name = '', vkey = '', url, ...more]: string[]): Problem {
  if (more.length > 0) return 'has more than a name, a key and a URL'
  const key = parseVerifierKey(vkey)
  if (key?.type !== 'witness') return 'has no key of a witness'
  return addParty(draft.witnesses, { key, url: url ?? null }) ?? define(draft, name, { witness: key })
}

function addParty(parties: PolicyParty[], party: PolicyParty): Problem {
  const bytes = party.key.publicKey
  if (parties.some(({ key }) => areSameBytes(key.publicKey, bytes))) return 'has a key that was given before'
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
    if (draft.members.has(member)) return `has ${JSON.stringify(member)}, which is a member already`
    draft.members.add(member)
    of.push(quorum)
  }
  return define(draft, name, { atLeast, of })
}

function undefinedName(name: string): Problem {
  return `refers to ${JSON.stringify(name)}, which no line before it defines`
}

function setQuorum(draft: Draft, [name = '', ...more]: string[]): Problem {
  if (draft.hasQuorum || more.length > 0) return 'must name one quorum, once'
  const quorum = name === NO_QUORUM ? null : draft.names.get(name)
  if (quorum === undefined) return undefinedName(name)
  draft.hasQuorum = true
  draft.quorum = quorum
  return null
}

/** A witness that signed a note. */
interface Cosigner {
  name: string
  /** The newest time it signed at, in seconds since 1970. */
  time: number
}

/** The witnesses of a policy that signed a note, and whether they are enough; or whose signature is invalid. */
export type PolicyVerdict = { problem: string } | { problem: null; cosigners: Cosigner[]; hasQuorum: boolean }

export function evaluatePolicy({ witnesses, quorum }: LogPolicy, note: Note): PolicyVerdict {
  const times = new Map<VerifierKey, number>()
  for (const { key } of witnesses) {
    const verdict = verifyNote(note, key)
    if (verdict.is === 'invalid') return { problem: `the cosignature of ${key.name} is invalid` }
    if (verdict.is === 'valid') times.set(key, Math.max(...verdict.times))
  }
  const isMet = (rule: Quorum): boolean =>
    'witness' in rule ? times.has(rule.witness) : rule.of.filter(isMet).length >= rule.atLeast
  const cosigners = [...times].map(([{ name }, time]) => ({ name, time }))
  return { problem: null, cosigners, hasQuorum: quorum === null || isMet(quorum) }
}
