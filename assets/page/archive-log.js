import { ENTRY, LEGACY_SHA256, concat, hexOf, parseArray, parseCheckpoint, sha256 } from './check-proof.js'

/**
 * Reads the signed log of an exported archive and checks publications against it (docs/static-hosting.md). Only
 * `crypto.subtle` is used.
 *
 * @typedef {import('./check-proof.js').Bytes} Bytes
 * @typedef {(path: string) => Promise<Bytes>} ReadFile reads a file of the export; rejects if it is missing
 * @typedef {{ what: string, ok: boolean }} Check one sentence, and whether it is true
 * @typedef {import('./check-proof.js').Checkpoint & { entries: Bytes[] }} Log every entry, not verified
 * @typedef {{ sha256: string, ledger: 'v1' | 'versioned', seq: number }} LoggedPublication
 */

const BUNDLE_LENGTH = 256

/**
 * Reads the checkpoint and all entries that it covers.
 *
 * @param {ReadFile} readFile
 * @returns {Promise<Log>}
 */
export async function readLog(readFile) {
  const checkpoint = parseCheckpoint(textOf(await readFile('tlog/year/checkpoint')))
  if (checkpoint === null) throw new Error('tlog/year/checkpoint is not a checkpoint')
  const { size } = checkpoint
  const count = Math.ceil(size / BUNDLE_LENGTH)
  const bundles = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      readBundle(readFile, index, Math.min(BUNDLE_LENGTH, size - index * BUNDLE_LENGTH)),
    ),
  )
  return { ...checkpoint, entries: bundles.flat() }
}

/**
 * @param {ReadFile} readFile
 * @param {number} index
 * @param {number} width number of entries
 */
async function readBundle(readFile, index, width) {
  const partial = width === BUNDLE_LENGTH ? '' : `.p/${width}`
  const path = `tlog/year/tile/entries/${groupsOf(index)}${partial}`
  const bytes = await readFile(path)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const entries = []
  let at = 0
  while (entries.length < width && at + 2 <= bytes.byteLength) {
    const end = at + 2 + view.getUint16(at)
    entries.push(bytes.slice(at + 2, end))
    at = end
  }
  if (entries.length !== width || at !== bytes.byteLength)
    throw new Error(`${path} is not a bundle of ${width} entries`)
  return entries
}

/**
 * Index of a bundle in its path: `5` is `005`, `1234067` is `x001/x234/067`.
 *
 * @param {number} index
 */
function groupsOf(index) {
  const digits = String(index)
  return digits.padStart(Math.ceil(digits.length / 3) * 3, '0').replaceAll(/\d{3}(?=\d)/g, 'x$&/')
}

/**
 * Checks that the log contains a publication.
 *
 * @param {Log} log
 * @param {LoggedPublication} publication
 * @param {string} digest SHA-256 of the publication's bytes, in hex
 * @param {ReadFile} readFile
 * @returns {Promise<Check[]>} the checkpoint covers the bytes if every check is true
 */
export async function checkInLog(log, publication, digest, readFile) {
  const line =
    publication.ledger === 'versioned'
      ? [checkEntry(log, publication, digest)]
      : await checkLegacy(log, digest, await readFile('ledger/legacy.ndjson'))
  return [...line, await checkRoot(log)]
}

/**
 * @param {Log} log
 * @param {LoggedPublication} publication
 * @param {string} digest
 * @returns {Check}
 */
function checkEntry({ entries }, { seq }, digest) {
  const entry = entries[seq - 1]
  const ok = entry !== undefined && parseArray(textOf(entry))[ENTRY.sha256] === digest
  return { what: `entry ${seq} of the log contains this SHA-256`, ok }
}

/**
 * @param {Log} log
 * @param {string} digest
 * @param {Bytes} legacy the legacy ledger
 * @returns {Promise<Check[]>}
 */
async function checkLegacy({ entries }, digest, legacy) {
  const seal = hexOf(await sha256(legacy))
  const listed = textOf(legacy)
    .split('\n')
    .some((line) => parseArray(line)[LEGACY_SHA256] === digest)
  const sealed = entries.some((entry) => parseArray(textOf(entry))[ENTRY.legacyDigest] === seal)
  return [
    { what: 'the legacy ledger contains this SHA-256', ok: listed },
    { what: 'an entry of the log contains the SHA-256 of the legacy ledger', ok: sealed },
  ]
}

/**
 * @param {Log} log
 * @returns {Promise<Check>}
 */
async function checkRoot({ origin, size, root, entries }) {
  let level = await Promise.all(entries.map((entry) => sha256(concat(Uint8Array.of(0), entry))))
  while (level.length > 1) level = await Promise.all(pairsOf(level).map(parentOf))
  const [computed] = level
  return {
    what: `all ${size} entries give the root of the checkpoint of ${origin}`,
    ok: computed !== undefined && hexOf(computed) === hexOf(root),
  }
}

/**
 * @param {Bytes[]} level
 * @returns {Bytes[][]}
 */
function pairsOf(level) {
  return Array.from({ length: Math.ceil(level.length / 2) }, (_, index) =>
    level.slice(2 * index, 2 * index + 2),
  )
}

/**
 * @param {Bytes[]} pair two nodes, or the last node of a level, which moves up as it is
 * @returns {Promise<Bytes>}
 */
async function parentOf([left, right]) {
  const node = left ?? new Uint8Array()
  return right ? sha256(concat(Uint8Array.of(1), node, right)) : node
}

/** @param {Bytes} bytes */
function textOf(bytes) {
  return new TextDecoder().decode(bytes)
}
