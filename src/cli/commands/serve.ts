import { AddressUnavailable, requireFreePort } from '../../server/listen.ts'
import { listenSettings } from '../settings/config.ts'
import type { Config } from '../settings/config.ts'
import { prepareFolders } from '../data-folder.ts'
import { badValue } from '../settings/environment.ts'
import { EXIT } from '../exit-codes.ts'
import { logStream, openServerLog } from '../server-log.ts'
import type { CommandContext } from '../context.ts'
import { startServer } from '../running-server.ts'
import type { Terminal } from '../terminal.ts'

/** Time limit for writing the remaining log lines. */
const LOG_FLUSH_MS = 500

export async function serveCommand(context: CommandContext, { demo }: { demo: boolean }): Promise<number> {
  const { host, port, originOf } = context.config
  try {
    // Checked before anything is created.
    await requireFreePort(host, port, listenSettings(context.config))
    if (demo) {
      const { withDemo } = await import('../demo.ts')
      return await withDemo(context, (config) => serveConfig(context, config, true))
    }
    prepareFolders(context.config, false)
    return await serveConfig(context, context.config, false)
  } catch (error) {
    // An address that the server cannot listen on is a bad value of a setting.
    if (!(error instanceof AddressUnavailable)) throw error
    throw badValue(originOf(error.setting), error.detail ?? error.code)
  }
}

/** Returns the log level. On a terminal `info` becomes `warn` without --verbose, which hides requests. */
function logLevelFor({ logLevel }: Config, { verbose }: Terminal, isTerminal: boolean): Config['logLevel'] {
  return isTerminal && !verbose && logLevel === 'info' ? 'warn' : logLevel
}

async function serveConfig(
  { terminal, signal, stderr, version }: CommandContext,
  config: Config,
  demo: boolean,
): Promise<number> {
  const lines = logStream(process.stderr.fd)
  const level = logLevelFor(config, terminal, stderr.isTTY)
  const log = openServerLog(lines, { level, readable: stderr.isTTY, colored: terminal.colored })
  try {
    const isDraining = (): boolean => signal.aborted
    const server = await startServer(config, { log, version, demo, isDraining })
    const label = demo ? 'DEMO: ' : ''
    const { url, metricsUrl } = server
    const result = { job: 'serve', url, demo, ...(metricsUrl === null ? {} : { metricsUrl }) }
    if (metricsUrl !== null) terminal.note(`metrics: ${metricsUrl}`)
    // The address must be the last line of the start.
    log.flush()
    await lines.flush(LOG_FLUSH_MS)
    terminal.result(result, `${label}dash is listening on ${url}`)
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    terminal.note(
      `stopping: open responses have ${config.drainMs / 1000} s to finish; a second signal exits at once`,
    )
    await server.close(config.drainMs)
    return EXIT.done
  } finally {
    log.flush()
    await lines.flush(LOG_FLUSH_MS)
  }
}
