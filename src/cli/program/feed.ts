import type { Command } from 'commander'
import type { LiveSourceName } from '../../domain/feed/live-source.ts'
import type { SearchFlags } from '../commands/search.ts'
import { liveSourceOption, searchSourceOption } from '../source-option.ts'
import { shared } from './shared-flags.ts'
import type { SharedFlags, Within } from './shared-flags.ts'

/** `dash collect`. */
export function describeCollect(program: Command, within: Within): void {
  shared(
    program
      .command('collect')
      .description(
        'collect the items of today from the live sources, take a snapshot of the live feed, index what is new and ' +
          'read texts of items',
      )
      .addOption(liveSourceOption()),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & { source?: LiveSourceName[] }>()
    return within(
      flags,
      async (context) => (await import('../commands/collect.ts')).collectCommand(context, flags.source ?? []),
      'collect',
    )
  })
}

/** `dash reindex`. */
export function describeReindex(program: Command, within: Within): void {
  shared(
    program
      .command('reindex')
      .description('build the search index anew; the one there answers until the new one is complete'),
  ).action((_flags: unknown, command: Command) =>
    within(
      command.optsWithGlobals<SharedFlags>(),
      async (context) => (await import('../commands/reindex.ts')).reindexCommand(context),
      'reindex',
    ),
  )
}

/** `dash search`. */
export function describeSearch(program: Command, within: Within): void {
  shared(
    program
      .command('search')
      .description('find stored items by the words of their titles and texts')
      .argument('<words...>', 'words, "phrases" in quotation marks, and beginnings (word*)')
      .addOption(searchSourceOption())
      .option('--from <day>', 'only items of this day or later')
      .option('--to <day>', 'only items of this day or earlier')
      .option('--limit <n>', 'most items to print (1 to 100, default 20)'),
  ).action((words: string[], _flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & SearchFlags>()
    return within(flags, async (context) =>
      (await import('../commands/search.ts')).searchCommand(context, words, flags),
    )
  })
}

/** `dash snapshot`. */
export function describeSnapshot(program: Command, within: Within): void {
  shared(
    program
      .command('snapshot')
      .description('rank the live periods now and store what /api/feed serves')
      .option(
        '--discard-later',
        'remove snapshots dated later than now, which a wrong clock or damage made',
        false,
      ),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & { discardLater: boolean }>()
    return within(
      flags,
      async (context) => (await import('../commands/snapshot.ts')).snapshotCommand(context, flags),
      'snapshot',
    )
  })
}
