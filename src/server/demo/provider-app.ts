import { setTimeout as pause } from 'node:timers/promises'
import { H3 } from 'h3'
import { parseJson } from '../../domain/text.ts'
import { respondJson } from '../respond.ts'
import { parseDemoRequest } from './chat-request.ts'
import { demoCompletion } from './chat-script.ts'
import type { DemoCompletion } from './chat-script.ts'

/** Name of the demo's model. */
export const DEMO_CHAT_MODEL = 'dash-demo'

/** Largest request of a turn: a whole conversation, the data block and all results. */
export const DEMO_REQUEST_MAX_BYTES = 512 * 1024

/** Words per delta and the time between two deltas, so that the answer visibly streams. */
const WORDS_PER_DELTA = 3
const DELTA_MS = 15

/** Approximate UTF-8 bytes per token, for the reported usage. */
const BYTES_PER_TOKEN = 4

const HEADERS = { 'x-dash-demo': 'true', 'cache-control': 'no-store' }

/**
 * A provider of the streaming Responses API with one scripted model, so that the chat works in the demo. Every response
 * is marked as the demo's, in its headers and its text.
 *
 * @param deltaMs time between two deltas, in milliseconds
 */
export function demoProviderApp(deltaMs: number = DELTA_MS): H3 {
  const app = new H3({ silent: true })
  app.post('/responses', async (event) => {
    const body = await event.req.text()
    const request = parseDemoRequest(parseJson(body))
    if (!request) {
      const error = { message: 'the demo provider supports only streamed responses with input' }
      return respondJson(event, 400, HEADERS, { error })
    }
    const stream = ReadableStream.from(eventsOf(demoCompletion(request), Buffer.byteLength(body), deltaMs))
    return new Response(stream, {
      headers: { ...HEADERS, 'content-type': 'text/event-stream; charset=utf-8' },
    })
  })
  return app
}

/** The events of a completion, with a pause before each delta. */
async function* eventsOf(
  completion: DemoCompletion,
  requestBytes: number,
  deltaMs: number,
): AsyncGenerator<Uint8Array, void> {
  const response = { id: 'resp_demo', object: 'response', model: DEMO_CHAT_MODEL, store: false, error: null }
  yield eventOf('response.created', { response: { ...response, status: 'in_progress', output: [] } })
  const text = 'text' in completion ? completion.text : ''
  for (const [delta] of text.matchAll(new RegExp(`(?:\\s*\\S+){1,${WORDS_PER_DELTA}}`, 'g'))) {
    if (deltaMs > 0) await pause(deltaMs)
    yield eventOf('response.output_text.delta', { output_index: 0, content_index: 0, delta })
  }
  const output = 'calls' in completion ? completion.calls.map(callItem) : [messageItem(completion.text)]
  for (const [index, item] of output.entries())
    yield eventOf('response.output_item.done', { output_index: index, item })
  const usage = usageOf(requestBytes, Buffer.byteLength(JSON.stringify(output)))
  yield eventOf('response.completed', { response: { ...response, status: 'completed', output, usage } })
}

const encoder = new TextEncoder()

function eventOf(type: string, fields: object): Uint8Array {
  return encoder.encode(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`)
}

/** Ids repeat in every round; the client must keep them apart. */
function callItem({ name, arguments: args }: { name: string; arguments: object }, index: number): object {
  return {
    id: `fc_demo_${index}`,
    type: 'function_call',
    status: 'completed',
    call_id: `call_demo_${index}`,
    name,
    arguments: JSON.stringify(args),
  }
}

function messageItem(text: string): object {
  const content = [{ type: 'output_text', text, annotations: [] }]
  return { id: 'msg_demo', type: 'message', role: 'assistant', status: 'completed', content }
}

function usageOf(requestBytes: number, outputBytes: number): object {
  const [read, out] = [Math.ceil(requestBytes / BYTES_PER_TOKEN), Math.ceil(outputBytes / BYTES_PER_TOKEN)]
  return {
    input_tokens: read,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: out,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: read + out,
  }
}
