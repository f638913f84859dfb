import type { ChatApiRefusal } from '../../domain/agent/chat-api.ts'
import { EVENT_SCHEMAS } from '../../domain/agent/schema.ts'
import type { ServedEvent } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { StreamRecord } from '../event-stream.ts'
import { parseJson } from './answers.ts'

/**
 * One record of an answer. Null for an event that is not known, and for the activity of a tool that is not: a later server
 * may have more of both, and neither is part of the answer.
 *
 * @throws Refusal `server_foreign` for a payload that is not its event's
 */
export function readEvent({ name, data }: StreamRecord, root: string): ServedEvent | null {
  if (!isEventName(name)) return null
  const raw = parseJson(data)
  const parsed = EVENT_SCHEMAS[name].safeParse(raw)
  if (parsed.success) return { event: name, data: parsed.data, raw } as ServedEvent
  if (name === 'tool') return null
  throw new Refusal<ChatApiRefusal>(
    'server_foreign',
    `the server ${root} sent an event \`${name}\` that is none of the interface`,
  )
}

function isEventName(name: string): name is keyof typeof EVENT_SCHEMAS {
  return Object.hasOwn(EVENT_SCHEMAS, name)
}
