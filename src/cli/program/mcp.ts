import type { Command } from 'commander'
import { Refusal } from '../../domain/refusal.ts'
import { shared } from './shared-flags.ts'
import type { SharedFlags, Within } from './shared-flags.ts'

/** `dash mcp`. */
export function describeMcp(program: Command, within: Within): void {
  shared(
    program
      .command('mcp')
      .description(
        'give the read-only tools of the chat agent to an MCP client, on standard input and output',
      )
      .option('--demo', 'run on a bundled sample in a throw-away folder', false),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & { demo: boolean }>()
    return within(flags, async (context) => {
      if (flags.demo && flags.dataDir !== undefined) {
        throw new Refusal('usage', '--demo runs in a folder of its own; leave --data-dir out')
      }
      return (await import('../commands/mcp.ts')).mcpCommand(context, flags.demo)
    })
  })
}
