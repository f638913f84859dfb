import type { IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { H3Event } from 'h3'
import type { z } from 'zod'
import { Refusal } from '../domain/refusal.ts'
import type { StorageRefusal } from '../domain/refusal.ts'
import { NO_STORE, markBodyRead, requestId, respond, respondJson } from './respond.ts'

/** How long a refusal that is held back waits. */
const HOLD_MS = 500

/** Resolves when a refusal may be sent to a caller that has too much open, of an interface or of a page. */
export function heldBack(): Promise<void> {
  return pause(HOLD_MS)
}

interface RefusalContract {
  status: number
  when: string
  /** The public code, where it is not the refusal's own name: two reasons with two statuses may share one. */
  error?: string
  members?: Readonly<Record<string, string>>
  /** JSON Schemas of what the body says beside `error` and differs from answer to answer; optional members. */
  memberSchemas?: Readonly<Record<string, Record<string, unknown>>>
  /** Response headers of this refusal alone, with what each holds. */
  headers?: Readonly<Record<string, string>>
  /**
   * True for refusals of callers that have too much open: they are sent after {@link HOLD_MS}, since a client that asks
   * again at once would take the server's time from all others.
   */
  held?: true
  /** True for what an operator has chosen: it is not logged as an error, whatever its status. */
  expected?: true
}

/** What a request carries beside its path and query. */
interface RequestContract {
  headers: readonly { name: string; required: boolean; description: string }[]
  body: { required: boolean; description: string; schema: z.ZodType }
}

/**
 * The contract of a route: what the OpenAPI document publishes and what `route()` holds the handler to.
 *
 * `Code` is the area's closed list of refusals.
 */
export interface Contract<Code extends string> {
  /** `GET` unless another is named. */
  method?: 'POST'
  path: string
  /** The rest of the path, slashes included, which `{name}` at its end stands for. */
  pathRest?: { name: string; description: string }
  operationId: string
  /** Groups operations in the rendered reference. */
  tag: string
  summary: string
  description: string
  /** The schema that the handler parses the query with. */
  query: z.ZodObject
  request?: RequestContract
  /** False when answers are made anew each time: they have no entity tag, and nothing is ever a 304. */
  revalidated?: false
  /** Media type of the 200 body; `application/json` unless another is named. */
  contentType?: string
  /** Schema of the 200 body. */
  success: z.ZodType
  successDescription: string
  /** Another body that a 200 may have. */
  otherSuccess?: { contentType: string; schema: z.ZodType }
  /** Response headers of a success, by name, with what each holds. */
  successHeaders: Readonly<Record<string, string>>
  /** Every refusal's status, when it is given, and what its body says beside `error`. */
  refusals: Readonly<Record<Code, RefusalContract>>
  /** What a store's refusal becomes in this area. */
  storage: Readonly<Record<StorageRefusal, Code>>
  /** What anything unexpected becomes. */
  fault: Code
  methodNotAllowed: Code
  /** Sent with every answer of the route but the preflight. */
  headers: Readonly<Record<string, string>>
  /** Sent with every refusal. */
  refusalHeaders: Readonly<Record<string, string>>
  preflight: Readonly<Record<string, string>>
  /** 200 unless another is named. */
  preflightStatus?: 204
}

/** A contract bound to its handler; the app mounts it. */
export interface Route {
  path: string
  handle(event: H3Event, log: Log): Promise<Response>
}

/** Headers of every answer that depend on who asks. */
export type HeadersFor = (event: H3Event) => Readonly<Record<string, string>>

/** Binds a handler to its contract. The only place where something thrown becomes a response. */
export function route<Code extends string>(
  contract: Contract<Code>,
  handler: (event: H3Event) => Promise<Response>,
  headersFor: HeadersFor = () => ({}),
): Route {
  const method = contract.method ?? 'GET'
  const refuse = (event: H3Event, code: Code, given: Readonly<Record<string, string | number>>): Response => {
    const { status, error = code, members } = contract.refusals[code]
    const headers = {
      ...contract.headers,
      ...headersFor(event),
      ...contract.refusalHeaders,
      ...(code === contract.methodNotAllowed ? { allow: method } : {}),
      ...retryAfter(given),
    }
    return respondJson(event, status, headers, { error, ...members, ...given })
  }
  return {
    path: contract.path.replace(/\{\w+\}$/, '**'),
    async handle(event, log) {
      try {
        if (event.req.method === 'OPTIONS') {
          const headers = { ...contract.preflight, ...headersFor(event) }
          return respond(event, contract.preflightStatus ?? 200, headers, null)
        }
        if (event.req.method !== method) return refuse(event, contract.methodNotAllowed, {})
        return await handler(event)
      } catch (error) {
        const code = codeOf(contract, error)
        const { status, expected = false, held = false } = contract.refusals[code]
        if (held) await heldBack()
        if (status >= 500 && !expected) {
          log.error({ requestId: requestId(event.req.headers), code, err: error }, 'request refused')
        }
        return refuse(event, code, error instanceof Refusal && error.code === code ? error.members : {})
      }
    },
  }
}

/** A body that tells when to ask again says it in the header too. */
export function retryAfter({ retryAfterSeconds }: Readonly<Record<string, string | number>>): {
  'retry-after'?: string
} {
  return retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
}

/** The public code of anything thrown in an area: its own refusal, a store's by the contract's table, or the fault code. */
export function codeOf<Code extends string>(contract: Contract<Code>, error: unknown): Code {
  if (!(error instanceof Refusal)) return contract.fault
  if (isKeyOf(contract.refusals, error.code)) return error.code
  return isKeyOf(contract.storage, error.code) ? contract.storage[error.code] : contract.fault
}

function isKeyOf<Key extends string>(record: Readonly<Record<Key, unknown>>, key: string): key is Key {
  return Object.hasOwn(record, key)
}

/**
 * What the contracts of all public routes share: pages of any origin may read them, and every answer names its
 * description.
 *
 * @param docs path of the page that describes the interface; its OpenAPI document lies below
 * @param exposed names of the response headers that pages of other origins may read
 */
export function publicAccess(
  docs: string,
  exposed: readonly string[],
): Pick<Contract<'method_not_allowed'>, 'methodNotAllowed' | 'headers' | 'refusalHeaders' | 'preflight'> {
  const origin = { 'access-control-allow-origin': '*' }
  const description = `<${docs}/openapi.json>; rel="service-desc"; type="application/json"`
  return {
    methodNotAllowed: 'method_not_allowed',
    headers: {
      ...origin,
      'access-control-expose-headers': exposed.join(', '),
      link: `${description}, <${docs}>; rel="service-doc"; type="text/html"`,
    },
    refusalHeaders: NO_STORE,
    preflight: {
      ...origin,
      'access-control-allow-methods': 'GET, OPTIONS',
      'access-control-allow-headers': 'If-None-Match',
      ...NO_STORE,
    },
  }
}

/**
 * What the contracts share whose answers nobody may keep. The headers that let pages of allowed origins read an answer
 * depend on who asks.
 *
 * @param headers names of the request headers that such pages may send
 */
export function restrictedAccess(
  method: 'GET' | 'POST',
  headers: string,
): Pick<
  Contract<'internal_error'>,
  | 'revalidated'
  | 'successHeaders'
  | 'storage'
  | 'fault'
  | 'headers'
  | 'refusalHeaders'
  | 'preflight'
  | 'preflightStatus'
> {
  return {
    revalidated: false,
    successHeaders: { 'Cache-Control': '`no-store`' },
    storage: { storage_unavailable: 'internal_error', storage_damaged: 'internal_error' },
    fault: 'internal_error',
    headers: {},
    refusalHeaders: NO_STORE,
    preflight: {
      'access-control-allow-methods': `${method}, OPTIONS`,
      'access-control-allow-headers': headers,
      'access-control-max-age': '600',
      ...NO_STORE,
    },
    preflightStatus: 204,
  }
}

/** Refusals that end by themselves: their callers are told when to ask again, and held back. */
export const RETRYING = {
  held: true,
  headers: { 'Retry-After': 'seconds until it is worth asking again' },
  memberSchemas: { retryAfterSeconds: { type: 'integer', minimum: 1 } },
} as const

/** Structured log lines: codes, ids, counts and durations; never message text, tokens or addresses. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

/** The message of the one line that each turn of the chat has. */
export const TURN_MESSAGE = 'chat turn'

/** What a request whose body cannot be taken is refused with. */
interface BodyRefusals {
  /** Of one that is longer than what is read. */
  tooLarge: () => Refusal
  /** Of one that ends before it is whole, or is no UTF-8. */
  malformed: () => Refusal
}

/**
 * The body of a request as text, read to its end. No encoding of the content is undone, and no type asked for.
 *
 * @param maxBytes longest body that is read
 */
export async function readBody(event: H3Event, maxBytes: number, refusals: BodyRefusals): Promise<string> {
  const { tooLarge, malformed } = refusals
  if (Number(event.req.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge()
  const incoming = event.runtime?.node?.req as IncomingMessage | undefined
  // A request of the platform's own, which it would be read from, costs time and stays as long as the answer does.
  const bytes = incoming ? await readIncoming(incoming, maxBytes, refusals) : await event.req.arrayBuffer()
  if (bytes.byteLength > maxBytes) throw tooLarge()
  markBodyRead(event)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw malformed()
  }
}

/** Bytes of a request as they come off its socket; of one that is too long nothing more is taken. */
function readIncoming(
  request: IncomingMessage,
  maxBytes: number,
  { tooLarge, malformed }: BodyRefusals,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const take = (chunk: Buffer): void => {
      chunks.push(chunk)
      size += chunk.byteLength
      if (size <= maxBytes) return
      stop()
      request.pause()
      reject(tooLarge())
    }
    const end = (): void => {
      stop()
      resolve(Buffer.concat(chunks, size))
    }
    const fail = (): void => {
      stop()
      reject(malformed())
    }
    const stop = (): void => {
      request.off('data', take).off('end', end).off('close', fail)
    }
    request.on('data', take).once('end', end).once('close', fail)
    // It may have broken before anybody listened.
    if (request.destroyed) fail()
  })
}
