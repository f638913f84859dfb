import { Readable } from 'node:stream'
import type { H3Event } from 'h3'
import { LRUCache } from 'lru-cache'
import type { IpRange } from '../../domain/address.ts'
import type { Clock, PassThrough } from '../../domain/ports.ts'
import { formatNeeds, selectModels } from '../../domain/v1/completion-request.ts'
import type { CompletionRequest } from '../../domain/v1/completion-request.ts'
import { BrokenStream, errorOf, limitHeaders } from '../../domain/v1/failures.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { firstCodePoints } from '../../domain/text.ts'
import { networkOf } from '../../domain/address.ts'
import {
  JSON_TYPE,
  NO_STORE,
  STREAM_BUFFER_MAX_BYTES,
  markBodyRead,
  respond,
  respondStream,
} from '../respond.ts'
import { deprecationHeaders } from '../models/routes.ts'
import type { AnswerAsDash } from './dash-model.ts'
import { NO_RETRY, V1Refusal } from './contracts.ts'
import { openSlots } from '../fair-queue.ts'
import type { SlotBounds } from '../fair-queue.ts'
import { addressLimit } from '../callers.ts'

/** What the OpenAI-compatible interface needs from outside. */
export interface V1Ports {
  passThrough: PassThrough
  trustedProxies: readonly IpRange[]
  /** Time limit of a whole response, in milliseconds. */
  turnMs: number
  clock: Clock
  /** Answers chat completions for the model `dash`; absent while the chat is not set up. */
  answerAsDash?: AnswerAsDash
}

/** What a completion needs beside its request. */
export interface CompletionContext {
  ports: Pick<V1Ports, 'passThrough' | 'clock'>
  limits: Pick<V1Limits, 'countRejectedKey'>
  address: string
  key: string
  run: StoredRun
  open: OpenRequest
}

/**
 * Passes a chat completion on to the models that meet its needs, of which the routing service chooses.
 *
 * @throws V1Refusal
 */
export async function complete(
  event: H3Event,
  request: CompletionRequest,
  context: CompletionContext,
): Promise<Response> {
  const { run, open, ports } = context
  const { chunks, model } = await passOn(request, idsFor(request, run), context)
  const headers = {
    ...NO_STORE,
    'x-dash-ranking-version': run.rankingVersion,
    ...(model === null ? {} : { 'x-dash-model': model, ...deprecationHeaders(run, model, ports.clock()) }),
  }
  if (request.stream) return respondStream(event, headers, streamOf(chunks, open))
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  open.release()
  markBodyRead(event)
  const [first] = parts
  // A whole completion is one part, which may have megabytes.
  const body =
    first !== undefined && parts.length === 1
      ? Buffer.from(first.buffer, first.byteOffset, first.byteLength)
      : Buffer.concat(parts)
  return respond(event, 200, { ...headers, 'content-type': JSON_TYPE }, body)
}

function streamOf(chunks: AsyncIterable<Uint8Array>, open: OpenRequest): Readable {
  const body = Readable.from(untilBroken(chunks, open), {
    objectMode: false,
    highWaterMark: STREAM_BUFFER_MAX_BYTES,
  })
  body.once('close', () => open.release())
  return body
}

/** Passes chunks on; a stream that breaks off ends with an error event and without the end mark. */
async function* untilBroken(
  chunks: AsyncIterable<Uint8Array>,
  open: OpenRequest,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } catch (error) {
    if (!(error instanceof BrokenStream)) throw error
    yield errorEvent(open.isLate() ? 'total' : error.code)
  }
}

const BROKEN = {
  idle: 'the model sent nothing for too long; the answer is incomplete',
  total: 'the answer took too long and is incomplete',
  truncated: 'the connection to the model broke; the answer is incomplete',
  invalid_stream:
    'the model sent an event that is too large, or too much without one; the answer is incomplete',
} as const

/** The blank line before it ends an incomplete event. */
function errorEvent(code: keyof typeof BROKEN): Buffer {
  return Buffer.from(
    `\n\ndata: ${JSON.stringify({ error: { message: BROKEN[code], type: 'api_error', code } })}\n\n`,
  )
}

/** @throws V1Refusal `model_not_found` or `no_free_model` */
function idsFor({ model, needs }: CompletionRequest, run: StoredRun): readonly string[] {
  const selection = selectModels(run.models, model, needs)
  if ('models' in selection) return selection.models.map(({ id }) => id)
  if ('rejected' in selection)
    throw new V1Refusal('no_free_model', {
      members: { needs: formatNeeds(needs), rejected: selection.rejected },
    })
  const name = JSON.stringify(firstCodePoints(model, 100))
  const message = `there is no model ${name}; /v1/models lists every model`
  throw new V1Refusal('model_not_found', { members: { message } })
}

type Completion = Extract<Sent, { chunks: unknown }>

/** @throws V1Refusal for a failure of the routing service */
async function passOn(
  { bodyFor, stream }: CompletionRequest,
  ids: readonly string[],
  { ports, limits, address, key, run, open }: CompletionContext,
): Promise<Completion> {
  const sent = await send(ports.passThrough, { key, ids, bodyFor, stream }, open)
  if ('chunks' in sent) return sent
  const error = errorOf(sent)
  if (error.status === 401) limits.countRejectedKey(address)
  const headers = {
    'x-dash-ranking-version': run.rankingVersion,
    ...limitHeaders(sent, ports.clock()),
    // A repetition would cost the caller's account another request.
    ...NO_RETRY,
  }
  throw new V1Refusal(error, { headers })
}

type Sent = Awaited<ReturnType<PassThrough['send']>>

async function send(
  passThrough: PassThrough,
  call: Parameters<PassThrough['send']>[0],
  open: OpenRequest,
): Promise<Sent> {
  try {
    return await passThrough.send(call, open.signal)
  } catch (error) {
    if (!open.signal.aborted) throw error
    return { class: 'timeout', status: null, retryAt: null, resetAt: null, limit: null, remaining: null }
  }
}

/** An open request: it ends when its client leaves, when its time is over, or when it is released. */
export interface OpenRequest {
  signal: AbortSignal
  /** True after the time limit was exceeded. */
  isLate(): boolean
  /** Ends the request and frees what it holds; further calls have no effect. */
  release(): void
}

/**
 * @param ms time limit of the whole response
 * @param free frees the slot of the request
 */
export function openRequest(event: H3Event, ms: number, free: () => void): OpenRequest {
  const response = event.runtime?.node?.res
  const controller = new AbortController()
  let late = false
  const release = (): void => {
    clearTimeout(timer)
    response?.off('close', release)
    free()
    controller.abort()
  }
  const timer = setTimeout(() => {
    late = true
    controller.abort()
  }, ms)
  response?.once('close', release)
  if (response?.closed === true) release()
  return { signal: controller.signal, isLate: () => late, release }
}

/** Limits of `/v1` (docs/v1.md). */
const V1_LIMITS = {
  requestsPerMinute: 60,
  streams: 100,
  rejectedKeys: 10,
  rejectedKeysOfNetwork: 20,
} as const

/** Parts of all streams that one address or network, and one IPv6 /32, may have open. */
const PER_ADDRESS = V1_LIMITS.streams / 4
const PER_REGION = V1_LIMITS.streams / 2

const MEGABYTE = 1024 * 1024

/** A body is not counted up to this length, so that large ones never keep small ones out. */
const SMALL_BODY_BYTES = 64 * 1024

/** Bytes of larger bodies that arrive or wait. */
const BODY_BYTES: SlotBounds = { perAddress: 16 * MEGABYTE, perNetwork: 32 * MEGABYTE, all: 128 * MEGABYTE }

const MINUTE_MS = 60_000

/** Most addresses and most networks whose rejected keys are counted; the ones counted first are forgotten. */
const COUNTED_MAX = 10_000

export interface V1Limits {
  /**
   * Counts a request.
   *
   * @throws V1Refusal `rate_limited` or `too_many_rejected_keys`
   */
  countRequest(address: string): void
  /**
   * Takes a slot for an open request.
   *
   * @returns a function that frees it; further calls have no effect
   * @throws V1Refusal `too_many_streams`, `busy` or `too_many_rejected_keys`
   */
  enter(address: string): () => void
  /**
   * Opens the account of a body that arrives or waits: bytes of bodies are limited by address and in all.
   *
   * @returns `hold`, which counts the bytes of a part or returns the refusal, and `end`, which frees all of them
   */
  holdBody(address: string): { hold: (bytes: number) => V1Refusal | null; end: () => void }
  /** Counts a key that the routing service rejected: ten close an address for a minute, twenty its network. */
  countRejectedKey(address: string): void
}

export function openLimits(clock: Clock): V1Limits {
  const requests = addressLimit(V1_LIMITS.requestsPerMinute, clock)
  const slots = openSlots({
    perAddress: PER_ADDRESS,
    perNetwork: PER_ADDRESS,
    perRegion: PER_REGION,
    all: V1_LIMITS.streams,
  })
  const bodies = openSlots(BODY_BYTES)
  const ofAddress = rejectedKeys(V1_LIMITS.rejectedKeys, clock)
  const ofNetwork = rejectedKeys(V1_LIMITS.rejectedKeysOfNetwork, clock)
  const requireOpen = (address: string): void => {
    ofAddress.requireOpen(address)
    ofNetwork.requireOpen(networkOf(address))
  }
  return {
    countRequest(address) {
      requireOpen(address)
      const wait = requests.count(address)
      if (wait !== null) throw new V1Refusal('rate_limited', { retryAfterSeconds: wait })
    },
    enter(address) {
      // Keys may have been rejected while the body of this request arrived.
      requireOpen(address)
      const admission = slots.enter(address)
      if (admission !== 'admitted')
        throw new V1Refusal(admission === 'all_full' ? 'busy' : 'too_many_streams', { retryAfterSeconds: 1 })
      let isHeld = true
      return () => {
        if (isHeld) slots.leave(address)
        isHeld = false
      }
    },
    holdBody(address) {
      let [received, held] = [0, 0]
      return {
        hold(bytes) {
          received += bytes
          const more = Math.max(0, received - SMALL_BODY_BYTES) - held
          if (more > 0 && bodies.enter(address, more) !== 'admitted')
            return new V1Refusal('busy', { retryAfterSeconds: 1 })
          held += more
          return null
        },
        end() {
          if (held > 0) bodies.leave(address, held)
          held = 0
        },
      }
    },
    countRejectedKey(address) {
      ofAddress.count(address)
      ofNetwork.count(networkOf(address))
    },
  }
}

/** The rejected keys of callers, which are addresses or networks. */
interface RejectedKeys {
  /** @throws V1Refusal `too_many_rejected_keys` */
  requireOpen(caller: string): void
  count(caller: string): void
}

function rejectedKeys(max: number, clock: Clock): RejectedKeys {
  const rejected = new LRUCache<string, { count: number; until: number }>({ max: COUNTED_MAX })
  return {
    requireOpen(caller) {
      const { count, until } = rejected.get(caller) ?? { count: 0, until: 0 }
      const seconds = Math.ceil((until - clock()) / 1000)
      if (seconds > 0 && count >= max)
        throw new V1Refusal('too_many_rejected_keys', { retryAfterSeconds: seconds })
    },
    count(caller) {
      const last = rejected.get(caller)
      const count = last !== undefined && clock() < last.until ? last.count + 1 : 1
      // The last one begins the minute for which the caller is closed.
      const until = count > 1 && count !== max && last ? last.until : clock() + MINUTE_MS
      rejected.set(caller, { count, until })
    },
  }
}
