import { Readable } from 'node:stream'
import type { H3Event } from 'h3'
import type { IpRange } from '../../domain/address.ts'
import type { Clock, PassThrough } from '../../domain/ports.ts'
import { formatNeeds, selectModels } from '../../domain/v1/completion-request.ts'
import type { CompletionRequest } from '../../domain/v1/completion-request.ts'
import { BrokenStream, errorOf, limitHeaders } from '../../domain/v1/failures.ts'
import type { UpstreamFailure } from '../../domain/v1/failures.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { firstCodePoints } from '../../domain/text.ts'
import { JSON_TYPE, NO_STORE, STREAM_BUFFER_MAX_BYTES, respond, respondStream } from '../respond.ts'
import { deprecationHeaders } from '../models/routes.ts'
import type { AnswerAsDash } from './dash-model.ts'
import { NO_RETRY, V1Refusal } from './contracts.ts'
import type { V1Limits } from './limits.ts'

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

/** The caller of a completion: its address, and its key of the routing service. */
interface Caller {
  address: string
  key: string
}

/**
 * Passes a chat completion on to the models that meet its needs, of which the routing service chooses.
 *
 * @param readRun reads the stored ranking
 * @throws V1Refusal
 */
export async function complete(
  event: H3Event,
  request: CompletionRequest,
  { address, key }: Caller,
  { ports, limits, readRun }: { ports: V1Ports; limits: V1Limits; readRun: () => Promise<StoredRun> },
): Promise<Response> {
  const open = openRequest(event, ports.turnMs, limits.enter(address))
  const { bodyFor, stream } = request
  let isStreamed = false
  try {
    const run = await readRun()
    const version = { 'x-dash-ranking-version': run.rankingVersion }
    const call = { key, ids: idsFor(request, run), bodyFor, stream }
    const sent = await ports.passThrough.send(call, open.signal).catch((error: unknown) => {
      if (open.signal.aborted) return LATE
      throw error
    })
    if (!('chunks' in sent)) {
      const error = errorOf(sent)
      if (error.status === 401) limits.countRejectedKey(address)
      // A repetition would cost the caller's account another request.
      const headers = { ...version, ...limitHeaders(sent, ports.clock()), ...NO_RETRY }
      throw new V1Refusal(error, { headers })
    }
    const { chunks, model } = sent
    const headers = {
      ...NO_STORE,
      ...version,
      ...(model === null ? {} : { 'x-dash-model': model, ...deprecationHeaders(run, model, ports.clock()) }),
    }
    if (!stream) return await respondWhole(event, headers, chunks)
    const response = respondStream(event, headers, streamOf(chunks, open))
    isStreamed = true
    return response
  } finally {
    if (!isStreamed) open.release()
  }
}

/** What stands for the failure of a request whose time is over, or whose client left. */
const LATE: UpstreamFailure = {
  class: 'timeout',
  status: null,
  retryAt: null,
  resetAt: null,
  limit: null,
  remaining: null,
}

async function respondWhole(
  event: H3Event,
  headers: Readonly<Record<string, string>>,
  chunks: AsyncIterable<Uint8Array>,
): Promise<Response> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
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
  body.once('close', open.release)
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

/** An open request: it ends when its client leaves, when its time is over, or when it is released. */
interface OpenRequest {
  signal: AbortSignal
  /** True after the time limit was exceeded. */
  isLate(): boolean
  /** Ends the request and frees what it holds; further calls have no effect. */
  release: () => void
}

/**
 * @param ms time limit of the whole response
 * @param free frees the slot of the request
 */
function openRequest(event: H3Event, ms: number, free: () => void): OpenRequest {
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
