import { describe, expect, test } from 'vitest'
import {
  checkpointText,
  formatSignerKey,
  formatVerifierKey,
  openCheckpoint,
  parseCheckpoint,
  parseNote,
  parseSignerKey,
  parseVerifierKey,
  signNote,
  signerKey,
  verifyNote,
  formatPolicy,
  parsePolicy,
} from '../../../../src/domain/year/log/signed-note.ts'
import type { Note, VerifierKey } from '../../../../src/domain/year/log/signed-note.ts'
import {
  CHECKPOINT_TEXT,
  LOG_SEED,
  LOG_SKEY,
  LOG_VKEY,
  OTHER_SIGNATURE,
  SIGNED_CHECKPOINT,
  TWICE_SIGNED_CHECKPOINT,
} from '../log-vectors.ts'

function keyOf(vkey: string): VerifierKey {
  const key = parseVerifierKey(vkey)
  if (key === null) throw new Error(`${vkey} is not a key`)
  return key
}

function noteOf(text: string): Note {
  const note = parseNote(text)
  if (note === null) throw new Error(`${text} is not a note`)
  return note
}

const LOG = keyOf(LOG_VKEY)

describe('keys', () => {
  test('a seed gives the published keys of a log', () => {
    const key = signerKey('dash.example/year', LOG_SEED)
    expect(formatSignerKey(key)).toBe(LOG_SKEY)
    expect(formatVerifierKey(key)).toBe(LOG_VKEY)
    expect(reformatted(LOG_SKEY)).toBe(LOG_SKEY)
  })

  function reformatted(skey: string): string | null {
    const key = parseSignerKey(skey)
    return key && formatSignerKey(key)
  }

  test.each([
    ['the id of another key', LOG_VKEY.replace('217a88b8', '217a88b9')],
    ['an id in upper case', LOG_VKEY.replace('217a88b8', '217A88B8')],
    ['another name', LOG_VKEY.replace('dash.example', 'dash.examples')],
    ['no name', LOG_VKEY.slice(LOG_VKEY.indexOf('+'))],
  ])('a verifier key with %s is refused', (_what, vkey) => {
    expect(parseVerifierKey(vkey)).toBeNull()
  })

  test.each([
    ['another seed than its id', LOG_SKEY.replace(/B$/, 'C')],
    ['the type of a witness', LOG_SKEY.replace('+AQEB', '+BAEB')],
    ['the form of a verifier key', LOG_VKEY],
  ])('a private key with %s is refused', (_what, skey) => {
    expect(parseSignerKey(skey)).toBeNull()
  })
})

describe('notes', () => {
  test('the note of the log has the published signature', () => {
    expect(signNote(CHECKPOINT_TEXT, signerKey('dash.example/year', LOG_SEED))).toBe(SIGNED_CHECKPOINT)
  })

  test('a note is verified with the key of its log, and signatures of other keys are ignored', () => {
    const note = noteOf(TWICE_SIGNED_CHECKPOINT)
    expect(note.text).toBe(CHECKPOINT_TEXT)
    expect(verifyNote(note, LOG)).toBe('valid')
    expect(verifyNote(note, signerKey('other.example', LOG_SEED))).toBe('missing')
    const others = `— dash.example/year AAAAAAAA\n— other.example ${'A'.repeat(92)}\n`
    expect(verifyNote(noteOf(SIGNED_CHECKPOINT + others), LOG)).toBe('valid')
  })

  test('the example note of the specification is verified', () => {
    const vkey = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k'
    const note =
      'This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n'
    expect(verifyNote(noteOf(note), keyOf(vkey))).toBe('valid')
  })

  test('the last empty line of a note separates the text from the signatures', () => {
    const text = 'first\n\nsecond\n'
    const note = noteOf(signNote(text, signerKey('log', LOG_SEED)))
    expect(note.text).toBe(text)
  })

  test('a note with an invalid or a short signature of a key is invalid, also beside a valid one', () => {
    const [, line = ''] = SIGNED_CHECKPOINT.trimEnd().split('\n\n')
    const bad = line.replace('IXqIuFaM', 'IXqIuFaN')
    const [, , encoded = ''] = line.split(' ')
    const shorter = Buffer.from(encoded, 'base64').subarray(0, -1).toString('base64')
    for (const lines of [`${line}\n${bad}`, `${bad}\n${line}`, `— dash.example/year ${shorter}`])
      expect(verifyNote(noteOf(`${CHECKPOINT_TEXT}\n${lines}\n`), LOG)).toBe('invalid')
  })

  test.each([
    ['no signature', CHECKPOINT_TEXT],
    ['one carriage return', SIGNED_CHECKPOINT.replace('year\n', 'year\r\n')],
    ['a tab', SIGNED_CHECKPOINT.replace('3\n', '3\t\n')],
    ['a space at the end of a line', SIGNED_CHECKPOINT.replace(/=\n$/, '= \n')],
    ['base64 that is not canonical', SIGNED_CHECKPOINT.replace('Mg4=', 'Mg5=')],
    ['a signature without bytes', SIGNED_CHECKPOINT.replace(/year IX.*/, 'year IXqIuA==')],
    ['a plus sign in the name of a key', SIGNED_CHECKPOINT.replace('— dash.example', '— dash+example')],
    ['an ideographic space in the name of a key', SIGNED_CHECKPOINT.replace('— dash.', '— dash\u3000')],
    ['half a character', SIGNED_CHECKPOINT.replace('year\n', 'year\uD800\n')],
    ['101 signatures', SIGNED_CHECKPOINT + `${OTHER_SIGNATURE}\n`.repeat(100)],
  ])('a note with %s is refused', (_what, text) => {
    expect(parseNote(text)).toBeNull()
  })
})

describe('checkpoints', () => {
  const root = Buffer.from('NmQuc8JUCrEh46a/lUWwokmCzYMOsT080Z3jzmwCHsE=', 'base64')

  test('a checkpoint formats to the text it was parsed from, but for its extension lines', () => {
    const checkpoint = parseCheckpoint(CHECKPOINT_TEXT)
    expect(checkpoint).toMatchObject({ origin: 'dash.example/year', size: 3 })
    expect(checkpointText({ origin: 'dash.example/year', size: 3, root })).toBe(CHECKPOINT_TEXT)
    expect(parseCheckpoint(`${CHECKPOINT_TEXT}more\n`)).toEqual(checkpoint)
  })

  test.each([
    ['the size 03', CHECKPOINT_TEXT.replace('\n3\n', '\n03\n')],
    ['a size above the safe integers', CHECKPOINT_TEXT.replace('\n3\n', '\n9007199254740992\n')],
    ['a hash of 33 bytes', CHECKPOINT_TEXT.replace('HsE=', 'HsEA')],
    ['no origin', CHECKPOINT_TEXT.replace('dash.example/year', '')],
    ['an empty line after the hash', `${CHECKPOINT_TEXT}\n`],
    ['an empty extension line', `${CHECKPOINT_TEXT}\nmore\n`],
    ['no newline at its end', CHECKPOINT_TEXT.slice(0, -1)],
  ])('a checkpoint with %s is refused', (_what, text) => {
    expect(parseCheckpoint(text)).toBeNull()
  })

  const stranger = signerKey('dash.example/other', LOG_SEED)
  const strangers = signNote(CHECKPOINT_TEXT, stranger)
  const longer = SIGNED_CHECKPOINT.replace('\n3\n', '\n4\n')

  test.each([
    ['without a trusted key', SIGNED_CHECKPOINT, [stranger], 'it is not signed by a trusted key of the log'],
    [
      'of another log',
      strangers,
      [LOG, stranger],
      'it is a checkpoint of dash.example/year, signed by dash.example/other',
    ],
    ['of another size', longer, [LOG], 'the signature of dash.example/year is invalid'],
    ['that is not a signed note', CHECKPOINT_TEXT, [LOG], 'it is not a signed note'],
    ['whose text is not a checkpoint', signNote('hello\n', stranger), [LOG], 'its text is not a checkpoint'],
  ])('a checkpoint %s is refused', (_what, text, keys, problem) => {
    expect(openCheckpoint(text, keys)).toEqual({ problem })
  })
})

/** Key of a witness: another type of signature. */
const WITNESS_VKEY = 'witness.example/w1+df1c0a35+BIE5dw6ofRdfVqNUZsNMfszLjYqRtO43ol32D1uPybOU'

describe('policies', () => {
  test('a policy may contain comments, empty lines, tabs and spaces', () => {
    const text = `# trusted keys\n\n \t log\t ${LOG_VKEY} \n\t# none\nquorum none\n`
    for (const policy of [text, formatPolicy([LOG], 'https://dash.example/tlog/year')])
      expect(parsePolicy(policy)).toEqual({ problem: null, keys: [LOG] })
  })

  const QUORUM_LINE = 'must be the only quorum line: quorum none'

  test.each([
    ['', 'the quorum line is missing'],
    ['quorum none', 'the last line does not end with a newline'],
    ['quorum none\nquorum none\n', `line 2 ${QUORUM_LINE}`],
    ['quorum w1\n', `line 1 ${QUORUM_LINE}`],
    ['Quorum none\n', 'line 1 begins with "Quorum"; expected log or quorum none'],
    ['quorum none\r\n', 'line 1 contains a control character'],
    [`log ${WITNESS_VKEY}\n`, 'line 1 needs the verifier key of a log'],
    ['log\n', 'line 1 needs the verifier key of a log'],
    [`log ${LOG_VKEY} https://a b\n`, 'line 1 has extra items after the key and the URL'],
    // A policy that requires others to sign.
    [`witness w1 ${WITNESS_VKEY}\nquorum w1\n`, 'line 1 begins with "witness"; expected log or quorum none'],
    [`log ${LOG_VKEY}\nlog ${LOG_VKEY}\n`, 'line 2 repeats a key of an earlier line'],
  ])('the policy %j is refused: %s', (text, problem) => {
    expect(parsePolicy(text)).toEqual({ problem })
  })
})
