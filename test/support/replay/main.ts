import type { Fault } from './replay-server.ts'
import { startReplay, FAULTS, LINKED, startPages } from './replay-server.ts'
import { REPLAYED } from './responses.ts'
import type { Replayed } from './responses.ts'

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
  if (!Object.hasOwn(REPLAYED, source) || !Object.hasOwn(FAULTS, fault)) {
    const known = `sources: ${Object.keys(REPLAYED).join(', ')}; faults: ${Object.keys(FAULTS).join(', ')}`
    process.stderr.write(`${argument} is no SOURCE=FAULT[:PATTERN]; ${known}\n`)
    process.exit(64)
  }
  const pattern = where === undefined ? /./ : new RegExp(where)
  world.fault(source as Replayed, fault as Fault, pattern)
}
const env = { ...world.env, DASH_ARTICLE_ALLOW_PRIVATE: '127.0.0.1/32' }
for (const [name, value] of Object.entries(env)) process.stdout.write(`export ${name}=${value}\n`)
