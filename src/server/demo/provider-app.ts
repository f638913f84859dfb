import { setTimeout as pause } from 'node:timers/promises'
import { H3 } from 'h3'
import { respondJson } from '../respond.ts'
import { readDemoQuestion, textOf } from './chat-question.ts'
import { demoReply } from './chat-script.ts'
import type { DemoReply } from './chat-script.ts'

/** Name of the demo's model. */
export const DEMO_CHAT_MODEL = 'dash-demo'

/** Largest request of a turn: a whole conversation, the data block and all results. */
export const DEMO_REQUEST_MAX_BYTES = 512 * 1024

/** Words in one delta, and the time between two, so that an answer is seen to arrive. */
const WORDS_A_DELTA = 3
const DELTA_MS = 15

/** UTF-8 bytes a token has, about; only for the usage it tells. */
const BYTES_A_TOKEN = 4

const HEADERS = { 'x-dash-demo': 'true', 'cache-control': 'no-store' }

/**
 * A provider with one scripted model, of the Responses API (streamed, and nothing else), so that the chat runs in the
 * demo as it would against a real one. Every answer says that it is the demo's, in its headers and in its text.
 *
 * @param deltaMs time between two deltas, in milliseconds
 */
export function demoProviderApp(deltaMs: number = DELTA_MS): H3 {
  const app = new H3({ silent: true })
  app.post('/responses', async (event) => {
    const body = await event.req.text()
    const question = readDemoQuestion(parseJson(body))
    if (!question) {
      const error = { message: 'the demo streams answers to questions with input, and does nothing else' }
      return respondJson(event, 400, HEADERS, { error })
    }
    const events = eventsOf(demoReply(question), Buffer.byteLength(body))
    return new Response(streamOf(events, deltaMs), {
      headers: { ...HEADERS, 'content-type': 'text/event-stream; charset=utf-8' },
    })
  })
  return app
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

type Event = Readonly<Record<string, unknown>>

/** Every event of a reply, numbered. */
function eventsOf(reply: DemoReply, requestBytes: number): Event[] {
  const items = 'calls' in reply ? reply.calls.map(callItem) : [messageItem(reply.text)]
  const written = Buffer.byteLength(JSON.stringify(items))
  const response = { id: 'resp_demo', object: 'response', model: DEMO_CHAT_MODEL, store: false, error: null }
  const begun = { ...response, status: 'in_progress', output: [], usage: null }
  const usage = usageOf(requestBytes, written)
  const events: Event[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...items.flatMap((item, index) => itemEvents(item, index)),
    { type: 'response.completed', response: { ...response, status: 'completed', output: items, usage } },
  ]
  return events.map((event, index) => ({ ...event, sequence_number: index }))
}

function callItem({ name, arguments: given }: { name: string; arguments: object }, index: number): Event {
  const text = JSON.stringify(given)
  // The same request has the same ids, and so has the next round: whoever asks must keep them apart.
  return {
    id: `fc_demo_${index}`,
    type: 'function_call',
    status: 'completed',
    call_id: `call_demo_${index}`,
    name,
    arguments: text,
  }
}

function messageItem(text: string): Event {
  const content = [{ type: 'output_text', text, annotations: [] }]
  return { id: 'msg_demo', type: 'message', role: 'assistant', status: 'completed', content }
}

function itemEvents(item: Event, index: number): Event[] {
  const place = { item_id: item['id'], output_index: index }
  const begun = { ...item, status: 'in_progress' }
  const done = { type: 'response.output_item.done', output_index: index, item }
  if (item['type'] === 'function_call') {
    const added = {
      type: 'response.output_item.added',
      output_index: index,
      item: { ...begun, arguments: '' },
    }
    const text = textOf(item['arguments'])
    return [
      added,
      { type: 'response.function_call_arguments.delta', ...place, delta: text },
      { type: 'response.function_call_arguments.done', ...place, arguments: text },
      done,
    ]
  }
  const [part] = item['content'] as { text: string }[]
  const text = part?.text ?? ''
  const within = { ...place, content_index: 0 }
  return [
    { type: 'response.output_item.added', output_index: index, item: { ...begun, content: [] } },
    { type: 'response.content_part.added', ...within, part: { ...part, text: '' } },
    ...deltasOf(text).map((delta) => ({ type: 'response.output_text.delta', ...within, delta })),
    { type: 'response.output_text.done', ...within, text },
    { type: 'response.content_part.done', ...within, part },
    done,
  ]
}

function deltasOf(text: string): string[] {
  const words = text.match(/\s*\S+/g) ?? []
  return Array.from({ length: Math.ceil(words.length / WORDS_A_DELTA) }, (_, index) =>
    words.slice(index * WORDS_A_DELTA, (index + 1) * WORDS_A_DELTA).join(''),
  )
}

function usageOf(requestBytes: number, written: number): Event {
  const [read, out] = [Math.ceil(requestBytes / BYTES_A_TOKEN), Math.ceil(written / BYTES_A_TOKEN)]
  return {
    input_tokens: read,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: out,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: read + out,
  }
}

/** The events, each delta after its pause; ends when the client leaves. */
function streamOf(events: readonly Event[], deltaMs: number): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const left = new AbortController()
  let next = 0
  return new ReadableStream({
    async pull(controller) {
      const event = events[next]
      next += 1
      if (!event) return controller.close()
      const type = textOf(event['type'])
      if (type.endsWith('.delta') && deltaMs > 0) {
        await pause(deltaMs, undefined, { signal: left.signal }).catch(() => undefined)
      }
      if (left.signal.aborted) return
      controller.enqueue(encoder.encode(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`))
    },
    cancel() {
      left.abort()
    },
  })
}
