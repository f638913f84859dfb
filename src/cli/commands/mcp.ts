import { agentSources } from '../../server/agent/tools.ts'
import { serveStdio } from '../../server/mcp/tool-server.ts'
import { Refusal } from '../../domain/refusal.ts'
import { Container } from '../container.ts'
import type { Config } from '../settings/config.ts'
import { requireFeed } from '../data-folder.ts'
import { describeError, EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'

/** `dash mcp`: serves the MCP client that started this process, until it closes its input or a signal arrives. */
export async function mcpCommand(context: CommandContext, { demo }: { demo: boolean }): Promise<number> {
  if (context.terminal.json) {
    throw new Refusal('usage', 'mcp writes protocol messages to standard output; remove --json')
  }
  if (!demo) return serveConfig(context, context.config, false)
  const { withDemo } = await import('../demo.ts')
  return withDemo(context, (config) => serveConfig(context, config, true))
}

async function serveConfig(
  { terminal, stdin, stdout, signal, version }: CommandContext,
  config: Config,
  demo: boolean,
): Promise<number> {
  requireFeed(config)
  const container = new Container({ config, version, kind: 'server' })
  try {
    if (stdin.isTTY)
      terminal.note('waiting for an MCP client on standard input; docs/mcp.md explains how to set one up')
    const sources = agentSources({ ...(await container.agentReads()), clock: Date.now })
    const onFault = (tool: string, error: unknown): void => terminal.error(`${tool}: ${describeError(error)}`)
    await serveStdio(
      { sources, version, demo, onFault },
      { input: stdin, output: stdout, signal, onProblem: terminal.error },
    )
    return EXIT.done
  } finally {
    await container.close()
  }
}
