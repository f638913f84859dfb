/**
 * Checks of a publication against its proof file (docs/proof.md). Only `crypto.subtle` is used, so pages without a
 * server can use this module too.
 *
 * @typedef {Uint8Array<ArrayBuffer>} Bytes
 * @typedef {object} Check one sentence; `ok` is null if it says what was not checked
 * @property {string} what
 * @property {boolean | null} ok
 * @typedef {{ entry: Bytes, index: number, hashes: Bytes[], checkpoint: string }} Proof
 * @typedef {{ text: string, origin: string, size: number, root: Bytes, signatures: Signature[] }} Checkpoint
 * @typedef {{ name: string, keyId: string, bytes: Bytes }} Signature
 */

/** Elements of a line of the ledger (docs/decisions/0003-ledger-hash-chain.md). */
export const ENTRY = { format: 0, seq: 2, kind: 3, sha256: 14, legacyDigest: 19 }
const ENTRY_FORMAT = 'dash-year-ledger/1'

/** Element of a line of the legacy ledger. */
export const LEGACY_SHA256 = 10

const HASH_BYTES = 32

/**
 * Checks a publication against its proof file, or against the JSON document with the proof of a legacy publication.
 *
 * @param {Bytes} bytes the publication
 * @param {string} proofText the proof file, as `/tlog/year/proof?at=…` serves it
 * @param {string} policyText the policy with the key of the log; the result says that the key itself is not checked
 * @returns {Promise<Check[]>} the publication is in the signed log if no check has the value false
 */
export async function checkPublication(bytes, proofText, policyText) {
  const { proof, legacy } = parseProofDocument(proofText)
  const checkpoint = proof && parseCheckpoint(proof.checkpoint)
  if (!proof || !checkpoint) return [{ what: 'The proof file is well-formed.', ok: false }]
  const digest = hexOf(await sha256(bytes))
  return [
    ...(await checkLine(proof, legacy, digest)),
    await checkInclusion(proof, checkpoint),
    await checkSignature(checkpoint, policyText),
    {
      what: 'Not checked: that the key in the policy of this host is the right one, and signatures of witnesses. dash verify checks them.',
      ok: null,
    },
  ]
}

/**
 * @param {Proof} proof
 * @param {string | null} legacy text of the legacy ledger
 * @param {string} digest SHA-256 of the publication
 * @returns {Promise<Check[]>}
 */
async function checkLine({ entry, index }, legacy, digest) {
  const line = parseArray(new TextDecoder().decode(entry))
  const isLine = line[ENTRY.format] === ENTRY_FORMAT && line[ENTRY.seq] === index + 1
  const place = `Entry ${index + 1} of the log`
  if (legacy === null) {
    const isNamed = isLine && line[ENTRY.kind] === 'publication' && line[ENTRY.sha256] === digest
    return [{ what: `${place} contains the SHA-256 of this publication, ${digest}.`, ok: isNamed }]
  }
  const legacyDigest = hexOf(await sha256(bytesOf(legacy)))
  const isSealed = isLine && line[ENTRY.kind] === 'legacy-seal' && line[ENTRY.legacyDigest] === legacyDigest
  const isListed = legacy.split('\n').some((row) => parseArray(row)[LEGACY_SHA256] === digest)
  return [
    { what: `The legacy ledger contains the SHA-256 of this publication, ${digest}.`, ok: isListed },
    { what: `${place} contains the SHA-256 of the legacy ledger.`, ok: isSealed },
  ]
}

/**
 * @param {Proof} proof
 * @param {Checkpoint} checkpoint
 * @returns {Promise<Check>}
 */
async function checkInclusion({ entry, index, hashes }, { size, root }) {
  const leaf = await sha256(concat(Uint8Array.of(0), entry))
  const computed = index < size ? await rootOf(leaf, index, size, hashes) : null
  return {
    what: `The hashes of the proof lead from this entry to the root of the checkpoint with ${size} entries.`,
    ok: computed !== null && hexOf(computed) === hexOf(root),
  }
}

/**
 * Computes the root of a tree from an inclusion proof (RFC 6962, 2.1.1); null if the proof has the wrong length.
 *
 * @param {Bytes} leaf
 * @param {number} index
 * @param {number} size
 * @param {Bytes[]} hashes
 * @returns {Promise<Bytes | null>}
 */
async function rootOf(leaf, index, size, hashes) {
  const sibling = hashes.at(-1)
  if (size === 1 || sibling === undefined) return size === 1 && sibling === undefined ? leaf : null
  let left = 1
  while (left * 2 < size) left *= 2
  const below = hashes.slice(0, -1)
  const isLeft = index < left
  const child = isLeft
    ? await rootOf(leaf, index, left, below)
    : await rootOf(leaf, index - left, size - left, below)
  if (child === null) return null
  return sha256(concat(Uint8Array.of(1), ...(isLeft ? [child, sibling] : [sibling, child])))
}

/**
 * @param {Checkpoint} checkpoint
 * @param {string} policyText
 * @returns {Promise<Check>}
 */
async function checkSignature({ text, origin, signatures }, policyText) {
  const keys = await logKeys(policyText, origin)
  const signed = signatures.flatMap(({ name, keyId, bytes }) =>
    keys.filter((key) => name === origin && keyId === key.id).map(({ publicKey }) => ({ publicKey, bytes })),
  )
  const what = `The key of ${origin} in the policy of this host signed the checkpoint.`
  if (signed.length === 0) return { what, ok: false }
  try {
    const results = await Promise.all(
      signed.map(async ({ publicKey, bytes }) => {
        const key = await crypto.subtle.importKey('raw', publicKey, 'Ed25519', false, ['verify'])
        return crypto.subtle.verify('Ed25519', key, bytes, bytesOf(text))
      }),
    )
    return { what, ok: results.every((isValid) => isValid) }
  } catch {
    return { what: 'Not checked: the signature of the log. This browser has no Ed25519.', ok: null }
  }
}

/**
 * Keys of a log in a policy (C2SP tlog-policy).
 *
 * @param {string} policyText
 * @param {string} origin
 */
async function logKeys(policyText, origin) {
  const keys = []
  for (const line of policyText.split('\n')) {
    const [keyword, vkey = ''] = line.split(/[ \t]+/)
    const [, name, id, encoded = ''] = /^([^+]+)\+([\da-f]{8})\+(.+)$/.exec(vkey) ?? []
    const bytes = decodeBase64(encoded)
    if (keyword !== 'log' || name !== origin || bytes === null) continue
    const ownId = await sha256(concat(bytesOf(`${name}\n`), bytes))
    const isKey = bytes[0] === 1 && bytes.length === 1 + HASH_BYTES && hexOf(ownId.slice(0, 4)) === id
    if (isKey) keys.push({ id, publicKey: bytes.slice(1) })
  }
  return keys
}

/**
 * @param {string} text
 * @returns {{ proof: Proof | null, legacy: string | null }}
 */
function parseProofDocument(text) {
  const { proofs, legacy } = parseObject(text)
  return Array.isArray(proofs) && typeof legacy === 'string'
    ? { proof: parseProof(String(proofs[0])), legacy }
    : { proof: parseProof(text), legacy: null }
}

/**
 * Parses a proof file (C2SP tlog-proof); null for any text that is not one.
 *
 * @param {string} text
 * @returns {Proof | null}
 */
function parseProof(text) {
  const end = text.indexOf('\n\n')
  const [first, extra = '', indexLine = '', ...hashLines] = text.slice(0, Math.max(0, end)).split('\n')
  const entry = extra.startsWith('extra ') ? decodeBase64(extra.slice('extra '.length)) : null
  const index = indexLine.startsWith('index ') ? parseDecimal(indexLine.slice('index '.length)) : null
  const hashes = hashLines.flatMap((line) => decodeBase64(line) ?? [])
  const areHashes = hashes.length === hashLines.length && hashes.every(isHash)
  if (first !== 'c2sp.org/tlog-proof@v1' || entry === null || index === null || !areHashes) return null
  return { entry, index, hashes, checkpoint: text.slice(end + 2) }
}

/**
 * Parses a signed checkpoint (C2SP tlog-checkpoint); null for any text that is not one.
 *
 * @param {string} note
 * @returns {Checkpoint | null}
 */
export function parseCheckpoint(note) {
  const end = note.lastIndexOf('\n\n') + 1
  const text = note.slice(0, end)
  const [origin = '', sizeLine = '', rootLine = ''] = text.split('\n')
  const size = parseDecimal(sizeLine)
  const root = decodeBase64(rootLine)
  const lines = note.slice(end + 1).split('\n')
  const signatures = lines.slice(0, -1).flatMap((line) => parseSignature(line) ?? [])
  if (origin === '' || size === null || root === null || !isHash(root)) return null
  return lines.at(-1) === '' && signatures.length === lines.length - 1
    ? { text, origin, size, root, signatures }
    : null
}

/**
 * @param {string} line
 * @returns {Signature | null}
 */
function parseSignature(line) {
  const [, name = '', encoded = ''] = /^\u2014 ([^ ]+) (.+)$/.exec(line) ?? []
  const bytes = decodeBase64(encoded)
  if (bytes === null || bytes.length <= 4) return null
  return { name, keyId: hexOf(bytes.slice(0, 4)), bytes: bytes.slice(4) }
}

/** @param {string} text */
function parseDecimal(text) {
  const value = Number(text)
  return /^(0|[1-9]\d{0,15})$/.test(text) && Number.isSafeInteger(value) ? value : null
}

/**
 * @param {string} text
 * @returns {Record<string, unknown>}
 */
function parseObject(text) {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/**
 * @param {string} text
 * @returns {unknown[]}
 */
export function parseArray(text) {
  const value = parseObject(text)
  return Array.isArray(value) ? value : []
}

/**
 * Decodes canonical base64; null for any other text.
 *
 * @param {string} text
 * @returns {Bytes | null}
 */
function decodeBase64(text) {
  try {
    const binary = atob(text)
    return btoa(binary) === text ? Uint8Array.from(binary, (byte) => byte.charCodeAt(0)) : null
  } catch {
    return null
  }
}

/** @param {Bytes} bytes */
const isHash = (bytes) => bytes.length === HASH_BYTES

/**
 * @param {string} text
 * @returns {Bytes}
 */
const bytesOf = (text) => new TextEncoder().encode(text)

/** @param {Bytes} bytes */
export const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')

/**
 * @param {Bytes} bytes
 * @returns {Promise<Bytes>}
 */
export const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))

/**
 * @param {...Bytes} parts
 * @returns {Bytes}
 */
export function concat(...parts) {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}
