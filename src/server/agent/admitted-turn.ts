import type { Readable } from 'node:stream'
import type { ChatRequest } from '../../domain/agent/chat-request.ts'
import type { Admission } from '../../domain/ports.ts'
import type { EventStream } from './event-stream.ts'
import type { AgentPorts } from './service.ts'
import type { Stop } from './stop.ts'

/** A turn that was admitted. */
export interface Turn {
  admission: Admission & { admitted: true }
  request: ChatRequest
  /** Of the caller, canonical. */
  address: string
  provider: NonNullable<AgentPorts['provider']>
  requestsPerAddress: number | null
  stream: EventStream & { body: Readable }
  /** Of the whole turn; the stream's reader leaving aborts it. */
  stop: Stop
  requestId: string
}
