import { describe, expect, test } from 'vitest'
import { formatPolicy, parsePolicy } from '../../../../src/domain/year/log/log-policy.ts'
import { parseVerifierKey } from '../../../../src/domain/year/log/signed-note.ts'
import type { VerifierKey } from '../../../../src/domain/year/log/signed-note.ts'
import { LOG_VKEY } from '../log-vectors.ts'

const KEY = parseVerifierKey(LOG_VKEY) as VerifierKey

/** Key of a witness: another type of signature. */
const WITNESS_VKEY = 'witness.example/w1+df1c0a35+BIE5dw6ofRdfVqNUZsNMfszLjYqRtO43ol32D1uPybOU'

describe('policies', () => {
  test.each(['https://dash.example/tlog/year', null])(
    'a policy with the URL %s is parsed from its text',
    (url) => {
      expect(parsePolicy(formatPolicy([KEY], url))).toEqual({ problem: null, keys: [KEY] })
    },
  )

  test('a policy may contain comments, empty lines, tabs and spaces', () => {
    const text = `# trusted keys\n\n \t log\t ${LOG_VKEY} \n\t# none\nquorum none\n`
    expect(parsePolicy(text)).toEqual({ problem: null, keys: [KEY] })
  })

  const QUORUM_LINE = 'must be the only quorum line: quorum none'

  test.each([
    ['', 'the quorum line is missing'],
    [`log ${LOG_VKEY}\n`, 'the quorum line is missing'],
    ['quorum none', 'the last line does not end with a newline'],
    ['quorum none\nquorum none\n', `line 2 ${QUORUM_LINE}`],
    ['quorum\n', `line 1 ${QUORUM_LINE}`],
    ['quorum none w1\n', `line 1 ${QUORUM_LINE}`],
    ['quorum w1\n', `line 1 ${QUORUM_LINE}`],
    ['Quorum none\n', 'line 1 begins with "Quorum"; expected log or quorum none'],
    ['quorum none\r\n', 'line 1 contains a control character'],
    [`log ${WITNESS_VKEY}\n`, 'line 1 needs the verifier key of a log'],
    ['log\n', 'line 1 needs the verifier key of a log'],
    [`log ${LOG_VKEY} https://a b\n`, 'line 1 has extra items after the key and the URL'],
    [`log ${LOG_VKEY}\nlog ${LOG_VKEY}\n`, 'line 2 repeats a key of an earlier line'],
  ])('the policy %j is refused: %s', (text, problem) => {
    expect(parsePolicy(text)).toEqual({ problem })
  })

  test.each(['witness', 'group'])(
    'a policy that requires others to sign, by a line %s, is refused',
    (keyword) => {
      const text = `log ${LOG_VKEY}\n${keyword} w1 ${WITNESS_VKEY}\nquorum w1\n`
      const problem = `line 2 begins with "${keyword}"; expected log or quorum none`
      expect(parsePolicy(text)).toEqual({ problem })
    },
  )
})
