import type { ServerResponse } from 'node:http'
import { onTestFinished } from 'vitest'
import { openWitnessClient } from '../../src/adapters/witnesses.ts'
import { areSameBytes, decodeBase64 } from '../../src/domain/digest.ts'
import { isConsistent } from '../domain/year/naive-merkle-tree.ts'
import type { TreeHead } from '../domain/year/naive-merkle-tree.ts'
import { openCheckpoint, parseDecimal, parseVerifierKey } from '../../src/domain/year/log/signed-note.ts'
import type { Checkpoint, VerifierKey } from '../../src/domain/year/log/signed-note.ts'
import type { LogWitnesses } from '../../src/domain/ports.ts'
import { testWitness } from '../domain/year/log-vectors.ts'
import { localSource } from './local-source.ts'
import type { SourceRequest } from './local-source.ts'

/** A witness over HTTP that makes the checks of C2SP tlog-witness. It is closed when the test ends. */
export interface LocalWitness {
  url: string
  vkey: string
  key: VerifierKey
  requests: SourceRequest[]
  /** The checkpoint that it cosigned last; null before the first. */
  latest: TreeHead | null
  /** Responds instead of the checks, until it is null again. */
  behaviour: WitnessBehaviour | null
}

/** A submitted checkpoint and the response to it. */
interface Submitted {
  response: ServerResponse
  /** Text of the submitted checkpoint. */
  text: string
  time: number
}

export type WitnessBehaviour = (submitted: Submitted) => unknown

interface WitnessOptions {
  /** Number of the witness, which selects its name and its key. */
  number?: number
  /** Current time in seconds since 1970. */
  now?: () => number
  /** Cosigns every checkpoint that is signed, without comparing it with an earlier one. */
  forgetful?: boolean
}

/** @param logKey key of the log whose checkpoints it accepts */
export async function localWitness(
  logKey: VerifierKey,
  { number = 1, now = () => Math.floor(Date.now() / 1000), forgetful = false }: WitnessOptions = {},
): Promise<LocalWitness> {
  const { vkey, cosign } = testWitness(`w${number}`, number + 2)
  const key = parseVerifierKey(vkey)
  if (key === null) throw new Error(`${vkey} is not a verifier key`)
  const witness: Omit<LocalWitness, 'url' | 'requests'> = { vkey, key, latest: null, behaviour: null }

  const respond = (body: string, response: ServerResponse): void => {
    const submission = parseSubmission(body)
    if (submission === null) return end(response, 400)
    const opened = openCheckpoint(submission.note, [logKey])
    if (opened.problem !== null) return end(response, 403)
    const { checkpoint, note } = opened
    if (witness.behaviour !== null) return void witness.behaviour({ response, text: note.text, time: now() })
    const latest = forgetful ? null : witness.latest
    const status = forgetful ? 200 : judge(latest, checkpoint, submission)
    if (status === 'other-size') return end(response, 409, `${latest?.size ?? 0}\n`, 'text/x.tlog.size')
    if (status !== 200) return end(response, status)
    witness.latest = checkpoint
    end(response, 200, `${cosign(note.text, now())}\n`)
  }
  const { url, requests } = await localSource(({ method, target, body }, response) =>
    method === 'POST' && target === '/add-checkpoint' ? respond(body, response) : end(response, 404),
  )
  return Object.assign(witness, { url, requests })
}

interface WitnessSubmission {
  old: number
  proof: Uint8Array[]
  note: string
}

function parseSubmission(body: string): WitnessSubmission | null {
  const [, oldText = '', hashes = '', note = ''] = /^old (\d+)\n((?:[^\n]+\n)*)\n([^]+)$/.exec(body) ?? []
  const old = parseDecimal(oldText)
  const proof = hashes.split('\n').slice(0, -1).map(decodeBase64)
  const isValid = proof.length <= 63 && proof.every((hash) => hash?.byteLength === 32)
  return old === null || !isValid ? null : { old, proof: proof.filter((hash) => hash !== null), note }
}

/** Status of the response to a checkpoint; `other-size`: 409 with the size of the latest checkpoint. */
function judge(
  latest: TreeHead | null,
  checkpoint: Checkpoint,
  { old, proof }: WitnessSubmission,
): number | 'other-size' {
  if (old > checkpoint.size) return 400
  if (old !== (latest?.size ?? 0)) return 'other-size'
  if (latest === null) return proof.length === 0 ? 200 : 422
  // The witness of transparency-dev responds to another root of the same size with 409 and no body.
  if (latest.size === checkpoint.size && !areSameBytes(latest.root, checkpoint.root)) return 409
  return isConsistent(latest, checkpoint, proof) ? 200 : 422
}

function end(response: ServerResponse, status: number, body = '', type = 'text/plain'): void {
  response.writeHead(status, { 'content-type': type }).end(body)
}

/** The witnesses as the configuration provides them. */
export function witnessesOf(witnesses: readonly LocalWitness[], responseTimeoutMs?: number): LogWitnesses {
  const timeout = responseTimeoutMs === undefined ? {} : { responseTimeoutMs }
  const client = openWitnessClient({ userAgent: 'dash/test', ...timeout })
  onTestFinished(() => client.close())
  return { parties: witnesses.map(({ key, url }) => ({ key, url })), addCheckpoint: client.addCheckpoint }
}

/** Text of a policy file that requires all of the witnesses. */
export function policyOf(...witnesses: readonly LocalWitness[]): string {
  const names = witnesses.map((_, index) => `w${index + 1}`)
  const lines = witnesses.map(({ vkey, url }, index) => `witness ${names[index]} ${vkey} ${url}\n`)
  return `${lines.join('')}group all all ${names.join(' ')}\nquorum all\n`
}

const status =
  (code: number, body = '', type?: string): WitnessBehaviour =>
  ({ response }) =>
    end(response, code, body, type)

/** Responds with the signature line of a witness with this number. */
const signedBy =
  (number: number, change: (submitted: Submitted) => { text?: string; time?: number } = () => ({})) =>
  (submitted: Submitted): void => {
    const { text, time } = { ...submitted, ...change(submitted) }
    end(submitted.response, 200, `${testWitness(`w${number}`, number + 2).cosign(text, time)}\n`)
  }

/** Time limit of responses that never end; on a busy machine, other responses must still meet it. */
const SHORT_TIMEOUT_MS = 2_000

export type Misbehaviour = [behaviour: WitnessBehaviour, reason: string | RegExp, timeoutMs?: number]

const NO_SIZE = 'it responded with 409'
const NO_LINES = 'its response does not consist of signature lines'
const NO_SIGNATURE = /^its response has no signature of the key [\da-f]{8}$/
const INVALID = 'its cosignature is invalid'
const NO_END = 'no complete response within 2000 ms'

/**
 * Responses of the witness with the number 1 that a client must reject, each with the reason in a report, and the time
 * limit if it is not the default.
 */
export const MISBEHAVIOURS = {
  'responds with 409 and no size': [status(409), NO_SIZE],
  'responds with 409 and a size that is not a number': [status(409, '0x5\n', 'text/x.tlog.size'), NO_SIZE],
  'responds with 409 and a size of another content type': [status(409, '1\n'), NO_SIZE],
  'responds with 422': [status(422), 'it responded with 422'],
  'responds with 403': [status(403), 'it responded with 403'],
  'responds with 500': [status(500, 'x'.repeat(10_000)), 'it responded with 500'],
  'never responds': [() => undefined, NO_END, SHORT_TIMEOUT_MS],
  'responds one byte at a time': [
    ({ response }) => {
      const drip = setInterval(() => response.write('x'), 50)
      response.on('close', () => clearInterval(drip))
    },
    NO_END,
    SHORT_TIMEOUT_MS,
  ],
  'resets the connection': [({ response }) => response.destroy(), /closed|hang up|reset/],
  'responds with too many bytes': [
    status(200, '— w'.repeat(10_000)),
    'its response has more than 16384 bytes',
  ],
  'redirects to another address': [
    ({ response }) => response.writeHead(307, { location: 'http://127.0.0.1:1/add-checkpoint' }).end(),
    'it responded with 307',
  ],
  'responds with an HTML page': [status(200, '<!doctype html>'), NO_LINES],
  'responds with nothing': [status(200), NO_SIGNATURE],
  'responds with invalid UTF-8': [
    ({ response }) => response.writeHead(200).end(Buffer.of(0xe2, 0x80, 0x94, 0x20, 0xff, 0x0a)),
    NO_LINES,
  ],
  'signs another text': [signedBy(1, () => ({ text: 'other\n1\nAAAA\n' })), INVALID],
  'signs with the key of another witness': [signedBy(2), NO_SIGNATURE],
  'signs the time 0': [signedBy(1, () => ({ time: 0 })), INVALID],
  'signs a time that is far in the future': [
    signedBy(1, ({ time }) => ({ time: time + 3_600 })),
    /^its cosignature is dated \d+ s in the future$/,
  ],
  'makes the signatures of the note a part of its text': [
    ({ response, text, time }) => end(response, 200, `\n${testWitness('w1', 3).cosign(`${text}\n`, time)}\n`),
    NO_LINES,
  ],
  'adds an invalid signature to a valid one': [
    ({ response, text, time }) => {
      const { cosign } = testWitness('w1', 3)
      end(response, 200, `${cosign(text, time)}\n${cosign('other\n', time)}\n`)
    },
    INVALID,
  ],
} satisfies Record<string, Misbehaviour>
