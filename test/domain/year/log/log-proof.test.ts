import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { evaluatePolicy, formatPolicy, parsePolicy } from '../../../../src/domain/year/log/log-policy.ts'
import type { LogPolicy } from '../../../../src/domain/year/log/log-policy.ts'
import {
  formatLogProof,
  parseLogProof,
  proveEntry,
  verifyLogProof,
} from '../../../../src/domain/year/log/log-proof.ts'
import type { LogProof } from '../../../../src/domain/year/log/log-proof.ts'
import { leafHash, merkleTree, rootAt } from '../../../../src/domain/year/log/merkle-tree.ts'
import {
  checkpointText,
  parseNote,
  parseVerifierKey,
  signNote,
  signerKey,
} from '../../../../src/domain/year/log/signed-note.ts'
import type { Note, VerifierKey } from '../../../../src/domain/year/log/signed-note.ts'
import {
  COSIGNED_AT,
  COSIGNED_CHECKPOINT,
  LOG_SEED,
  LOG_VKEY,
  PROOF_OF_C,
  SIGNED_CHECKPOINT,
  WITNESS_VKEY,
  testWitness,
} from '../log-vectors.ts'

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

function policyOf(text: string): LogPolicy {
  const parsed = parsePolicy(text)
  if (parsed.problem !== null) throw new Error(parsed.problem)
  return parsed.policy
}

function proofOf(text: string): LogProof {
  const proof = parseLogProof(text)
  if (proof === null) throw new Error('not a proof')
  return proof
}

const LOG_ALONE = policyOf(`log ${LOG_VKEY}\nquorum none\n`)
const WITH_WITNESS = policyOf(`log ${LOG_VKEY}\nwitness w1 ${WITNESS_VKEY}\nquorum w1\n`)

describe('proof files', () => {
  test('the proof file of an entry equals the published one', () => {
    const entries = ['a', 'b', 'c'].map(utf8)
    const tree = merkleTree(entries.map(leafHash))
    const proof = proveEntry(tree, utf8('c'), 2, 3, SIGNED_CHECKPOINT)
    expect(formatLogProof(proof)).toBe(PROOF_OF_C)
    expect(proofOf(PROOF_OF_C)).toMatchObject({ index: 2, checkpoint: SIGNED_CHECKPOINT })
  })

  test('a proof file is verified with the key of its log, without witnesses', () => {
    expect(verifyLogProof(proofOf(PROOF_OF_C), LOG_ALONE)).toMatchObject({
      problem: null,
      checkpoint: { origin: 'dash.example/year', size: 3 },
      cosigners: [],
      hasQuorum: true,
    })
  })

  test('verification returns the witnesses that signed and whether they meet the quorum', () => {
    const cosigned = proofOf(PROOF_OF_C.replace(SIGNED_CHECKPOINT, COSIGNED_CHECKPOINT))
    expect(verifyLogProof(cosigned, WITH_WITNESS)).toMatchObject({
      cosigners: [{ name: 'witness.example/w1', time: COSIGNED_AT }],
      hasQuorum: true,
    })
    expect(verifyLogProof(proofOf(PROOF_OF_C), WITH_WITNESS)).toMatchObject({
      cosigners: [],
      hasQuorum: false,
    })
  })

  test.each([
    [
      'another entry',
      PROOF_OF_C.replace('Yw==', 'Yg=='),
      'entry 2 is not in the tree of 3 entries that the log signed',
    ],
    [
      'another index',
      PROOF_OF_C.replace('index 2', 'index 1'),
      'entry 1 is not in the tree of 3 entries that the log signed',
    ],
    [
      'an index beyond the tree',
      PROOF_OF_C.replace('index 2', 'index 3'),
      'entry 3 is not in the tree of 3 entries that the log signed',
    ],
    [
      'another hash',
      PROOF_OF_C.replace('sTeYX', 'sTeYY'),
      'entry 2 is not in the tree of 3 entries that the log signed',
    ],
    [
      'another size',
      PROOF_OF_C.replace('\n3\n', '\n4\n'),
      'the checkpoint is not trusted: the signature of dash.example/year is invalid',
    ],
  ])('a proof file with %s is refused', (_what, text, problem) => {
    expect(verifyLogProof(proofOf(text), LOG_ALONE)).toEqual({ problem })
  })

  test('a proof file with an invalid cosignature of a known witness is refused', () => {
    const bad = PROOF_OF_C.replace(SIGNED_CHECKPOINT, COSIGNED_CHECKPOINT.replace('uBQ==', 'uBA=='))
    const problem = 'the checkpoint is not trusted: the cosignature of witness.example/w1 is invalid'
    expect(verifyLogProof(proofOf(bad), WITH_WITNESS)).toEqual({ problem })
  })

  test.each([
    ['index 002', PROOF_OF_C.replace('index 2', 'index 002')],
    ['no index', PROOF_OF_C.replace('index 2\n', '')],
    ['no entry', PROOF_OF_C.replace('extra Yw==\n', '')],
    ['an entry that is not canonical', PROOF_OF_C.replace('Yw==', 'Yx==')],
    ['a hash of 33 bytes', PROOF_OF_C.replace('5mes=', '5mesA')],
    ['a hash that is not canonical', PROOF_OF_C.replace('mes=', 'met=')],
    ['a short hash after the others', PROOF_OF_C.replace('\n\n', '\nAAAA\n\n')],
    ['carriage returns', PROOF_OF_C.replaceAll('\n', '\r\n')],
    ['another version', PROOF_OF_C.replace('@v1', '@v2')],
    ['no checkpoint', PROOF_OF_C.slice(0, PROOF_OF_C.indexOf('\n\n') + 2)],
    ['a checkpoint without signatures', PROOF_OF_C.slice(0, PROOF_OF_C.lastIndexOf('\n\n') + 1)],
    ['two empty lines before the checkpoint', PROOF_OF_C.replace('\n\n', '\n\n\n')],
    ['no characters', ''],
  ])('a text with %s is not a valid proof file', (_what, text) => {
    const proof = parseLogProof(text)
    expect(proof === null || verifyLogProof(proof, LOG_ALONE).problem !== null).toBe(true)
  })

  test('a proof file with one changed bit is refused', () => {
    const bytes = Buffer.from(PROOF_OF_C)
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
        const changed = Buffer.from(bytes)
        const at = bit >> 3
        changed[at] = (changed[at] as number) ^ (1 << (bit & 7))
        const proof = parseLogProof(changed.toString())
        expect(proof === null || verifyLogProof(proof, LOG_ALONE).problem !== null).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('the proof file of any entry of a tree of any size is verified and formats to the same text', () => {
    const entries = Array.from({ length: 300 }, (_, index) => utf8(`line ${index}`))
    const tree = merkleTree(entries.map(leafHash))
    const key = signerKey('dash.example/year', LOG_SEED)
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.nat(), (size, at) => {
        const index = at % size
        const note = signNote(checkpointText({ origin: key.name, size, root: rootAt(tree, size) }), key)
        const text = formatLogProof(proveEntry(tree, entries[index] as Uint8Array, index, size, note))
        const proof = proofOf(text)
        expect(formatLogProof(proof)).toBe(text)
        expect(verifyLogProof(proof, LOG_ALONE)).toMatchObject({ problem: null, checkpoint: { size } })
      }),
      { numRuns: 50 },
    )
  })
})

const WITNESSES = [1, 2, 3, 4].map((number) => testWitness(`w${number}`, number))
const LINES = WITNESSES.map(({ name, vkey }) => `witness ${name} ${vkey} https://${name}.example/\n`).join('')

/** Returns a checkpoint with the cosignatures of some witnesses. */
function cosignedBy(...names: string[]): Note {
  const [text = ''] = SIGNED_CHECKPOINT.split('\n\n')
  const lines = WITNESSES.filter(({ name }) => names.includes(name)).map(({ cosign }) =>
    cosign(`${text}\n`, 7),
  )
  const note = parseNote(SIGNED_CHECKPOINT + lines.map((line) => `${line}\n`).join(''))
  if (note === null) throw new Error('not a note')
  return note
}

describe('policies', () => {
  test('a policy without witnesses is parsed from its formatted text', () => {
    const key = parseVerifierKey(LOG_VKEY) as VerifierKey
    const text = formatPolicy([key], 'https://dash.example/tlog/year')
    expect(policyOf(text)).toEqual({
      logs: [{ key, url: 'https://dash.example/tlog/year' }],
      witnesses: [],
      quorum: null,
    })
    expect(policyOf(formatPolicy([key], null)).logs).toEqual([{ key, url: null }])
  })

  test('a policy may contain comments, empty lines, tabs and spaces', () => {
    const text = `# trusted keys\n\n \t log\t ${LOG_VKEY} \n\t# none\nquorum none\n`
    expect(policyOf(text)).toEqual(LOG_ALONE)
  })

  test.each([
    ['w1', [], false],
    ['w1', ['w1'], true],
    ['w1', ['w2'], false],
    ['group g any w1 w2', ['w2'], true],
    ['group g any w1 w2', ['w3'], false],
    ['group g all w1 w2', ['w1'], false],
    ['group g all w1 w2', ['w1', 'w2'], true],
    ['group g 2 w1 w2 w3', ['w1', 'w3'], true],
    ['group g 2 w1 w2 w3', ['w1', 'w4'], false],
    ['group h 2 w1 w2 w3\ngroup g all h w4', ['w1', 'w2', 'w4'], true],
    ['group h 2 w1 w2 w3\ngroup g all h w4', ['w1', 'w2', 'w3'], false],
  ])('the quorum rule %j is met by the witnesses %j: %s', (rule, signers, isMet) => {
    const isGroup = rule.startsWith('group')
    const groups = isGroup ? `${rule}\n` : ''
    const policy = policyOf(`${LINES}${groups}quorum ${isGroup ? 'g' : rule}\n`)
    const verdict = evaluatePolicy(policy, cosignedBy(...signers))
    expect(verdict).toMatchObject({ problem: null, hasQuorum: isMet })
    expect(verdict).toHaveProperty(
      'cosigners',
      signers.map((name) => ({ name: `${name}.example`, time: 7 })),
    )
  })

  test('evaluation of a policy without a quorum still returns the witnesses that signed', () => {
    const policy = policyOf(`${LINES}quorum none\n`)
    const cosigners = [{ name: 'w2.example', time: 7 }]
    expect(evaluatePolicy(policy, cosignedBy('w2'))).toEqual({ problem: null, cosigners, hasQuorum: true })
  })

  const [first, second] = WITNESSES.map(({ vkey }) => vkey)

  test.each([
    ['', 'the quorum line is missing'],
    [`log ${LOG_VKEY}\n`, 'the quorum line is missing'],
    ['quorum none', 'the last line does not end with a newline'],
    ['quorum none\nquorum none\n', 'line 2 must be the only quorum line and name one quorum'],
    ['quorum\n', 'line 1 refers to "", which no earlier line defines'],
    ['quorum none w1\n', 'line 1 must be the only quorum line and name one quorum'],
    ['quorum w1\n', 'line 1 refers to "w1", which no earlier line defines'],
    [`quorum w1\n${LINES}`, 'line 1 refers to "w1", which no earlier line defines'],
    ['Quorum none\n', 'line 1 begins with "Quorum"; expected log, witness, group or quorum'],
    ['quorum none\r\n', 'line 1 contains a control character'],
    [`log ${first}\n`, 'line 1 needs the verifier key of a log'],
    ['log\n', 'line 1 needs the verifier key of a log'],
    [`log ${LOG_VKEY} https://a b\n`, 'line 1 has extra items after the key and the URL'],
    [`log ${LOG_VKEY}\nlog ${LOG_VKEY}\n`, 'line 2 repeats a key of an earlier line'],
    [`witness w1 ${LOG_VKEY}\n`, 'line 1 needs the verifier key of a witness'],
    [`witness ${first}\n`, 'line 1 needs the verifier key of a witness'],
    [`witness w1 ${first}\nwitness w2 ${first}\n`, 'line 2 repeats a key of an earlier line'],
    [`witness w1 ${first}\nwitness w1 ${second}\n`, 'line 2 defines "w1" again'],
    [`witness none ${first}\n`, 'line 1 defines "none" again'],
    [`${LINES}group w1 any w2\n`, 'line 5 defines "w1" again'],
    [`${LINES}group g any none\n`, 'line 5 refers to "none", which no earlier line defines'],
    [`${LINES}group g any g\n`, 'line 5 refers to "g", which no earlier line defines'],
    [`${LINES}group g any w1 w1\n`, 'line 5 adds "w1", which is already a member of a group'],
    [`${LINES}group g any w1\ngroup h any w1\n`, 'line 6 adds "w1", which is already a member of a group'],
  ])('the policy %j is refused: %s', (text, problem) => {
    expect(parsePolicy(text)).toEqual({ problem })
  })

  test.each(['any', 'all', '0 w1', '2 w1', '01 w1', '1.0 w1', 'some w1', '-1 w1'])(
    'a group with %j is refused',
    (rest) => {
      const problem = expect.stringMatching(/^line 5 needs a name, a threshold /) as string
      expect(parsePolicy(`${LINES}group g ${rest}\n`)).toEqual({ problem })
    },
  )
})
