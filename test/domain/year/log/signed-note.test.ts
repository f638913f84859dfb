import fc from 'fast-check'
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

  test('a verifier key formats to the text it was parsed from', () => {
    expect(formatVerifierKey(keyOf(LOG_VKEY))).toBe(LOG_VKEY)
  })

  test('keys of any name and seed are parsed from their formatted text', () => {
    const names = fc.stringMatching(/^[a-z0-9./-]{1,30}$/)
    fc.assert(
      fc.property(names, fc.uint8Array({ minLength: 32, maxLength: 32 }), (name, seed) => {
        const key = signerKey(name, seed)
        expect(reformatted(formatSignerKey(key))).toBe(formatSignerKey(key))
        expect(parseVerifierKey(formatVerifierKey(key))).toMatchObject({ name, id: key.id })
      }),
      { numRuns: 20 },
    )
  })

  test.each([
    ['the id of another key', LOG_VKEY.replace('217a88b8', '217a88b9')],
    ['an id in upper case', LOG_VKEY.replace('217a88b8', '217A88B8')],
    ['another name', LOG_VKEY.replace('dash.example', 'dash.examples')],
    ['no name', LOG_VKEY.slice(LOG_VKEY.indexOf('+'))],
  ])('a verifier key with %s is refused', (_what, vkey) => {
    expect(parseVerifierKey(vkey)).toBeNull()
  })

  test.each([
    ['the id of another key', LOG_SKEY.replace('217a88b8', '217a88b9')],
    ['another seed than its id', LOG_SKEY.replace(/B$/, 'C')],
    ['the type of a witness', LOG_SKEY.replace('+AQEB', '+BAEB')],
    ['the form of a verifier key', LOG_VKEY],
    ['a carriage return', `${LOG_SKEY}\r`],
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

  test.each([
    [
      'the specification of signed notes',
      'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k',
      'This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n',
    ],
  ])('the example note of %s is verified', (_where, vkey, note) => {
    expect(verifyNote(noteOf(note), keyOf(vkey))).toBe('valid')
  })

  test('the last empty line of a note separates the text from the signatures', () => {
    const text = 'first\n\nsecond\n'
    const note = noteOf(signNote(text, signerKey('log', LOG_SEED)))
    expect(note.text).toBe(text)
  })

  test('a note with a valid and an invalid signature of one key is invalid', () => {
    const [, line = ''] = SIGNED_CHECKPOINT.trimEnd().split('\n\n')
    const bad = line.replace('IXqIuFaM', 'IXqIuFaN')
    for (const lines of [`${line}\n${bad}\n`, `${bad}\n${line}\n`])
      expect(verifyNote(noteOf(`${CHECKPOINT_TEXT}\n${lines}`), LOG)).toBe('invalid')
  })

  test.each([['a signature of 63 bytes', -1]])('a note with %s is invalid', (_what, more) => {
    const [, , encoded = ''] = SIGNED_CHECKPOINT.trimEnd().split('\n').at(-1)?.split(' ') ?? []
    const bytes = Buffer.concat([Buffer.from(encoded, 'base64'), Buffer.of(0)])
    const line = `— dash.example/year ${bytes.subarray(0, 68 + more).toString('base64')}\n`
    expect(verifyNote(noteOf(`${CHECKPOINT_TEXT}\n${line}`), LOG)).toBe('invalid')
  })

  test.each([
    ['no signature', CHECKPOINT_TEXT],
    ['an empty line and no signature', `${CHECKPOINT_TEXT}\n`],
    ['one carriage return', SIGNED_CHECKPOINT.replace('year\n', 'year\r\n')],
    ['a tab', SIGNED_CHECKPOINT.replace('3\n', '3\t\n')],
    ['a space at the end of a line', SIGNED_CHECKPOINT.replace(/=\n$/, '= \n')],
    ['base64 that is not canonical', SIGNED_CHECKPOINT.replace('Mg4=', 'Mg5=')],
    ['base64 without padding', SIGNED_CHECKPOINT.replace('Mg4=', 'Mg4')],
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

  test('a checkpoint formats to the text it was parsed from', () => {
    const checkpoint = parseCheckpoint(CHECKPOINT_TEXT)
    expect(checkpoint).toMatchObject({ origin: 'dash.example/year', size: 3 })
    expect(checkpointText({ origin: 'dash.example/year', size: 3, root })).toBe(CHECKPOINT_TEXT)
  })

  test('extension lines of a checkpoint are ignored', () => {
    expect(parseCheckpoint(`${CHECKPOINT_TEXT}more\n`)).toMatchObject({ size: 3 })
  })

  test.each([
    ['the size 03', CHECKPOINT_TEXT.replace('\n3\n', '\n03\n')],
    ['the size -3', CHECKPOINT_TEXT.replace('\n3\n', '\n-3\n')],
    ['a size above the safe integers', CHECKPOINT_TEXT.replace('\n3\n', '\n9007199254740992\n')],
    ['no size', CHECKPOINT_TEXT.replace('\n3\n', '\n\n')],
    ['a hash of 33 bytes', CHECKPOINT_TEXT.replace('HsE=', 'HsEA')],
    ['a hash of 31 bytes', CHECKPOINT_TEXT.replace('HsE=', 'Hg==')],
    ['no origin', CHECKPOINT_TEXT.replace('dash.example/year', '')],
    ['an empty line after the hash', `${CHECKPOINT_TEXT}\n`],
    ['an empty extension line', `${CHECKPOINT_TEXT}\nmore\n`],
    ['no newline at its end', CHECKPOINT_TEXT.slice(0, -1)],
  ])('a checkpoint with %s is refused', (_what, text) => {
    expect(parseCheckpoint(text)).toBeNull()
  })

  test('a checkpoint is opened with the key of its log', () => {
    const opened = openCheckpoint(TWICE_SIGNED_CHECKPOINT, [LOG])
    expect(opened).toMatchObject({ problem: null, checkpoint: { size: 3 } })
  })

  const stranger = signerKey('dash.example/other', LOG_SEED)

  test.each([
    [
      'without a signature of a trusted key',
      SIGNED_CHECKPOINT,
      [stranger],
      'it is not signed by a trusted key of the log',
    ],
    [
      'of another log',
      signNote(CHECKPOINT_TEXT, stranger),
      [LOG, stranger],
      'it is a checkpoint of dash.example/year, signed by dash.example/other',
    ],
    [
      'with a changed size',
      SIGNED_CHECKPOINT.replace('\n3\n', '\n4\n'),
      [LOG],
      'the signature of dash.example/year is invalid',
    ],
    ['that is not a signed note', CHECKPOINT_TEXT, [LOG], 'it is not a signed note'],
    [
      'whose text is not a checkpoint',
      signNote('hello\n', signerKey('dash.example/year', LOG_SEED)),
      [LOG],
      'its text is not a checkpoint',
    ],
  ])('a checkpoint %s is refused', (_what, text, keys, problem) => {
    expect(openCheckpoint(text, keys)).toEqual({ problem })
  })

  test('a signed checkpoint with one changed bit is refused', () => {
    const bytes = Buffer.from(SIGNED_CHECKPOINT)
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
        const changed = Buffer.from(bytes)
        const at = bit >> 3
        changed[at] = (changed[at] as number) ^ (1 << (bit & 7))
        expect(openCheckpoint(changed.toString(), [LOG]).problem).not.toBeNull()
      }),
      { numRuns: 300 },
    )
  })
})

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
