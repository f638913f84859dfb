import { z } from 'zod'
import { configSchema, sessionSchema, statusSchema } from '../../domain/agent/schema.ts'
import type { ChatApi } from '../../domain/ports.ts'

/** Parts of the answers that a client uses; what else a server sends is its own affair. */

type Answer<Name extends 'config' | 'status' | 'session'> = Awaited<ReturnType<ChatApi[Name]>>

const config = configSchema.pick({
  enabled: true,
  requireVerification: true,
  itemChat: true,
  model: true,
  quotas: true,
})

const status = statusSchema.pick({ ok: true, budget: true })

const session = sessionSchema.pick({ quotas: true }).extend({
  // It goes into a header as it is.
  sessionToken: z.string().regex(/^[\x21-\x7e]{1,4096}$/),
})

export const parseConfig = (value: unknown): Answer<'config'> | null => parsed(config, value)
export const parseStatus = (value: unknown): Answer<'status'> | null => parsed(status, value)
export const parseSession = (value: unknown): Answer<'session'> | null => parsed(session, value)

function parsed<T>(schema: z.ZodType<T>, value: unknown): T | null {
  const result = schema.safeParse(value)
  return result.success ? result.data : null
}
