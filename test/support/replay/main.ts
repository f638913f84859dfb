import { startSource } from '../local-source.ts'
import type { Fault } from './replay-server.ts'
import { startReplay, FAULTS } from './replay-server.ts'
import { REPLAYED } from './responses.ts'
import type { Replayed } from './responses.ts'

/** An article of some length, which names its path. */
function articleOf(path: string): string {
  const name = path.replaceAll(/[^\w/-]/g, '')
  const paragraph = `<p>A paragraph of the article at ${name}. It is long enough to be told from what stands around an
    article, and says nothing but where it was found, so that a text can be followed to its page.</p>`
  return `<!doctype html><title>${name}</title><nav><a href="/">Home</a></nav>
    <article><h1>${name}</h1>${paragraph.repeat(5)}</article><footer>Footer</footer>`
}

const world = await startReplay()
const { url: pages } = await startSource(({ target }, response) => {
  if (target === '/robots.txt') response.writeHead(404).end()
  else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(articleOf(target))
})
for (const source of Object.keys(REPLAYED) as Replayed[])
  world.change(
    source,
    /./,
    (content) => JSON.parse(JSON.stringify(content).replaceAll('https://example.org', pages)) as unknown,
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
