import { ed25519PublicKey, encodeBase64, sha256, signEd25519 } from '../../../src/domain/digest.ts'

/** Test vectors: keys and notes that Go's `sumdb/note` and `@sigstore/verify` accept. */

export const LOG_VKEY = 'dash.example/year+217a88b8+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c'
export const LOG_SKEY = 'PRIVATE+KEY+dash.example/year+217a88b8+AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB'
export const WITNESS_VKEY = 'witness.example/w1+df1c0a35+BIE5dw6ofRdfVqNUZsNMfszLjYqRtO43ol32D1uPybOU'
/** Time of the witness's cosignature, in seconds since 1970. */
export const COSIGNED_AT = 1_792_800_601

export const LOG_SEED = new Uint8Array(32).fill(1)

/** Checkpoint of the tree with the entries "a", "b" and "c". */
export const CHECKPOINT_TEXT = `dash.example/year
3
NmQuc8JUCrEh46a/lUWwokmCzYMOsT080Z3jzmwCHsE=
`
export const COSIGNATURE =
  '— witness.example/w1 3xwKNQAAAABq2/dZ4qWo0Hhy2G8RckgBIekXsl7UiWlw6r3TAQyNrR4Q2StDDv16ud++vW2k9a055XfJIptjYkFFPoIc0s0bfy/uBQ=='
export const SIGNED_CHECKPOINT = `${CHECKPOINT_TEXT}
— dash.example/year IXqIuFaMUubZnc0QMhqoLNIEqsNrnFHB3wRiEHK4OqM8LP3FHf9okhCi8Fn1A4oVmNPHcJA9C8skYyevwoVVNKOYMg4=
`
export const COSIGNED_CHECKPOINT = `${SIGNED_CHECKPOINT}${COSIGNATURE}\n`

/** Proof file of the entry "c". */
export const PROOF_OF_C = `c2sp.org/tlog-proof@v1
extra Yw==
index 2
sTeYX/SE+2ANuTEHx3sDZcgNePW0Kd7Q/Zc2HQd5mes=

${SIGNED_CHECKPOINT}`

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Creates a witness from a seed of one repeated byte; `cosign` returns its signature line for a checkpoint. */
export function testWitness(
  name: string,
  byte: number,
): { name: string; vkey: string; cosign(text: string, time: number): string } {
  const seed = new Uint8Array(32).fill(byte)
  const key = Buffer.concat([Buffer.of(4), ed25519PublicKey(seed)])
  const keyName = `${name}.example`
  const id = Buffer.from(sha256(Buffer.concat([utf8(`${keyName}\n`), key])).subarray(0, 4))
  return {
    name,
    vkey: `${keyName}+${id.toString('hex')}+${encodeBase64(key)}`,
    cosign(text, time) {
      const at = Buffer.alloc(8)
      at.writeBigUInt64BE(BigInt(time))
      const signature = signEd25519(seed, utf8(`cosignature/v1\ntime ${time}\n${text}`))
      return `— ${keyName} ${encodeBase64(Buffer.concat([id, at, signature]))}`
    },
  }
}
