import type { Fault } from './replay-server.ts'
import { startReplay, FAULTS, LINKED, startPages } from './replay-server.ts'
import { REPLAYED } from './replies.ts'
import type { Replayed } from './replies.ts'

const WRONG_ID = 'wrong-id'

/** An item that says it is another one. */
function withWrongId(reply: unknown): unknown {
  return typeof reply === 'object' && reply !== null && 'id' in reply ? { ...reply, id: 1 } : reply
}

const world = await startReplay()
const pages = await startPages()
for (const source of Object.keys(REPLAYED) as Replayed[])
  world.change(source, /./, (reply) => JSON.parse(JSON.stringify(reply).replaceAll(LINKED, pages)) as unknown)
for (const argument of process.argv.slice(2)) {
  const [, source = '', fault = '', where] = /^([a-z-]+)=([a-z-]+)(?::(.+))?$/.exec(argument) ?? []
  const isFault = fault === WRONG_ID || Object.hasOwn(FAULTS, fault)
  if (!Object.hasOwn(REPLAYED, source) || !isFault) {
    const known = `sources: ${Object.keys(REPLAYED).join(', ')}; faults: ${[...Object.keys(FAULTS), WRONG_ID].join(', ')}`
    process.stderr.write(`${argument} is no SOURCE=FAULT[:PATTERN]; ${known}\n`)
    process.exit(64)
  }
  const pattern = where === undefined ? /./ : new RegExp(where)
  if (fault === WRONG_ID) world.change(source as Replayed, pattern, withWrongId)
  else world.fault(source as Replayed, fault as Fault, pattern)
}
const env = { ...world.env, DASH_ARTICLE_ALLOW_PRIVATE: '127.0.0.1/32' }
for (const [name, value] of Object.entries(env)) process.stdout.write(`export ${name}=${value}\n`)
