/**
 * The provider of the chat bench, in a process of its own: streams a short chat completion at once. A request for the
 * model `hold` gets its first chunk and nothing more. Notifies its parent when the response of a held request was closed.
 *
 *     node bench/provider-upstream.mjs    prints its URL and serves until it is stopped
 */
import { createServer } from 'node:http'

const WORDS = 'A short answer of about ten words, each its own delta.'.match(/\s*\S+/g)

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

async function answer(request, response) {
  const parts = []
  for await (const part of request) parts.push(part)
  const { model } = JSON.parse(Buffer.concat(parts).toString())
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(chunks[0])
  if (model === 'hold') response.once('close', () => process.send?.({ closedAt: now() }))
  // The rest is in a later segment, as a model's is.
  else setImmediate(() => response.end(chunks[1]))
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => response.destroy(error))
})

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
