/**
 * @typedef {{ event: 'meta', data: { remaining: { session: number, day: number } } }
 *   | { event: 'tool', data: { name: string, status: 'start' | 'done' } }
 *   | { event: 'delta', data: { text: string } }
 *   | { event: 'done', data: { degraded?: boolean, cached?: boolean } }
 *   | { event: 'error', data: { error: string, code: string } }} ChatEvent
 */

/**
 * Parses the events of an answer, without comments. A complete last event counts even if its line ends are missing or the
 * connection breaks after it.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<ChatEvent>}
 */
export async function* eventsOf(body) {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  const recordsOf = recordReader()
  try {
    for (;;) {
      /** @type {unknown} */
      let readError = null
      const { done, value } = await reader.read().catch((error) => {
        readError = error
        return { done: true, value: undefined }
      })
      const text = done ? decoder.decode() : decoder.decode(value, { stream: true })
      for (const record of recordsOf(text, done)) {
        const event = eventOf(record, done)
        if (event) yield event
      }
      if (readError) throw readError
      if (done) return
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}

/**
 * Returns a function that splits a text into records, each a list of lines, with any line ends.
 *
 * @returns {(part: string, isLast: boolean) => string[][]} takes the text in parts; the last part ends the open record
 */
function recordReader() {
  let rest = ''
  let endedWithReturn = false
  /** @type {string[]} */
  let record = []
  return (part, isLast) => {
    // A line end may be cut between its two characters.
    rest += endedWithReturn && part.startsWith('\n') ? part.slice(1) : part
    if (part !== '') endedWithReturn = part.endsWith('\r')
    const lines = rest.split(/\r\n|[\r\n]/)
    rest = lines.pop() ?? ''
    if (isLast) lines.push(rest, '')
    const records = []
    for (const line of lines) {
      if (line !== '') record.push(line)
      else {
        records.push(record)
        record = []
      }
    }
    return records
  }
}

/**
 * @param {readonly string[]} record
 * @param {boolean} isLast whether the stream has ended, perhaps within this record
 * @returns {ChatEvent | null}
 */
function eventOf(record, isLast) {
  /** @param {string} field */
  const valuesOf = (field) =>
    record
      .filter((line) => line.startsWith(`${field}:`))
      .map((line) => line.slice(field.length + 1).replace(/^ /, ''))
  const data = valuesOf('data')
  if (data.length === 0) return null
  try {
    return Object({ event: valuesOf('event').at(-1) ?? 'message', data: JSON.parse(data.join('\n')) })
  } catch (error) {
    if (isLast) return null
    throw error
  }
}
