import { areSameBytes } from '../../digest.ts'
import { formatVerifierKey, parseVerifierKey } from './signed-note.ts'
import type { VerifierKey } from './signed-note.ts'

/**
 * Policies of a reader (C2SP tlog-policy): the keys of a log to trust. A policy that requires the signatures of others is
 * refused, because nothing verifies them.
 */

const NO_QUORUM = 'quorum none\n'

/** Formats a policy for one log, any of whose keys may sign. */
export function formatPolicy(keys: readonly VerifierKey[], url: string | null): string {
  const lines = keys.map((key) => `log ${formatVerifierKey(key)}${url === null ? '' : ` ${url}`}\n`)
  return lines.join('') + NO_QUORUM
}

/**
 * Parses a policy.
 *
 * @returns the trusted keys, or a `problem` that names the invalid line
 */
export function parsePolicy(text: string): { problem: null; keys: VerifierKey[] } | { problem: string } {
  const draft: Draft = { keys: [], hasQuorum: false }
  for (const [index, line] of text.split('\n').entries()) {
    const problem = readLine(draft, line)
    if (problem !== null) return { problem: `line ${index + 1} ${problem}` }
  }
  if (!draft.hasQuorum) return { problem: 'the quorum line is missing' }
  if (!text.endsWith('\n')) return { problem: 'the last line does not end with a newline' }
  return { problem: null, keys: draft.keys }
}

/** The lines of a policy that have been read. */
interface Draft {
  keys: VerifierKey[]
  hasQuorum: boolean
}

/** Reason why a line is invalid; null if it is valid. */
type Problem = string | null

const CONTROL_BUT_TAB = /[^\t\P{Cc}]/u

function readLine(draft: Draft, line: string): Problem {
  if (CONTROL_BUT_TAB.test(line)) return 'contains a control character'
  if (/^[ \t]*(#|$)/.test(line)) return null
  const [keyword = '', ...items] = line.split(/[ \t]+/).filter((item) => item !== '')
  if (keyword === 'log') return addLog(draft, items)
  if (keyword === 'quorum') return setQuorum(draft, items)
  return `begins with ${JSON.stringify(keyword.slice(0, 40))}; expected log or quorum none`
}

function addLog({ keys }: Draft, [vkey = '', _url, ...more]: string[]): Problem {
  if (more.length > 0) return 'has extra items after the key and the URL'
  const key = parseVerifierKey(vkey)
  if (key === null) return 'needs the verifier key of a log'
  if (keys.some(({ publicKey }) => areSameBytes(publicKey, key.publicKey)))
    return 'repeats a key of an earlier line'
  keys.push(key)
  return null
}

function setQuorum(draft: Draft, items: string[]): Problem {
  if (draft.hasQuorum || items.join(' ') !== 'none') return 'must be the only quorum line: quorum none'
  draft.hasQuorum = true
  return null
}
