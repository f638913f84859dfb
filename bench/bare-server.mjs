/**
 * The least a Node server can do: one file's bytes from memory, with an entity tag. A peer of the history
 * bench.
 *
 *     node bench/bare-server.mjs FILE ETAG    prints its URL and serves until it is stopped
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const [file, etag] = process.argv.slice(2)
const body = readFileSync(file)
const headers = { etag, 'content-type': 'application/json' }

const server = createServer((request, response) => {
  if (request.headers['if-none-match'] === etag) {
    response.writeHead(304, headers).end()
  } else {
    response.writeHead(200, { ...headers, 'content-length': body.byteLength }).end(body)
  }
})

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
