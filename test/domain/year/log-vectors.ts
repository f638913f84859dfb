/** Test vectors: keys and notes that Go's `sumdb/note` accepts. */

export const LOG_VKEY = 'dash.example/year+217a88b8+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c'
export const LOG_SKEY = 'PRIVATE+KEY+dash.example/year+217a88b8+AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB'

export const LOG_SEED = new Uint8Array(32).fill(1)

/** Checkpoint of the tree with the entries "a", "b" and "c". */
export const CHECKPOINT_TEXT = `dash.example/year
3
NmQuc8JUCrEh46a/lUWwokmCzYMOsT080Z3jzmwCHsE=
`
export const SIGNED_CHECKPOINT = `${CHECKPOINT_TEXT}
— dash.example/year IXqIuFaMUubZnc0QMhqoLNIEqsNrnFHB3wRiEHK4OqM8LP3FHf9okhCi8Fn1A4oVmNPHcJA9C8skYyevwoVVNKOYMg4=
`

/** A valid signature line of another key and another type, which readers must ignore. */
export const OTHER_SIGNATURE =
  '— witness.example/w1 3xwKNQAAAABq2/dZ4qWo0Hhy2G8RckgBIekXsl7UiWlw6r3TAQyNrR4Q2StDDv16ud++vW2k9a055XfJIptjYkFFPoIc0s0bfy/uBQ=='
export const TWICE_SIGNED_CHECKPOINT = `${SIGNED_CHECKPOINT}${OTHER_SIGNATURE}\n`

/** Proof file of the entry "c". */
export const PROOF_OF_C = `c2sp.org/tlog-proof@v1
extra Yw==
index 2
sTeYX/SE+2ANuTEHx3sDZcgNePW0Kd7Q/Zc2HQd5mes=

${SIGNED_CHECKPOINT}`
