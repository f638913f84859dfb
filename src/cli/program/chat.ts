import { Option } from 'commander'
import type { Command } from 'commander'
import { LIVE_SORTS } from '../../domain/feed/live-sort.ts'
import type { ChatFlags } from '../commands/chat/chat.ts'
import { shared } from './shared-flags.ts'
import type { SharedFlags, Within } from './shared-flags.ts'

/** `dash chat`. */
export function describeChat(program: Command, within: Within): void {
  shared(
    program
      .command('chat')
      .description('ask the chat agent; without a question: talk to it on the terminal')
      .argument(
        '[question...]',
        'one question, answered once, as plain text where the output is no terminal; it may come from a pipe too',
      )
      .option('--url <base>', 'server to ask (default: DASH_BASE_URL, else where dash serve listens)')
      .option('--item <key>', 'talk about one item, by its save key')
      .addOption(
        new Option('--sort <sort>', 'ranking that a talk about the whole site begins with').choices(
          LIVE_SORTS,
        ),
      )
      .option('--demo', 'start a private server on the bundled sample and talk to that', false)
      .option('--no-history', 'remember no questions between runs'),
  ).action((words: string[], _flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & ChatFlags>()
    return within(flags, async (context) =>
      (await import('../commands/chat/chat.ts')).chatCommand(context, words, flags),
    )
  })
}
