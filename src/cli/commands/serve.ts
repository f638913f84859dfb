import { requireFreePort } from '../../server/listen.ts'
import type { Config } from '../config.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { logStream } from '../log-stream.ts'
import type { CommandContext } from '../context.ts'
import { startServer } from '../running-server.ts'
import { openServerLog } from '../server-log.ts'

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
  { terminal, signal, stderr, version }: CommandContext,
  config: Config,
  demo: boolean,
): Promise<number> {
  const lines = logStream(process.stderr.fd)
  const format = { level: config.logLevel, readable: stderr.isTTY, colored: terminal.colored }
  const log = openServerLog(lines, format)
  try {
    const isDraining = (): boolean => signal.aborted
    const server = await startServer(config, { log, version, demo, isDraining })
    const label = demo ? 'DEMO: ' : ''
    const { url, metricsUrl } = server
    const told = { job: 'serve', url, demo, ...(metricsUrl === null ? {} : { metricsUrl }) }
    terminal.result(told, `${label}dash is listening on ${url}`)
    if (metricsUrl !== null) terminal.note(`metrics: ${metricsUrl}`)
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    terminal.note(
      `stopping: open answers may finish for ${config.drainMs / 1000} s; a second signal exits at once`,
    )
    await server.close(config.drainMs)
    return EXIT.done
  } finally {
    log.flush()
    await lines.end(LOG_END_MS)
  }
}
