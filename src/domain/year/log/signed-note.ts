import {
  ED25519_KEY_BYTES,
  ED25519_SIGNATURE_BYTES,
  decodeBase64,
  ed25519PublicKey,
  encodeBase64,
  isEd25519Signature,
  sha256,
  signEd25519,
  areSameBytes,
} from '../../digest.ts'
import { HASH_BYTES } from './merkle-tree.ts'
import type { Hash } from './merkle-tree.ts'

/**
 * Signed notes and checkpoints (C2SP signed-note 1.0, tlog-checkpoint 1.0). Every parser accepts canonical texts only:
 * formatting a parsed value returns the same text. Signatures of unknown keys are ignored.
 */

/** The byte that encodes the signature type in keys: Ed25519 over the text of the note. */
const TYPE_BYTE = 0x01

/** A public key that verifies the signatures of a log. */
export interface VerifierKey {
  /** Name of the key: the origin of the log. */
  name: string
  /** Eight hex digits. Name and id together identify the key of a signature. */
  id: string
  publicKey: Uint8Array
}

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

function verifierKey(name: string, publicKey: Uint8Array): VerifierKey {
  const named = Buffer.concat([bytesOf(`${name}\n`), Uint8Array.of(TYPE_BYTE), publicKey])
  return { name, id: hexOf(sha256(named).subarray(0, KEY_ID_BYTES)), publicKey }
}

/** Formats a key without its name: `<id>+<base64 of type and key>`. */
function encodeKey({ id }: VerifierKey, key: Uint8Array): string {
  return `${id}+${encodeBase64(Buffer.concat([Uint8Array.of(TYPE_BYTE), key]))}`
}

/** Formats a verifier key: `<name>+<id>+<base64>`. */
export function formatVerifierKey(key: VerifierKey): string {
  return `${key.name}+${encodeKey(key, key.publicKey)}`
}

/** Parses a verifier key; null for any text that {@link formatVerifierKey} does not produce. */
export function parseVerifierKey(text: string): VerifierKey | null {
  return parseKey(text, '', verifierKey, formatVerifierKey)
}

/** @param format writes exactly the texts that are keys */
function parseKey<Key>(
  text: string,
  prefix: string,
  make: (name: string, bytes: Uint8Array) => Key,
  format: (key: Key) => string,
): Key | null {
  const [, name = '', encoded = ''] =
    /^([^+]+)\+[\da-f]{8}\+([A-Za-z\d+/=]+)$/.exec(text.slice(prefix.length)) ?? []
  const bytes = decodeBase64(encoded)
  if (bytes?.byteLength !== 1 + ED25519_KEY_BYTES || bytes[0] !== TYPE_BYTE || !isKeyName(name)) return null
  const key = make(name, bytes.subarray(1))
  return format(key) === text ? key : null
}

/**
 * Derives the private key of a log from a seed.
 *
 * @param name origin of the log; must pass {@link isKeyName}
 * @param seed 32 random bytes
 */
export function signerKey(name: string, seed: Uint8Array): SignerKey {
  return { ...verifierKey(name, ed25519PublicKey(seed)), seed }
}

const PRIVATE_KEY = 'PRIVATE+KEY+'

/** Formats a private key as Go's `golang.org/x/mod/sumdb/note` does. */
export function formatSignerKey(key: SignerKey): string {
  return `${PRIVATE_KEY}${key.name}+${encodeKey(key, key.seed)}`
}

/** Parses a private key; null for any text that {@link formatSignerKey} does not produce. */
export function parseSignerKey(text: string): SignerKey | null {
  return parseKey(text, PRIVATE_KEY, signerKey, formatSignerKey)
}

/** One signature line of a note, not verified. */
interface NoteSignature {
  name: string
  keyId: string
  /** Bytes after the key id: the signature. Signatures of other types can have other lengths. */
  bytes: Uint8Array
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

/** Parses a signature line without its newline; null if it is not a signature line. */
function parseSignature(line: string): NoteSignature | null {
  const [, name = '', encoded = ''] = /^\u2014 ([^ ]+) ([A-Za-z\d+/=]+)$/.exec(line) ?? []
  const bytes = decodeBase64(encoded)
  if (!isKeyName(name) || bytes === null || bytes.byteLength <= KEY_ID_BYTES) return null
  const keyId = hexOf(bytes.subarray(0, KEY_ID_BYTES))
  return { name, keyId, bytes: bytes.subarray(KEY_ID_BYTES) }
}

/** Signs a text with one or more keys of a log and returns the note. */
export function signNote(text: string, ...keys: readonly SignerKey[]): string {
  const lines = keys.map((key) => {
    const signature = Buffer.concat([Buffer.from(key.id, 'hex'), signEd25519(key.seed, bytesOf(text))])
    return `\u2014 ${key.name} ${encodeBase64(signature)}\n`
  })
  return `${text}\n${lines.join('')}`
}

/** Verifies all signatures of a key on a note. One invalid signature makes the result invalid. */
export function verifyNote({ text, signatures }: Note, key: VerifierKey): 'missing' | 'invalid' | 'valid' {
  const own = signatures.filter(({ name, keyId }) => name === key.name && keyId === key.id)
  if (own.length === 0) return 'missing'
  const isValid = own.every(
    ({ bytes }) =>
      bytes.byteLength === ED25519_SIGNATURE_BYTES && isEd25519Signature(key.publicKey, bytesOf(text), bytes),
  )
  return isValid ? 'valid' : 'invalid'
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

/** A signed checkpoint, or the reason why a text is none. */
export type OpenedCheckpoint = { problem: string } | { problem: null; checkpoint: Checkpoint; note: Note }

/** Reads a signed checkpoint without verifying its signatures. */
export function readCheckpoint(text: string): OpenedCheckpoint {
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
  const verdicts = keys.map((key) => ({ key, is: verifyNote(note, key) }))
  const invalid = verdicts.find(({ is }) => is === 'invalid')
  if (invalid) return { problem: `the signature of ${invalid.key.name} is invalid` }
  const valid = verdicts.filter(({ is }) => is === 'valid')
  if (valid.some(({ key }) => key.name === checkpoint.origin)) return read
  const [other] = valid
  return other
    ? { problem: `it is a checkpoint of ${checkpoint.origin}, signed by ${other.key.name}` }
    : { problem: 'it is not signed by a trusted key of the log' }
}

/**
 * Policies of a reader (C2SP tlog-policy): the keys of a log to trust. A policy that requires the signatures of others is
 * refused, because nothing verifies them.
 */

const NO_QUORUM = 'quorum none\n'

/** Formats a policy for one log, any of whose keys may sign. */
export function formatPolicy(keys: readonly VerifierKey[], url: string | null): string {
  const lines = keys.map((key) => `log ${formatVerifierKey(key)}${url === null ? '' : ` ${url}`}\n`)
  return lines.join('') + NO_QUORUM
}

const CONTROL_BUT_TAB = /[^\t\P{Cc}]/u

/**
 * Parses a policy.
 *
 * @returns the trusted keys, or a `problem` that names the invalid line
 */
export function parsePolicy(text: string): { problem: null; keys: VerifierKey[] } | { problem: string } {
  const keys: VerifierKey[] = []
  let hasQuorum = false
  const problemOf = (line: string): string | null => {
    if (CONTROL_BUT_TAB.test(line)) return 'contains a control character'
    if (/^[ \t]*(#|$)/.test(line)) return null
    const [keyword = '', ...items] = line.split(/[ \t]+/).filter((item) => item !== '')
    if (keyword === 'quorum') {
      if (hasQuorum || items.join(' ') !== 'none') return 'must be the only quorum line: quorum none'
      hasQuorum = true
      return null
    }
    if (keyword !== 'log')
      return `begins with ${JSON.stringify(keyword.slice(0, 40))}; expected log or quorum none`
    const [vkey = '', _url, ...more] = items
    if (more.length > 0) return 'has extra items after the key and the URL'
    const key = parseVerifierKey(vkey)
    if (key === null) return 'needs the verifier key of a log'
    if (keys.some(({ publicKey }) => areSameBytes(publicKey, key.publicKey)))
      return 'repeats a key of an earlier line'
    keys.push(key)
    return null
  }
  for (const [index, line] of text.split('\n').entries()) {
    const problem = problemOf(line)
    if (problem !== null) return { problem: `line ${index + 1} ${problem}` }
  }
  if (!hasQuorum) return { problem: 'the quorum line is missing' }
  if (!text.endsWith('\n')) return { problem: 'the last line does not end with a newline' }
  return { problem: null, keys }
}
