/**
 * @typedef {{ event: 'meta', data: { remaining: { session: number, day: number } } }
 *   | { event: 'tool', data: { name: string, status: 'start' | 'done' } }
 *   | { event: 'delta', data: { text: string } }
 *   | { event: 'done', data: { degraded?: boolean, cached?: boolean } }
 *   | { event: 'error', data: { error: string, code: string } }} ChatEvent
 */

/**
 * The events of an answer in the order in which they come; comments are left out.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<ChatEvent>}
 */
export async function* eventsOf(body) {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      text += done ? decoder.decode() : decoder.decode(value, { stream: true })
      const records = text.split('\n\n')
      text = records.pop() ?? ''
      for (const record of records) {
        const event = eventOf(record)
        if (event) yield event
      }
      if (done) return
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}

/**
 * @param {string} record
 * @returns {ChatEvent | null}
 */
function eventOf(record) {
  const [, event, data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(record) ?? []
  return event === undefined ? null : Object({ event, data: JSON.parse(data) })
}
