import { Option } from 'commander'
import type { Command } from 'commander'
import type { EvaluateFlags } from '../commands/evaluate-models.ts'
import type { ModelFlags } from '../commands/model.ts'
import { shared } from './shared-flags.ts'
import type { SharedFlags, Within } from './shared-flags.ts'

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
