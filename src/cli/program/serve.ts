import type { Command } from 'commander'
import { Refusal } from '../../domain/refusal.ts'
import { shared } from './shared-flags.ts'
import type { SharedFlags, Within } from './shared-flags.ts'

/** `dash serve`. */
export function describeServe(program: Command, within: Within): void {
  shared(
    program
      .command('serve')
      .description('serve the API, the page and the documentation')
      .option('--host <host>', 'address to listen on (HOST, default 127.0.0.1)')
      .option('--port <port>', 'port to listen on (PORT, default 3000; 0 takes a free one)')
      .option('--demo', 'run on a bundled sample in a throw-away folder', false),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & { host?: string; port?: string; demo: boolean }>()
    return within(flags, async (context) => {
      if (flags.demo && flags.dataDir !== undefined) {
        throw new Refusal('usage', '--demo runs in a folder of its own; leave --data-dir out')
      }
      return (await import('../commands/serve.ts')).serve(context, flags.demo)
    })
  })
}
