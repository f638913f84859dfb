import { openDemo } from '../../demo.ts'
import type { CommandContext } from '../../context.ts'
import { startServer } from '../../running-server.ts'

/** A server on this machine that nobody else is told of. */
export interface PrivateServer {
  url: string
  close(): Promise<void>
}

/** Starts the demo on a free port of the loopback; it logs nothing, and its folder is deleted when it is closed. */
export async function startPrivate(context: CommandContext): Promise<PrivateServer> {
  const demo = await openDemo(context)
  const { signal, version } = context
  try {
    const monitoring = { ...demo.config.monitoring, metrics: null }
    const config = { ...demo.config, host: '127.0.0.1', port: 0, baseUrl: null, monitoring }
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
    const server = await startServer(config, { log, demo: true, version, isDraining: () => signal.aborted })
    return {
      url: server.url,
      async close() {
        await server.close(0)
        await demo.close()
      },
    }
  } catch (error) {
    await demo.close()
    throw error
  }
}
