/**
 * The provider of the provider bench, in a process of its own: streams a short answer of the Responses API at once, at
 * `/v1/responses`. A request for the model `hold` gets its first event and nothing more; `line` gets 200 MiB without a
 * line end. At `/v1/chat/completions` it streams the same answer as chunks, and holds a request whose message is `hold`.
 * Notifies its parent when the response of a held request was closed.
 *
 *     node bench/provider-upstream.mjs    prints its URL and serves until it is stopped
 */
import { createServer } from 'node:http'

const LINE_BYTES = 200 * 1024 * 1024
const WORDS = 'A short answer of about ten words, each its own delta.'.match(/\s*\S+/g)

const frame = (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
const created = frame({ type: 'response.created', response: { id: 'resp_1', status: 'in_progress' } })
const deltas = WORDS.map((delta) => frame({ type: 'response.output_text.delta', output_index: 0, delta }))
const usage = { input_tokens: 10, output_tokens: 10 }
const completed = frame({ type: 'response.completed', response: { id: 'resp_1', usage } })

const chunk = (delta, finish = null) =>
  `data: ${JSON.stringify({ id: 'c_1', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

/** The chunks of the answer, the first one alone. */
const chunks = [
  chunk({ role: 'assistant', content: WORDS[0] }),
  `${WORDS.slice(1)
    .map((content) => chunk({ content }))
    .join('')}${chunk({}, 'stop')}data: [DONE]\n\n`,
]

/** The same on every process of a machine, in milliseconds. */
const now = () => performance.timeOrigin + performance.now()

async function pour(response) {
  const block = Buffer.alloc(65_536, 'x')
  response.write('data: ')
  const closed = new Promise((resolve) => response.once('close', resolve))
  for (let written = 0; written < LINE_BYTES && !response.destroyed; written += block.byteLength) {
    if (response.write(block)) continue
    await Promise.race([new Promise((resolve) => response.once('drain', resolve)), closed])
  }
  response.end()
}

async function answer(request, response) {
  const parts = []
  for await (const part of request) parts.push(part)
  const { model, messages } = JSON.parse(Buffer.concat(parts).toString())
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (request.url.endsWith('/chat/completions')) {
    response.write(chunks[0])
    if (messages[0].content === 'hold') response.once('close', () => process.send?.({ closedAt: now() }))
    else setImmediate(() => response.end(chunks[1]))
  } else if (model === 'hold') {
    response.once('close', () => process.send?.({ closedAt: now() }))
    response.write(created + deltas[0])
  } else if (model === 'line') {
    await pour(response)
  } else {
    response.write(created + deltas[0])
    // Of its own in a later segment, as a model's are.
    setImmediate(() => response.end(deltas.slice(1).join('') + completed))
  }
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => response.destroy(error))
})

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
