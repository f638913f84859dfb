import { Readable } from 'node:stream'
import type { H3Event } from 'h3'
import type { IpRange } from '../../domain/address.ts'
import type { Clock, PassThrough } from '../../domain/ports.ts'
import { isAuto, selectModels } from '../../domain/v1/completion-request.ts'
import type { CompletionRequest } from '../../domain/v1/completion-request.ts'
import { BrokenStream, errorOf, limitHeaders, mayFailOver } from '../../domain/v1/failures.ts'
import type { RankedModel, StoredRun } from '../../domain/models/schema.ts'
import { firstCodePoints } from '../../domain/text.ts'
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
import { NO_RETRY, V1Refusal } from './errors.ts'
import type { V1Limits, StickyModels } from './limits.ts'

/** What the OpenAI-compatible interface needs from outside. */
export interface V1Ports {
  passThrough: PassThrough
  trustedProxies: readonly IpRange[]
  /** Time limit of a whole response, in milliseconds. */
  turnMs: number
  clock: Clock
  /** Random secret of this process. */
  secret: Uint8Array
  /** Answers chat completions for the model `dash`; absent while the chat is not set up. */
  answerAsDash?: AnswerAsDash
}

/** What a completion needs beside its request. */
export interface CompletionContext {
  ports: Pick<V1Ports, 'passThrough' | 'clock'>
  limits: Pick<V1Limits, 'tryKey'>
  sticky: StickyModels
  address: string
  key: string
  run: StoredRun
  open: OpenRequest
}

/** A completion, the model that gives it, and the number of models tried. */
interface Completion {
  chunks: AsyncIterable<Uint8Array>
  model: RankedModel
  attempts: number
}

/**
 * Passes a chat completion on to the best model that meets its needs, and fails over before the first byte.
 *
 * @throws V1Refusal
 */
export async function complete(
  event: H3Event,
  request: CompletionRequest,
  context: CompletionContext,
): Promise<Response> {
  const { key, run, sticky, open, ports } = context
  const { rankingVersion } = run
  const completion = await firstCompletion(request, modelsFor(request, context), context)
  const { chunks, model, attempts } = completion
  if (isAuto(request.model)) sticky.keep(key, request.opening, model.id)
  const headers = {
    ...NO_STORE,
    ...attemptHeaders(model.id, rankingVersion, attempts),
    ...deprecationHeaders(run, model.id, ports.clock()),
  }
  if (request.stream) return respondStream(event, headers, streamOf(chunks, open))
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  open.release()
  markBodyRead(event)
  return respond(event, 200, { ...headers, 'content-type': JSON_TYPE }, Buffer.concat(parts))
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
  invalid_stream: 'the model sent an event that is too large; the answer is incomplete',
} as const

/** The blank line before it ends an incomplete event. */
function errorEvent(code: keyof typeof BROKEN): Buffer {
  return Buffer.from(
    `\n\ndata: ${JSON.stringify({ error: { message: BROKEN[code], type: 'api_error', code } })}\n\n`,
  )
}

function attemptHeaders(model: string, version: string, attempts: number): Record<string, string> {
  return { 'x-dash-model': model, 'x-dash-ranking-version': version, 'x-dash-attempts': String(attempts) }
}

/** @throws V1Refusal `model_not_found` or `no_free_model` */
function modelsFor(
  { model, needs, opening }: CompletionRequest,
  { key, run, sticky }: CompletionContext,
): readonly RankedModel[] {
  const selection = selectModels(run.models, model, needs, sticky.find(key, opening))
  if ('models' in selection) return selection.models
  if ('rejected' in selection) throw new V1Refusal('no_free_model', { needs, rejected: selection.rejected })
  const name = JSON.stringify(firstCodePoints(model, 100))
  throw new V1Refusal('model_not_found', {
    message: `there is no model ${name}; /v1/models lists every model`,
  })
}

/** Tries models in order until one responds. */
async function firstCompletion(
  request: CompletionRequest,
  models: readonly RankedModel[],
  { ports, limits, address, key, run, open }: CompletionContext,
): Promise<Completion> {
  const endUse = limits.tryKey(address)
  let isRejected = false
  try {
    for (const [index, model] of models.entries()) {
      const attempts = index + 1
      const sent = await send(
        ports.passThrough,
        { key, body: request.bodyFor(model.id), stream: request.stream },
        open,
      )
      if ('chunks' in sent) return { chunks: sent.chunks, model, attempts }
      if (attempts < models.length && mayFailOver(sent)) continue
      const error = errorOf(sent, model.id)
      isRejected = error.status === 401
      const headers = {
        ...attemptHeaders(model.id, run.rankingVersion, attempts),
        ...limitHeaders(sent, ports.clock()),
        // A repetition would cost the caller's account up to three more requests.
        ...NO_RETRY,
      }
      throw new V1Refusal(error, {}, headers)
    }
    throw new Error('no model was selected')
  } finally {
    endUse(isRejected)
  }
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
