import type { Fault } from './replay-server.ts'
import { startReplay, FAULTS, LINKED, startPages } from './replay-server.ts'
import { REPLAYED } from './responses.ts'
import type { Replayed } from './responses.ts'

const WRONG_ID = 'wrong-id'

/** An item that says it is another one. */
function withWrongId(content: unknown): unknown {
  return typeof content === 'object' && content !== null && 'id' in content ? { ...content, id: 1 } : content
}

const world = await startReplay()
const pages = await startPages()
for (const source of Object.keys(REPLAYED) as Replayed[])
  world.change(
    source,
    /./,
    (content) => JSON.parse(JSON.stringify(content).replaceAll(LINKED, pages)) as unknown,
  )
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
