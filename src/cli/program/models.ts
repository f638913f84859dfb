import { Option } from 'commander'
import type { Command } from 'commander'
import { LIVE_SORTS } from '../../domain/feed/columns.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { ChatFlags } from '../commands/chat/chat.ts'
import type { EvaluateFlags } from '../commands/evaluate-models.ts'
import type { ModelFlags } from '../commands/model.ts'
import { shared } from './flags.ts'
import type { SharedFlags, Within } from './flags.ts'

/** `dash evaluate-models`. */
export function describeEvaluateModels(program: Command, within: Within): void {
  shared(
    program
      .command('evaluate-models')
      .description('find out which free model to recommend, within the quota of a free account')
      .addOption(
        new Option('--mode <mode>', 'what may be asked')
          .choices(['fullEval', 'forceEval', 'healthOnly', 'metadataOnly'])
          .default('fullEval'),
      )
      .option('--dry-run', 'plan and rank; send no chat request and write nothing', false)
      .option('--why <model>', 'explain where a model stands instead: every part of its score'),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & EvaluateFlags>()
    return within(
      flags,
      async (context) =>
        (await import('../commands/evaluate-models.ts')).evaluateModelsCommand(context, flags),
      flags.dryRun || flags.why !== undefined ? null : 'evaluate-models',
    )
  })
}

/** `dash model`. */
export function describeModel(program: Command, within: Within): void {
  shared(
    program
      .command('model')
      .description('print the free model to use now')
      .option('--id', 'print its id alone', false)
      .option('--env', 'print what exports OPENAI_BASE_URL and OPENAI_MODEL to a shell', false)
      .option('--needs <names>', 'the best model that supports all of these: tools,structured,…')
      .option('--url <base>', 'ask another host instead of the own store'),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & ModelFlags>()
    return within(flags, async (context) =>
      (await import('../commands/model.ts')).modelCommand(context, flags),
    )
  })
}

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
