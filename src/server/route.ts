import type { H3Event } from 'h3'
import type { z } from 'zod'
import { Refusal } from '../domain/refusal.ts'
import type { StorageRefusal } from '../domain/storage.ts'
import type { Log } from './log.ts'
import { requestId, respond, respondJson } from './respond.ts'

/** One query parameter, as the published description shows it. */
interface QueryParameter {
  name: string
  required: boolean
  description: string
  /** JSON Schema of the value. */
  schema: Record<string, unknown>
  example?: string
}

interface RefusalContract {
  status: number
  when: string
  members?: Readonly<Record<string, string>>
}

/**
 * The contract of a route: what the OpenAPI document publishes and what `route()` holds the handler to.
 *
 * `Code` is the area's closed list of refusals.
 */
export interface Contract<Code extends string> {
  path: string
  operationId: string
  /** Groups operations in the rendered reference. */
  tag: string
  summary: string
  description: string
  query: readonly QueryParameter[]
  /** Media type of the 200 body; `application/json` unless another is named. */
  contentType?: string
  /** Schema of the 200 body. */
  success: z.ZodType
  successDescription: string
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
}

/** A contract bound to its handler; the app mounts it. */
export interface Route {
  path: string
  handle(event: H3Event, log: Log): Promise<Response>
}

/** Binds a handler to its contract. The only place where something thrown becomes a response. */
export function route<Code extends string>(
  contract: Contract<Code>,
  handler: (event: H3Event) => Promise<Response>,
): Route {
  const refuse = (event: H3Event, code: Code): Response => {
    const { status, members } = contract.refusals[code]
    const allow: Record<string, string> = code === contract.methodNotAllowed ? { allow: 'GET' } : {}
    const headers = { ...contract.headers, ...contract.refusalHeaders, ...allow }
    return respondJson(event, status, headers, { error: code, ...members })
  }
  return {
    path: contract.path,
    async handle(event, log) {
      try {
        if (event.req.method === 'OPTIONS') return respond(event, 200, contract.preflight, null)
        if (event.req.method !== 'GET') return refuse(event, contract.methodNotAllowed)
        return await handler(event)
      } catch (error) {
        const code = codeOf(contract, error)
        const { status } = contract.refusals[code]
        if (status >= 500) {
          log.error({ requestId: requestId(event.req.headers), code, err: error }, 'request refused')
        }
        return refuse(event, code)
      }
    },
  }
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
