import {
  ED25519_KEY_BYTES,
  ED25519_SIGNATURE_BYTES,
  decodeBase64,
  ed25519PublicKey,
  encodeBase64,
  isEd25519Signature,
  sha256,
  signEd25519,
} from '../../digest.ts'
import { HASH_BYTES } from './merkle-tree.ts'
import type { Hash } from './merkle-tree.ts'

/**
 * Signed notes, checkpoints and cosignatures (C2SP signed-note 1.0, tlog-checkpoint 1.0, tlog-cosignature 1.0). Every
 * parser accepts canonical texts only: formatting a parsed value returns the same text.
 */

/** Signature types and the byte that encodes each of them in keys. */
const TYPE_BYTES = { log: 0x01, witness: 0x04 } as const

/** A log signs the text of a note; a witness signs the text and the time. */
type KeyType = keyof typeof TYPE_BYTES

/** A public key that verifies signatures. */
export interface VerifierKey {
  /** Name of the key; for a log, its origin. */
  name: string
  /** Eight hex digits. Name and id together identify the key of a signature. */
  id: string
  type: KeyType
  publicKey: Uint8Array
}

/** The private key of a log. */
export interface SignerKey extends VerifierKey {
  seed: Uint8Array
}

const KEY_NAME = /^[^\p{White_Space}\p{Cc}+]+$/u

/** Returns true if a text can be the name of a key: not empty, without spaces, control characters and plus signs. */
export function isKeyName(text: string): boolean {
  return KEY_NAME.test(text) && text.isWellFormed()
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

const KEY_ID_BYTES = 4

function verifierKey(name: string, type: KeyType, publicKey: Uint8Array): VerifierKey {
  const named = Buffer.concat([bytesOf(`${name}\n`), Uint8Array.of(TYPE_BYTES[type]), publicKey])
  return { name, id: hexOf(sha256(named).subarray(0, KEY_ID_BYTES)), type, publicKey }
}

/** Formats a key without its name: `<id>+<base64 of type and key>`. */
function encodeKey({ id, type }: VerifierKey, key: Uint8Array): string {
  return `${id}+${encodeBase64(Buffer.concat([Uint8Array.of(TYPE_BYTES[type]), key]))}`
}

/** Formats a verifier key: `<name>+<id>+<base64>`. */
export function formatVerifierKey(key: VerifierKey): string {
  return `${key.name}+${encodeKey(key, key.publicKey)}`
}

/** Parses a verifier key; null for any text that {@link formatVerifierKey} does not produce. */
export function parseVerifierKey(text: string): VerifierKey | null {
  const { name, type, key } = parseKey(text) ?? {}
  if (name === undefined || type === undefined || key === undefined) return null
  const parsed = verifierKey(name, type, key)
  return formatVerifierKey(parsed) === text ? parsed : null
}

function parseKey(text: string): { name: string; type: KeyType; key: Uint8Array } | null {
  const [, name = '', encoded = ''] = /^([^+]+)\+[\da-f]{8}\+([A-Za-z\d+/=]+)$/.exec(text) ?? []
  const bytes = decodeBase64(encoded)
  const type = (['log', 'witness'] as const).find((each) => TYPE_BYTES[each] === bytes?.[0])
  if (bytes?.byteLength !== 1 + ED25519_KEY_BYTES || type === undefined || !isKeyName(name)) return null
  return { name, type, key: bytes.subarray(1) }
}

/**
 * Derives the private key of a log from a seed.
 *
 * @param name origin of the log; must pass {@link isKeyName}
 * @param seed 32 random bytes
 */
export function signerKey(name: string, seed: Uint8Array): SignerKey {
  return { ...verifierKey(name, 'log', ed25519PublicKey(seed)), seed }
}

const PRIVATE_KEY = 'PRIVATE+KEY+'

/** Formats a private key as Go's `golang.org/x/mod/sumdb/note` does. */
export function formatSignerKey(key: SignerKey): string {
  return `${PRIVATE_KEY}${key.name}+${encodeKey(key, key.seed)}`
}

/** Parses a private key; null for any text that {@link formatSignerKey} does not produce. */
export function parseSignerKey(text: string): SignerKey | null {
  if (!text.startsWith(PRIVATE_KEY)) return null
  const { name, type, key } = parseKey(text.slice(PRIVATE_KEY.length)) ?? {}
  if (name === undefined || type !== 'log' || key === undefined) return null
  const parsed = signerKey(name, key)
  return formatSignerKey(parsed) === text ? parsed : null
}

/** One signature line of a note, not verified. */
export interface NoteSignature {
  name: string
  keyId: string
  /** Bytes after the key id. Log: the signature, 64 bytes. Witness: the time, 8 bytes, and the signature. */
  bytes: Uint8Array
  /** The whole line without its newline. */
  line: string
}

/** Signed note, parsed but not verified. */
export interface Note {
  /** Signed text, including its last newline. */
  text: string
  signatures: NoteSignature[]
}

/** Most signatures of a note; the specification requires support for at least 16. */
const SIGNATURES_MAX = 100

function hasControlCharacter(note: string): boolean {
  return Array.from(note).some((character) => character < ' ' && character !== '\n')
}

/** Parses a signed note; null if the text is not a signed note. */
export function parseNote(note: string): Note | null {
  if (!note.isWellFormed() || hasControlCharacter(note) || !note.endsWith('\n')) return null
  const end = note.lastIndexOf('\n\n') + 1
  if (end === 0) return null
  const lines = note.slice(end + 1, -1).split('\n')
  if (lines.length > SIGNATURES_MAX) return null
  const signatures = lines.map(parseSignature)
  return signatures.every((each) => each !== null) ? { text: note.slice(0, end), signatures } : null
}

/** Returns true for exactly one signature line with its newline, as a cosignature is stored. */
export function isSignatureLine(text: string): boolean {
  return text.endsWith('\n') && !hasControlCharacter(text) && parseSignature(text.slice(0, -1)) !== null
}

/** Parses a signature line without its newline; null if it is not a signature line. */
function parseSignature(line: string): NoteSignature | null {
  const [, name = '', encoded = ''] = /^\u2014 ([^ ]+) ([A-Za-z\d+/=]+)$/.exec(line) ?? []
  const bytes = decodeBase64(encoded)
  if (!isKeyName(name) || bytes === null || bytes.byteLength <= KEY_ID_BYTES) return null
  const keyId = hexOf(bytes.subarray(0, KEY_ID_BYTES))
  return { name, keyId, bytes: bytes.subarray(KEY_ID_BYTES), line }
}

/** Signs a text with one or more keys of a log and returns the note. */
export function signNote(text: string, ...keys: readonly SignerKey[]): string {
  const lines = keys.map((key) => {
    const signature = Buffer.concat([Buffer.from(key.id, 'hex'), signEd25519(key.seed, bytesOf(text))])
    return `\u2014 ${key.name} ${encodeBase64(signature)}\n`
  })
  return `${text}\n${lines.join('')}`
}

/** Result of verifying the signatures of one key on a note. */
export type NoteVerdict =
  | { is: 'missing' | 'invalid' }
  /** `times`: when a witness signed the note, in seconds since 1970, ascending; empty for a log. */
  | { is: 'valid'; times: number[] }

/** Verifies all signatures of a key on a note. One invalid signature makes the result invalid. */
export function verifyNote({ text, signatures }: Note, key: VerifierKey): NoteVerdict {
  const own = signatures.filter(({ name, keyId }) => name === key.name && keyId === key.id)
  if (own.length === 0) return { is: 'missing' }
  if (key.type === 'log') {
    const isValid = own.every(
      ({ bytes }) =>
        bytes.byteLength === ED25519_SIGNATURE_BYTES &&
        isEd25519Signature(key.publicKey, bytesOf(text), bytes),
    )
    return isValid ? { is: 'valid', times: [] } : { is: 'invalid' }
  }
  const times = own.map(({ bytes }) => cosignedAt(text, key, bytes))
  return times.every((time) => time !== null)
    ? { is: 'valid', times: times.toSorted((a, b) => a - b) }
    : { is: 'invalid' }
}

const TIME_BYTES = 8
const TIME_MAX = 2n ** 63n - 1n

/** Returns the time of a witness's cosignature in seconds since 1970; null if the signature is invalid. */
function cosignedAt(text: string, { publicKey }: VerifierKey, bytes: Uint8Array): number | null {
  if (bytes.byteLength !== TIME_BYTES + ED25519_SIGNATURE_BYTES) return null
  const time = Buffer.from(bytes).readBigUInt64BE()
  if (time < 1n || time > TIME_MAX) return null
  const message = bytesOf(`cosignature/v1\ntime ${time}\n${text}`)
  return isEd25519Signature(publicKey, message, bytes.subarray(TIME_BYTES)) ? Number(time) : null
}

/** Origin of a log, and size and root of its tree, as the log states them. */
export interface Checkpoint {
  origin: string
  size: number
  root: Hash
}

/** Formats the text of a checkpoint, without signatures. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${encodeBase64(root)}\n`
}

/** Parses the text of a checkpoint, ignoring extension lines; null for any other text. */
export function parseCheckpoint(text: string): Checkpoint | null {
  const [origin = '', sizeLine = '', rootLine = '', ...extensions] = text.split('\n')
  const hasLastNewline = extensions.pop() === ''
  const size = parseDecimal(sizeLine)
  const root = decodeBase64(rootLine)
  if (origin === '' || !hasLastNewline || extensions.includes('')) return null
  return size === null || root?.byteLength !== HASH_BYTES ? null : { origin, size, root }
}

/** Parses a non-negative decimal integer without leading zeros; null for any other text. */
export function parseDecimal(text: string): number | null {
  if (!/^(0|[1-9]\d{0,15})$/.test(text)) return null
  const value = Number(text)
  return Number.isSafeInteger(value) ? value : null
}

/** Checkpoint with a valid signature of its log, or the reason why it has none. */
export type OpenedCheckpoint =
  { problem: string } | { problem: null; checkpoint: Checkpoint; note: Note; key: VerifierKey }

/** Reads a signed checkpoint without verifying its signatures. */
export function readCheckpoint(
  text: string,
): { problem: string } | { problem: null; checkpoint: Checkpoint; note: Note } {
  const note = parseNote(text)
  if (note === null) return { problem: 'it is not a signed note' }
  const checkpoint = parseCheckpoint(note.text)
  return checkpoint === null
    ? { problem: 'its text is not a checkpoint' }
    : { problem: null, checkpoint, note }
}

/**
 * Opens a signed checkpoint of a log and verifies its signatures.
 *
 * @param keys trusted keys; the signature of one with the checkpoint's origin must be valid, and none may be invalid
 */
export function openCheckpoint(text: string, keys: readonly VerifierKey[]): OpenedCheckpoint {
  const read = readCheckpoint(text)
  if (read.problem !== null) return read
  const { note, checkpoint } = read
  const verdicts = keys.map((key) => ({ key, is: verifyNote(note, key).is }))
  const invalid = verdicts.find(({ is }) => is === 'invalid')
  if (invalid) return { problem: `the signature of ${invalid.key.name} is invalid` }
  const valid = verdicts.filter(({ is }) => is === 'valid')
  const signer = valid.find(({ key }) => key.name === checkpoint.origin)
  if (signer) return { problem: null, checkpoint, note, key: signer.key }
  const [other] = valid
  return other
    ? { problem: `it is a checkpoint of ${checkpoint.origin}, signed by ${other.key.name}` }
    : { problem: 'it is not signed by a trusted key of the log' }
}
