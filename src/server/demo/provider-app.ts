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
 * A provider of streamed chat completions with one scripted model, so that the chat works in the demo. Every response
 * is marked as the demo's, in its headers and its text.
 *
 * @param deltaMs time between two deltas, in milliseconds
 */
export function demoProviderApp(deltaMs: number = DELTA_MS): H3 {
  const app = new H3({ silent: true })
  app.post('/chat/completions', async (event) => {
    const body = await event.req.text()
    const request = parseDemoRequest(parseJson(body))
    if (!request) {
      const error = { message: 'the demo provider supports only streamed completions of a turn of the chat' }
      return respondJson(event, 400, HEADERS, { error })
    }
    const stream = ReadableStream.from(eventsOf(demoCompletion(request), Buffer.byteLength(body), deltaMs))
    return new Response(stream, {
      headers: { ...HEADERS, 'content-type': 'text/event-stream; charset=utf-8' },
    })
  })
  return app
}

/** The chunks of a completion, with a pause before each delta. */
async function* eventsOf(
  completion: DemoCompletion,
  requestBytes: number,
  deltaMs: number,
): AsyncGenerator<Uint8Array, void> {
  const text = 'text' in completion ? completion.text : ''
  for (const [content] of text.matchAll(new RegExp(`(?:\\s*\\S+){1,${WORDS_PER_DELTA}}`, 'g'))) {
    if (deltaMs > 0) await pause(deltaMs)
    yield chunk({ content })
  }
  const calls = 'calls' in completion ? completion.calls.map(toolCall) : []
  if (calls.length > 0) yield chunk({ tool_calls: calls })
  const usage = usageOf(requestBytes, Buffer.byteLength(text + JSON.stringify(calls)))
  yield chunk({}, { finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' }, { usage })
  yield encoder.encode('data: [DONE]\n\n')
}

const encoder = new TextEncoder()

function chunk(delta: object, end: object = { finish_reason: null }, more: object = {}): Uint8Array {
  const choices = [{ index: 0, delta, ...end }]
  const event = { id: 'chatcmpl-demo', object: 'chat.completion.chunk', model: DEMO_CHAT_MODEL, choices }
  return encoder.encode(`data: ${JSON.stringify({ ...event, ...more })}\n\n`)
}

/** Ids repeat in every round; the client must keep them apart. */
function toolCall({ name, arguments: args }: { name: string; arguments: object }, index: number): object {
  const called = { name, arguments: JSON.stringify(args) }
  return { index, id: `call_demo_${index}`, type: 'function', function: called }
}

function usageOf(requestBytes: number, outputBytes: number): object {
  const [read, out] = [Math.ceil(requestBytes / BYTES_PER_TOKEN), Math.ceil(outputBytes / BYTES_PER_TOKEN)]
  return { prompt_tokens: read, completion_tokens: out, total_tokens: read + out }
}
