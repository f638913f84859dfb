import { parseLogProof, verifyLogProof } from '../../src/domain/year/log/log-proof.ts'
import { parsePolicy, openCheckpoint, parseVerifierKey } from '../../src/domain/year/log/signed-note.ts'

/** Returns a copy with one inverted bit. */
export function flipped(bytes: Uint8Array, at: number, bit: number): Buffer {
  const changed = Buffer.from(bytes)
  changed[at] = (changed[at] as number) ^ (1 << bit)
  return changed
}

/** Returns a text with all base64 in its canonical form: texts that decode to the same bytes become equal. */
export function decodedText(text: string): string {
  return text.replaceAll(/[\w+/]{8,}=*/g, (encoded) => Buffer.from(encoded, 'base64').toString('base64'))
}

/** Returns the reason why dash refuses a checkpoint or a proof file; null if it accepts it. */
export function problemOf(text: string, vkey: string): string | null {
  const key = parseVerifierKey(vkey)
  const policy = parsePolicy(`log ${vkey}\nquorum none\n`)
  if (key === null || policy.problem !== null) throw new Error(`${vkey} is not a key`)
  if (!text.startsWith('c2sp.org/')) return openCheckpoint(text, [key]).problem
  const proof = parseLogProof(text)
  return proof === null ? 'it is not a proof file' : verifyLogProof(proof, policy.keys).problem
}
