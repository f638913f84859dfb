import type { Readable } from 'node:stream'
import { OpenAI } from 'openai'
import type { FailureCode, ModelEvent } from '../../domain/agent/model-call.ts'
import { headerTexts, openConnections, readInto } from '../http.ts'
import type { Connections } from '../http.ts'

export interface UpstreamOptions {
  /** API base, without a slash at its end. The key is sent to nowhere else. */
  base: string
  /** null: requests go without one. */
  key: string | null
  /** Sent with every request, beside what is needed. */
  headers?: Readonly<Record<string, string>>
}

/** Bytes of an answer's body, as the connection gives them. */
export type ResponseBody = AsyncIterable<Uint8Array> & { destroy: () => unknown }

/** A provider's API: the client makes requests, {@link Upstream.bodyOf} gives what came back, unread. */
export interface Upstream {
  client: OpenAI
  /** The body of a successful answer of the client's (`asResponse()`). */
  bodyOf(response: Response): ResponseBody
  close(): Promise<void>
}

/** What of an error's body is read: it is looked at for its kind alone. */
const ERROR_MAX_BYTES = 16 * 1024

/** If the body of an error takes longer, its status alone is reported. */
const ERROR_BODY_MS = 1_000

/** The client's own limit ends with the headers; ours end what it starts, so that it must never be the first. */
const NO_TIMEOUT_MS = 2 ** 31 - 1

/**
 * Opens a provider. The SDK's client makes the requests and tells errors apart; it has no say in anything else:
 * connections are a pool of our own, nothing is repeated, no redirect is followed, the headers are those written here,
 * and the streams are read by `Reply` (docs/decisions/0029).
 */
export function openUpstream({ base, key, headers = {} }: UpstreamOptions): Upstream {
  const connections = openConnections({ connect: { timeout: 10_000 } })
  const bodies = new WeakMap<Response, ResponseBody>()
  const sent = {
    ...headers,
    accept: 'text/event-stream',
    'content-type': 'application/json',
    'user-agent': 'dash (AI and trends dashboard)',
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
  }
  const client = new OpenAI({
    baseURL: base,
    // The client wants one; what is sent stands above.
    apiKey: key ?? 'none',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off',
    maxRetries: 0,
    timeout: NO_TIMEOUT_MS,
    fetch: (target, init) => post(connections, bodies, sent, target, init),
  })
  return {
    client,
    bodyOf(response) {
      const body = bodies.get(response)
      if (!body) throw new Error('the answer is not one of this provider')
      return body
    },
    close: () => connections.close(),
  }
}

async function post(
  connections: Connections,
  bodies: WeakMap<Response, ResponseBody>,
  headers: Readonly<Record<string, string>>,
  target: string | URL | Request,
  init: RequestInit | undefined,
): Promise<Response> {
  if (typeof target !== 'string' || typeof init?.body !== 'string') throw new Error('only texts are posted')
  const answer = await connections.request(target, {
    method: 'POST',
    headers: { ...headers, 'content-length': String(Buffer.byteLength(init.body)) },
    body: sentOnce(init.body),
    signal: init.signal,
  })
  const { statusCode: status, body } = answer
  const told = headerTexts(answer.headers)
  if (status >= 400) return new Response(await readError(body), { status, headers: told })
  const response = new Response(null, { status, headers: told })
  if (response.ok) bodies.set(response, body)
  else body.destroy()
  return response
}

/**
 * A request's body that is given once and then let go: a connection holds on to what it was given for as long as the answer
 * lasts. The types of undici leave out the iterables that it takes.
 */
function sentOnce(text: string): Readable {
  let left: string | null = text
  const next = (): IteratorResult<Buffer, undefined> => {
    if (left === null) return { done: true, value: undefined }
    const value = Buffer.from(left)
    left = null
    return { done: false, value }
  }
  return { [Symbol.iterator]: () => ({ next }) } as unknown as Readable
}

/** As much of an error's body as comes at once. */
async function readError(body: ResponseBody): Promise<string> {
  const chunks: Uint8Array[] = []
  const timer = setTimeout(() => body.destroy(), ERROR_BODY_MS)
  try {
    await readInto(chunks, body, ERROR_MAX_BYTES)
  } catch {
    // Cut, or ended by the timer: the status tells enough.
  } finally {
    clearTimeout(timer)
    body.destroy()
  }
  return Buffer.concat(chunks).subarray(0, ERROR_MAX_BYTES).toString()
}

/** The response of a provider as a model's would be, to classify whose failure it is. It is never passed on. */
interface Evidence {
  status: number
  headers: Readonly<Record<string, string>>
  body: string
}

/** A round that failed. */
export type FailedRound = Extract<ModelEvent, { kind: 'failed' }> & { evidence: Evidence | null }

type FailureFacts = Partial<Pick<FailedRound, 'usage' | 'dispatched' | 'evidence'>>
type UpstreamCode = Extract<FailureCode, { error: 'upstream_error' }>['code']

export function failedRound(failure: FailureCode, facts: FailureFacts = {}): FailedRound {
  return { kind: 'failed', usage: null, dispatched: true, evidence: null, ...facts, ...failure }
}

/** A round that failed by the provider's own doing. */
export function failedUpstream(code: UpstreamCode, facts: FailureFacts = {}): FailedRound {
  return failedRound({ error: 'upstream_error', code }, facts)
}

/** Ends the reading of a round. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  readonly round: FailedRound

  constructor(round: FailedRound, cause?: unknown) {
    super(`${round.error} ${round.code}`, { cause })
    this.round = round
  }
}

export function upstreamError(
  code: UpstreamCode,
  facts: FailureFacts = {},
  cause?: unknown,
): ProviderFailure {
  return new ProviderFailure(failedUpstream(code, facts), cause)
}
