import { createParser } from 'eventsource-parser'
import type { EventSourceMessage } from 'eventsource-parser'
import type { AgentEvent } from '../../../../domain/agent/schema.ts'

/**
 * Parses the events of an answer, without comments. A complete last event counts even if its line ends are missing or the
 * connection breaks after it.
 */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<AgentEvent> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  const received: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (message) => void received.push(message) })
  try {
    for (;;) {
      let readError: unknown = null
      const { done, value } = await reader.read().catch((error: unknown) => {
        readError = error
        return { done: true, value: undefined }
      })
      parser.feed(done ? `${decoder.decode()}\n\n` : decoder.decode(value, { stream: true }))
      for (const message of received.splice(0)) {
        const event = eventOf(message, done)
        if (event) yield event
      }
      if (readError) throw readError
      if (done) return
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}

/** @param isLast whether the stream has ended, perhaps within this event */
function eventOf({ event, data }: EventSourceMessage, isLast: boolean): AgentEvent | null {
  try {
    return { event: event ?? 'message', data: JSON.parse(data) } as AgentEvent
  } catch (error) {
    if (isLast) return null
    throw error
  }
}
