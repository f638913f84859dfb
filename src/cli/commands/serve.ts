import { pino } from 'pino'
import { ownOrigins } from '../../domain/agent/origin.ts'
import { createApp } from '../../server/app.ts'
import { listenOn, requireFreePort } from '../../server/listen.ts'
import type { Config } from '../config.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { logStream } from '../log-stream.ts'
import type { CommandContext } from '../program.ts'
import { openWiredAgent } from '../wire-agent.ts'
import { openStores } from '../wire.ts'

/** Times a request may take to arrive (docs/operations.md). */
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 15_000

/** How long the last log lines may take. */
const LOG_END_MS = 500

/** `dash serve` */
export async function serve(context: CommandContext, demo: boolean): Promise<number> {
  if (!demo) {
    prepareFolders(context.config, false)
    return serveConfig(context, context.config, false)
  }
  const { host, port } = context.config
  await requireFreePort(host, port)
  const { openDemo } = await import('../demo.ts')
  const prepared = await openDemo(context)
  try {
    return await serveConfig(context, prepared.config, true)
  } finally {
    await prepared.close()
  }
}

async function serveConfig(
  { terminal, signal, version }: CommandContext,
  config: Config,
  demo: boolean,
): Promise<number> {
  const lines = logStream(process.stderr.fd)
  const log = pino({ level: config.logLevel }, lines)
  const stores = openStores(config, 'server')
  const { ledger, archive, year, feed, live, search, recommendations, audits } = stores
  let baseUrl = config.baseUrl ?? ''
  let origins: readonly string[] = config.allowedOrigins
  const isDraining = (): boolean => signal.aborted
  const wired = openWiredAgent(config, stores, { clock: Date.now, log, origins: () => origins })
  const checks = {
    ledger: () => ledger.ping(),
    archive: () => archive.ping(),
    feed: () => feed.ping(),
    state: () => wired.ping(),
  }
  const app = createApp({
    ledger,
    archive,
    year,
    live,
    search,
    recommendations,
    agent: wired.agent,
    widgetUrl: config.chat.verification?.widgetUrl ?? null,
    audits,
    clock: Date.now,
    log,
    checks,
    isDraining,
    version,
    demo,
    baseUrl: () => baseUrl,
  })
  try {
    const { host, port } = config
    const timeouts = { headersTimeoutMs: HEADERS_TIMEOUT_MS, requestTimeoutMs: REQUEST_TIMEOUT_MS }
    const server = await listenOn(app, { host, port, log, isDraining, ...timeouts })
    origins = [...ownOrigins(server.url, config.baseUrl), ...config.allowedOrigins]
    // A wildcard address is for listening, not for links.
    if (config.baseUrl === null) baseUrl = server.url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, '//localhost')
    const label = demo ? 'DEMO: ' : ''
    terminal.result({ job: 'serve', url: server.url, demo }, `${label}dash is listening on ${server.url}`)
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    terminal.note(
      `stopping: open answers may finish for ${config.drainMs / 1000} s; a second signal exits at once`,
    )
    await server.close(config.drainMs)
    return EXIT.done
  } finally {
    await wired.close()
    await stores.close()
    await lines.end(LOG_END_MS)
  }
}
