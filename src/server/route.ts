import { setTimeout as pause } from 'node:timers/promises'
import type { IncomingMessage } from 'node:http'
import type { H3Event } from 'h3'
import type { z } from 'zod'
import { Refusal, isRefusal } from '../domain/refusal.ts'
import type { StorageRefusal } from '../domain/refusal.ts'
import { NO_STORE, requestId, respond, respondJson, respondPublished } from './respond.ts'
import type { PublishedBody } from './respond.ts'

const REFUSAL_DELAY_MS = 500

/** Delays a refusal of a caller that has too many open requests, so that an immediate retry cannot occupy the server. */
export function delayRefusal(): Promise<void> {
  return pause(REFUSAL_DELAY_MS)
}

interface RefusalContract {
  status: number
  when: string
  /** The public code, if it differs from the refusal's name: two refusals with different statuses may share one. */
  error?: string
  /** The values that each parameter may have, for the message about one that caused the refusal. */
  allowed?: Readonly<Record<string, string>>
  /** JSON Schemas of further members of the body. */
  memberSchemas?: Readonly<Record<string, Record<string, unknown>>>
  /** Response headers of this refusal only, by name with a description. */
  headers?: Readonly<Record<string, string>>
  /**
   * True if the refusal is sent after {@link REFUSAL_DELAY_MS}, for callers that have too many open requests: an
   * immediate retry would take time from other clients.
   */
  delayed?: true
  /** True for a state chosen by the operator: it is not logged as an error. */
  expected?: true
}

interface RequestContract {
  /** True if `Authorization: Bearer` with a key is required. */
  key?: true
  headers: readonly { name: string; required: boolean; description: string }[]
  body: { required: boolean; description: string; schema: z.ZodType }
}

/**
 * The contract of a route, which the OpenAPI document publishes and `route()` enforces.
 *
 * @typeParam Code the closed list of refusal codes of the area
 */
export interface Contract<Code extends string> {
  /** `GET` and `HEAD` unless another is named. */
  method?: 'POST'
  /** True if `HEAD` is refused, because the interface document allows `GET` alone. */
  headRefused?: true
  path: string
  /** The rest of the path, slashes included, which `{name}` at its end stands for. */
  pathRest?: { name: string; description: string }
  operationId: string
  /** Groups operations in the rendered reference. */
  tag: string
  summary: string
  description: string
  /** The schema of the query, which the handler also parses with. */
  query: z.ZodObject
  request?: RequestContract
  /** False if responses have no entity tag and are never a 304. */
  revalidated?: false
  /** Media type of the 200 body; `application/json` unless another is named. */
  contentType?: string
  /** Schema of the 200 body. */
  success: z.ZodType
  successDescription: string
  /** Another body that a 200 may have. */
  otherSuccess?: { contentType: string; schema: z.ZodType }
  /** Further statuses that are no refusals of the route, with a description. */
  otherStatuses?: Readonly<Record<number, string>>
  /** Response headers of a success, by name with a description. */
  successHeaders: Readonly<Record<string, string>>
  /** Status, cause and further body members of every refusal. */
  refusals: Readonly<Record<Code, RefusalContract>>
  /** Public codes of the refusals of a store, if they differ from that of an unexpected error. */
  storage?: Readonly<Record<StorageRefusal, Code>>
  /** Public code of an unexpected error. */
  fault: Code
  /** Makes errors in the shape of the OpenAI API, if they have it: `error` is an object with message, type and code. */
  openAiErrors?: (error: unknown) => ShownError
  /** True if errors have no `message`, because the interface document fixes their members. */
  bareErrors?: true
  methodNotAllowed: Code
  /** Headers of every response of the route except the preflight. */
  headers: Readonly<Record<string, string>>
  refusalHeaders: Readonly<Record<string, string>>
  /** Null if the route has no preflight, because pages of other origins must not use it. */
  preflight: Readonly<Record<string, string>> | null
  /** 200 unless another is named. */
  preflightStatus?: 204
}

export interface ShownError {
  status: number
  code: string
  /** Headers of this error, beside those of the contract. */
  headers: Readonly<Record<string, string>>
  body: object
  /** As in the contract: not logged as an error, and sent after a delay. */
  expected?: boolean | undefined
  delayed?: boolean | undefined
}

/** A contract bound to its handler; the app mounts it. */
export interface Route {
  path: string
  handle(event: H3Event, log: Log): Promise<Response>
}

/** Headers of every response that depend on the caller. */
export type HeadersFor = (event: H3Event) => Readonly<Record<string, string>>

/** Binds a handler to its contract. Errors become responses only here. */
export function route<Code extends string>(
  contract: Contract<Code>,
  handler: (event: H3Event) => Promise<Response>,
  headersFor: HeadersFor = () => ({}),
): Route {
  const methods = allowedMethods(contract)
  return {
    path: contract.path.replace(/\{\w+\}$/, '**'),
    async handle(event, log) {
      try {
        if (event.req.method === 'OPTIONS' && contract.preflight) {
          const headers = { ...contract.preflight, ...headersFor(event) }
          return respond(event, contract.preflightStatus ?? 200, headers, null)
        }
        if (!methods.includes(event.req.method)) throw new Refusal(contract.methodNotAllowed)
        return await handler(event)
      } catch (err) {
        const shown = contract.openAiErrors?.(err) ?? shownError(contract, err)
        const { status, code, body, expected = false, delayed = false } = shown
        if (delayed) await delayRefusal()
        if (status >= 500 && !expected)
          log.error({ requestId: requestId(event.req.headers), code, err }, 'request refused')
        const headers = {
          ...contract.headers,
          ...headersFor(event),
          ...contract.refusalHeaders,
          ...(code === contract.methodNotAllowed ? { allow: methods.join(', ') } : {}),
          ...shown.headers,
        }
        return respondJson(event, status, headers, body)
      }
    },
  }
}

/** An error in the shape of all interfaces but those of the OpenAI API. */
function shownError<Code extends string>(contract: Contract<Code>, thrown: unknown): ShownError {
  const { error, message, members, ...shown } = describedError(contract, thrown)
  const text = contract.bareErrors ? {} : { message: message.replaceAll('`', '') }
  return { ...shown, body: { error, ...text, ...members } }
}

/** An error as the refusal that the contract makes of it, with its public code `error` and {@link refusalMessage}. */
export function describedError<Code extends string>(
  contract: Contract<Code>,
  thrown: unknown,
): Omit<ShownError, 'body'> & Pick<Refusal, 'message' | 'members'> & { error: string } {
  const code = codeOf(contract, thrown)
  const refusal = contract.refusals[code]
  const { status, error = code, expected, delayed } = refusal
  const members = isRefusal(thrown, code) ? thrown.members : {}
  const message = refusalMessage(refusal, members)
  return { status, code, error, message, members, expected, delayed, headers: retryAfter(members) }
}

function allowedMethods<Code extends string>({ method, headRefused }: Contract<Code>): string[] {
  if (method !== undefined) return [method]
  return headRefused ? ['GET'] : ['GET', 'HEAD']
}

/**
 * Describes a refusal: the value that was sent, and what is allowed. Names of the interface stand between backticks.
 *
 * @param members of the refusal, with `parameter` and `value` if a parameter caused it
 */
export function refusalMessage(
  { when, allowed = {} }: Pick<RefusalContract, 'when' | 'allowed'>,
  { parameter, value }: Readonly<Record<string, string | number>>,
): string {
  const rule = parameter === undefined ? undefined : allowed[parameter]
  if (rule === undefined) return when
  const given = value === undefined ? 'missing' : JSON.stringify(value)
  return `\`${parameter}\` is ${given}: it must be ${rule}, given once`
}

/** The refusal of values of parameters that are not allowed, or given twice. @param allowed by parameter */
export function invalidValues<Allowed extends Readonly<Record<string, string>>>(
  allowed: Allowed,
): { status: 400; when: string; allowed: Allowed } {
  const rules = Object.entries(allowed).map(([name, rule]) => `\`${name}\` is not ${rule}`)
  return { status: 400, when: `${rules.join('; ')}; or it is given twice`, allowed }
}

/** Binds a reader of published bytes to its contract: every response has the headers of the contract. */
export function publishedRoute<Code extends string>(
  contract: Contract<Code>,
  read: (params: URLSearchParams, event: H3Event) => Promise<PublishedBody>,
): Route {
  return route(contract, async (event) =>
    respondPublished(event, contract.headers, await read(event.url.searchParams, event)),
  )
}

/** The `Retry-After` header of a body with `retryAfterSeconds`. */
export function retryAfter({ retryAfterSeconds }: Readonly<Record<string, string | number>>): {
  'retry-after'?: string
} {
  return retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
}

/**
 * The public code of an error: that of a refusal of the area, that of the contract's table for a store, or the fault
 * code.
 */
export function codeOf<Code extends string>(contract: Contract<Code>, error: unknown): Code {
  if (!(error instanceof Refusal)) return contract.fault
  if (isKeyOf(contract.refusals, error.code)) return error.code
  const { storage } = contract
  return storage && isKeyOf(storage, error.code) ? storage[error.code] : contract.fault
}

function isKeyOf<Key extends string>(record: Readonly<Record<Key, unknown>>, key: string): key is Key {
  return Object.hasOwn(record, key)
}

/** The refusal of another method than GET. */
export const METHOD_NOT_ALLOWED = {
  status: 405,
  when: 'the method is not allowed; the response names the allowed ones in `Allow`',
} as const

/**
 * Members shared by the contracts of all public routes: pages of any origin may read them, and every response links to
 * its description.
 *
 * @param docs path of the page that documents the interface; its OpenAPI document is below it
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
 * Descriptions of the headers of published bytes.
 *
 * @param cacheControl value of `Cache-Control`
 * @param others further headers, or other descriptions
 */
export function publishedHeaders(
  cacheControl: string,
  others: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    'Cache-Control': `\`${cacheControl}\``,
    ETag: 'strong: the SHA-256 of the body in hexadecimal, quoted',
    ...others,
    'Content-Digest': 'SHA-256 of the content (RFC 9530)',
    'Repr-Digest': 'SHA-256 of the representation (RFC 9530)',
    Link: 'the documentation and the OpenAPI description',
  }
}

/**
 * Members shared by the contracts whose responses must not be cached. Their CORS headers depend on the caller.
 *
 * @param headers names of the request headers that such pages may send
 */
export function restrictedAccess(
  method: 'GET' | 'POST',
  headers: string,
): Pick<
  Contract<'internal_error'>,
  'revalidated' | 'successHeaders' | 'fault' | 'headers' | 'refusalHeaders' | 'preflight' | 'preflightStatus'
> {
  return {
    revalidated: false,
    successHeaders: { 'Cache-Control': '`no-store`' },
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

/** Members of temporary refusals: they are delayed and carry `Retry-After`. */
export const RETRYABLE = {
  delayed: true,
  headers: { 'Retry-After': 'seconds to wait before the next request' },
  memberSchemas: { retryAfterSeconds: { type: 'integer', minimum: 1 } },
} as const satisfies Partial<RefusalContract>

/** A refusal with `retryAfterSeconds`. */
export function retryLater<Code extends string>(code: Code, retryAfterSeconds: number): Refusal<Code> {
  return new Refusal(code, undefined, { members: { retryAfterSeconds } })
}

/** Structured log lines: codes, ids, counts and durations; never message text, tokens or addresses. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

export const TURN_MESSAGE = 'chat turn'

interface BodyRefusals {
  /** For a body above the limit. */
  tooLarge: () => Error
  /** For a body that is incomplete or not UTF-8. */
  malformed: () => Error
  /** Called with the bytes of each part; its error ends the reading. */
  hold?: (bytes: number) => Error | null
}

/**
 * Reads the body of a request as text. Content encoding and content type are ignored.
 *
 * @param maxBytes largest body
 */
export async function readBody(event: H3Event, maxBytes: number, refusals: BodyRefusals): Promise<string> {
  const { tooLarge, malformed } = refusals
  if (Number(event.req.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge()
  const incoming = event.runtime?.node?.req as IncomingMessage | undefined
  // Reading from a platform `Request` costs time, and it stays in memory as long as the response.
  const bytes = await (incoming ? readIncoming(incoming, maxBytes, refusals) : event.req.arrayBuffer())
  if (bytes.byteLength > maxBytes) throw tooLarge()
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw malformed()
  }
}

/** Reads a request from its socket; stops as soon as it is too long, and leaves the socket open for the refusal. */
async function readIncoming(
  request: IncomingMessage,
  maxBytes: number,
  { tooLarge, malformed, hold }: BodyRefusals,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let receivedBytes = 0
  let refusal: Error | null = null
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      receivedBytes += chunk.byteLength
      refusal = receivedBytes > maxBytes ? tooLarge() : (hold?.(chunk.byteLength) ?? null)
      if (refusal !== null) break
    }
  } catch {
    // The connection was closed before the end.
    throw malformed()
  }
  if (refusal !== null) throw refusal
  return Buffer.concat(chunks, receivedBytes)
}
