import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../../src/domain/digest.ts'
import { formatInstant } from '../../../../src/domain/time.ts'
import { legacyText } from '../../../../src/domain/year/ledger.ts'
import type { LedgerRow } from '../../../../src/domain/year/ledger.ts'
import { entryBytes, ledgerTree } from '../../../../src/domain/year/log/log-history.ts'
import {
  entriesUntilNext,
  formatLogProof,
  parseLogProof,
  verifyLogProof,
  verifyPublication,
} from '../../../../src/domain/year/log/log-proof.ts'
import type { LogProof, Statement } from '../../../../src/domain/year/log/log-proof.ts'
import { inclusionProof, leafHash, merkleTree, rootAt } from '../../../../src/domain/year/log/merkle-tree.ts'
import type { MerkleTree } from '../../../../src/domain/year/log/merkle-tree.ts'
import {
  checkpointText,
  parseVerifierKey,
  signNote,
  signerKey,
} from '../../../../src/domain/year/log/signed-note.ts'
import type { VerifierKey } from '../../../../src/domain/year/log/signed-note.ts'
import { sampleArchive } from '../../../support/sample-archive.ts'
import {
  LOG_SEED,
  LOG_VKEY,
  PROOF_OF_C,
  SIGNED_CHECKPOINT,
  TWICE_SIGNED_CHECKPOINT,
  OTHER_SIGNATURE,
} from '../log-vectors.ts'

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const proveEntry = (
  tree: MerkleTree,
  entry: Uint8Array,
  index: number,
  size: number,
  checkpoint: string,
): LogProof => ({ entry, index, hashes: inclusionProof(tree, index, size), checkpoint })

function parsedProof(text: string): LogProof {
  const proof = parseLogProof(text)
  if (proof === null) throw new Error('not a proof')
  return proof
}

const LOG_KEYS = [parseVerifierKey(LOG_VKEY) as VerifierKey]

describe('proof files', () => {
  test('the proof file of an entry equals the published one', () => {
    const entries = ['a', 'b', 'c'].map(utf8)
    const tree = merkleTree(entries.map(leafHash))
    const proof = proveEntry(tree, utf8('c'), 2, 3, SIGNED_CHECKPOINT)
    expect(formatLogProof(proof)).toBe(PROOF_OF_C)
    expect(parsedProof(PROOF_OF_C)).toMatchObject({ index: 2, checkpoint: SIGNED_CHECKPOINT })
  })

  test('a proof file is verified with the key of its log, whatever other keys signed its checkpoint', () => {
    const text = PROOF_OF_C.replace(SIGNED_CHECKPOINT, TWICE_SIGNED_CHECKPOINT)
    expect(verifyLogProof(parsedProof(text), LOG_KEYS)).toMatchObject({
      problem: null,
      checkpoint: { size: 3 },
    })
  })

  test.each([
    ['another entry', ['Yw==', 'Yg=='], 'entry 2 is not in the tree of 3 entries that the log signed'],
    [
      'an index beyond the tree',
      ['index 2', 'index 3'],
      'entry 3 is not in the tree of 3 entries that the log signed',
    ],
    [
      'another size',
      ['\n3\n', '\n4\n'],
      'the checkpoint is not trusted: the signature of dash.example/year is invalid',
    ],
  ])('a proof file with %s is refused', (_what, [from = '', to = ''], problem) => {
    expect(verifyLogProof(parsedProof(PROOF_OF_C.replace(from, to)), LOG_KEYS)).toEqual({ problem })
  })

  test.each([
    ['an entry that is not canonical', PROOF_OF_C.replace('Yw==', 'Yx==')],
    ['a hash that is not canonical', PROOF_OF_C.replace('mes=', 'met=')],
    ['a short hash after the others', PROOF_OF_C.replace('\n\n', '\nAAAA\n\n')],
    ['another version', PROOF_OF_C.replace('@v1', '@v2')],
    ['two empty lines before the checkpoint', PROOF_OF_C.replace('\n\n', '\n\n\n')],
  ])('a text with %s is not a valid proof file', (_what, text) => {
    const proof = parseLogProof(text)
    expect(proof === null || verifyLogProof(proof, LOG_KEYS).problem !== null).toBe(true)
  })

  test('a proof file with one changed bit is refused', () => {
    const bytes = Buffer.from(PROOF_OF_C)
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
        const changed = Buffer.from(bytes)
        const at = bit >> 3
        changed[at] = (changed[at] as number) ^ (1 << (bit & 7))
        const proof = parseLogProof(changed.toString())
        expect(proof === null || verifyLogProof(proof, LOG_KEYS).problem !== null).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})

/** An archive of six entries: an imported publication, a seal over two legacy ones, a gap, and three publications. */
const { contents, objects } = sampleArchive(3, 'a', 3)
const { rows, legacy } = contents
const tree = ledgerTree(rows)
const KEY = signerKey('dash.example/tlog/year', LOG_SEED)
const KEYS = [KEY]
const TEXT = checkpointText({ origin: KEY.name, size: rows.length, root: rootAt(tree, rows.length) })
const NOTE = signNote(TEXT, KEY)

const proofOf = (seq: number, note = NOTE): string =>
  formatLogProof(proveEntry(tree, entryBytes(rows[seq - 1] as LedgerRow), seq - 1, rows.length, note))

const LEGACY = legacyText(legacy)

const severalOf = (seqs: number[], text: string | null = null, at = timeAt(4)): string =>
  JSON.stringify({ at, proofs: seqs.map((seq) => proofOf(seq)), legacy: text })

/** Time of publication of an entry. */
const timeAt = (seq: number): string => formatInstant(rows[seq - 1]?.publishedAt ?? 0)

const textsOf = (statements: readonly Statement[]): string[] => statements.map(({ text }) => text)

const codesOf = (statements: readonly Statement[]): string[] => statements.map(({ code }) => code)

const bytesOf = (sha256: string | null | undefined): Uint8Array =>
  objects.get(sha256 ?? '') ?? new Uint8Array()

const publicationAt = (seq: number): Uint8Array => bytesOf(rows[seq - 1]?.sha256)

const ID = 'top-year-v3-2026-01-05'

describe('valid proofs', () => {
  test('a proof proves the bytes, the place in the log and the signer of a publication', () => {
    const bytes = publicationAt(4)
    const verdict = verifyPublication(bytes, proofOf(4), KEYS)
    expect(verdict).toMatchObject({
      ok: true,
      problem: null,
      entry: { seq: 4, publicationId: ID, asOfDay: '2026-01-05' },
    })
    expect(codesOf(verdict.proved)).toEqual(['digest', 'inclusion', 'identity', 'log'])
    expect(textsOf(verdict.proved)).toEqual([
      `the file is ${ID}, SHA-256 ${sha256Hex(bytes)}, byte for byte`,
      expect.stringMatching(
        /^it is entry 4 of 6 of the log dash\.example\/tlog\/year, with .*Z as its time of publication$/,
      ),
      'it has the id, day and times of that entry',
      'the key of dash.example/tlog/year signed this log of 6 entries',
    ])
    expect(textsOf(verdict.notProved)).toEqual([
      'how long it was the newest publication: request the proof with until=next',
    ])
  })

  test('without trusted keys, only the digest of the file is proved', () => {
    const bytes = publicationAt(4)
    const { ok, problem, proved, notProved } = verifyPublication(bytes, severalOf([4, 5]), null)
    expect([ok, problem, codesOf(proved)]).toEqual([false, null, ['digest', 'identity']])
    expect(codesOf(notProved)).toEqual(['log', 'inclusion', 'newest', 'newest_at'])
    expect(textsOf(proved)[0]).toBe(`the proof file is about this file: ${ID}, SHA-256 ${sha256Hex(bytes)}`)
    expect(textsOf(notProved)).toEqual([
      'who signed the log: no policy was given, so anyone can have written this proof file',
      expect.stringMatching(/^what the proof file says: it is entry 4 of 6 of the log /),
      expect.stringMatching(/^what the proof file says: it was the newest until /),
      expect.stringMatching(/^what the proof file says: it was the newest at /),
    ])
  })

  test('a proof with the next entries proves how long the publication was the newest, and that it was at the time of the proof', () => {
    const next = `${rows[4]?.publicationId} followed`
    const verdict = verifyPublication(publicationAt(4), severalOf([4, 5]), KEYS)
    expect(codesOf(verdict.proved).slice(-2)).toEqual(['newest', 'newest_at'])
    const proved = textsOf(verdict.proved)
    expect(proved.at(-2)).toMatch(new RegExp(`^it was the newest until .*Z, when ${next}$`))
    expect(proved.at(-1)).toBe(`it was the newest at ${timeAt(4)}`)
    expect(textsOf(verifyPublication(publicationAt(6), proofOf(6), KEYS).proved).at(-1)).toBe(
      'it was the newest while the log had 6 entries',
    )
  })

  test('a proof never proves that the last publication was the newest at a time, because a checkpoint has none', () => {
    const at = formatInstant(Date.parse(timeAt(6)) + 1)
    const { ok, proved, notProved } = verifyPublication(publicationAt(6), severalOf([6], null, at), KEYS)
    expect([ok, codesOf(proved)]).toEqual([true, ['digest', 'inclusion', 'identity', 'log', 'newest']])
    const text = `that it was the newest at ${at}: a checkpoint does not say when it was signed`
    expect(notProved).toEqual([{ code: 'newest_at', text }])
  })

  test('a proof of a legacy publication proves it by the sealed text and names its successor', () => {
    const bytes = bytesOf(legacy[0]?.sha256)
    const at = formatInstant(legacy[0]?.publishedAt ?? 0)
    const verdict = verifyPublication(bytes, severalOf([1, 2, 3, 4], LEGACY, at), KEYS)
    const seal = { seq: 2, publicationId: legacy[0]?.publicationId, asOfDay: legacy[0]?.asOfDay }
    expect(verdict).toMatchObject({ ok: true, problem: null, entry: seal })
    expect(verdict.proved[1]?.text).toMatch(/^it is listed in the legacy ledger that is sealed in the log /)
    expect(verdict.proved.at(-2)?.text).toMatch(
      /^it was the newest until .*, when top-year-v1-2026-01-02 followed$/,
    )
    const sealAlone = verifyPublication(bytes, severalOf([2], LEGACY, at), KEYS)
    expect(sealAlone).toMatchObject({ ok: true, problem: null })
    expect(sealAlone.notProved.at(-1)?.text).toMatch(/^how long it was the newest/)
  })

  test('a proof without some of its entries or its legacy ledger never proves another successor', () => {
    const all = [1, 2, 3, 4, 5, 6]
    const seqsOf = (subset: number): number[] => all.filter((seq) => subset & (1 << (seq - 1)))
    const selectable = [...legacy, ...rows.filter(({ kind }) => kind === 'publication')]
    for (const { sha256, publishedAt } of selectable) {
      const bytes = bytesOf(sha256)
      const at = formatInstant(publishedAt ?? 0)
      const periodIn = (seqs: number[], text: string | null): string | undefined =>
        textsOf(verifyPublication(bytes, severalOf(seqs, text, at), KEYS).proved).find((sentence) =>
          sentence.startsWith('it was the newest until'),
        )
      const whole = periodIn(all, LEGACY)
      for (let subset = 1; subset < 64; subset += 1)
        for (const text of [LEGACY, null])
          expect([undefined, whole]).toContain(periodIn(seqsOf(subset), text))
    }
  })
})

test('a publication was the newest until the next one, gaps between them included, and no later than the tree', () => {
  const until = (kinds: string, ledger: 'v1' | 'versioned', seq: number, size = kinds.length) => {
    const kindOf = { p: 'publication', g: 'gap', s: 'legacy-seal' } as const
    const entries = kinds.split('').map((kind, index) => ({ kind: kindOf[kind as 'p'], seq: index + 1 }))
    return entriesUntilNext({ entries }, { ledger, seq }, size)
  }
  expect(until('pggpp', 'versioned', 1)).toEqual([1, 2, 3, 4])
  expect(until('pggpp', 'versioned', 1, 3)).toEqual([1, 2, 3])
  expect(until('pggpp', 'versioned', 4)).toEqual([4, 5])
  expect(until('pggpp', 'versioned', 5)).toEqual([5])
  expect(until('pggpp', 'versioned', 5, 4)).toBeNull()
  // The entries of a founding import up to its seal are not in the order of time.
  expect(until('ppsgpp', 'versioned', 2)).toEqual([1, 2, 3, 4, 5])
  expect(until('ppsgpp', 'v1', 9)).toEqual([1, 2, 3, 4, 5])
  expect(until('ppsgpp', 'versioned', 5)).toEqual([5, 6])
})

describe('invalid proofs', () => {
  const bytes = publicationAt(4)

  const strangers = proofOf(4, signNote(TEXT, signerKey(KEY.name, new Uint8Array(32))))
  const proofs = [proofOf(4), proofOf(5, `${NOTE}${OTHER_SIGNATURE}\n`)]

  test.each([
    [
      'of another publication',
      proofOf(5),
      /^the file has the SHA-256 .*; the proof is of top-year-v3-2026-01-06, /,
    ],
    ['of a gap', proofOf(3), /the proof is not of a publication$/],
    ['with a missing entry', severalOf([4, 6]), /^its entries are not consecutive$/],
    ['with the seal without its text', severalOf([2, 3, 4]), /seal of the legacy ledger without its text$/],
    [
      'of another time',
      severalOf([4, 5], null, timeAt(5)),
      /^top-year-v3-2026-01-05, .* was not the newest publication at /,
    ],
    ['without entries', severalOf([]), /^the second file is not a proof$/],
    ['of another legacy ledger', severalOf([2, 3, 4], `${LEGACY}\n`), /does not match the seal$/],
    ['that is another JSON document', '{"proofs":[]}', /^the second file is not a proof$/],
    [
      'with two checkpoints',
      JSON.stringify({ at: timeAt(4), proofs, legacy: null }),
      /^its proofs have different checkpoints$/,
    ],
    ['whose checkpoint another key signed', strangers, /it is not signed by a trusted key of the log$/],
    [
      'of another index',
      proofOf(4).replace('index 3', 'index 2'),
      /^the proof of entry 3 contains the line of entry 4$/,
    ],
  ])('a proof %s is refused', (_what, text, problem) => {
    const verdict = verifyPublication(bytes, text, KEYS)
    expect(verdict).toMatchObject({ ok: false, proved: [], notProved: [], entry: null })
    expect(verdict.problem).toMatch(problem)
  })
})
