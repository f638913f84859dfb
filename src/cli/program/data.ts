import { Option } from 'commander'
import type { Command } from 'commander'
import type { LiveSourceName } from '../../domain/feed/live-source.ts'
import type { SearchFlags } from '../commands/search.ts'
import type { Run } from '../context.ts'
import { shared } from './flags.ts'
import type { SharedFlags, Within } from './flags.ts'
import { liveSourceOption, searchSourceOption } from './source-option.ts'

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
      async (context) => (await import('../commands/snapshot.ts')).reindexCommand(context),
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

type ImportFlags = SharedFlags & { onError: 'abort' | 'skip'; titleProvenance?: string }

/** `dash import signals`, `articles` and `archive`. */
export function describeImports(program: Command, within: Within): void {
  const imports = shared(program.command('import').description('bring data in from files'))
  describeSignals(imports, within)
  describeArticles(imports, within)
  describeArchive(imports, within)
}

function describeSignals(imports: Command, within: Within): void {
  shared(
    imports
      .command('signals')
      .description('import daily signals from NDJSON files, plain or gzip; - is standard input')
      .argument('<file...>', 'files to read')
      .addOption(onErrorOption())
      .option(
        '--title-provenance <value>',
        'vouch for the titles of rows without provenance, <source>:<channel>',
      ),
  ).action((files: string[], _flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<ImportFlags>()
    const { onError, titleProvenance = null } = flags
    const run: Run = async (context) =>
      (await import('../commands/import-lines.ts')).importSignalsCommand(context, files, {
        onError,
        titleProvenance,
      })
    return within(flags, run, 'import-signals')
  })
}

function describeArticles(imports: Command, within: Within): void {
  shared(
    imports
      .command('articles')
      .description('import article texts from NDJSON files, plain or gzip; - is standard input')
      .argument('<file...>', 'files to read')
      .addOption(onErrorOption()),
  ).action((files: string[], _flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<ImportFlags>()
    const { onError } = flags
    const run: Run = async (context) =>
      (await import('../commands/import-lines.ts')).importArticlesCommand(context, files, { onError })
    return within(flags, run, 'import-articles')
  })
}

function describeArchive(imports: Command, within: Within): void {
  shared(
    imports
      .command('archive')
      .description('found an archive with older publications, verbatim, before anything is published')
      .argument('<dir>', 'folder with manifests.ndjson and the files it names'),
  ).action((dir: string, _flags: unknown, command: Command) =>
    within(
      command.optsWithGlobals<SharedFlags>(),
      async (context) => (await import('../commands/import-archive.ts')).importArchiveCommand(context, dir),
      'import-archive',
    ),
  )
}

function onErrorOption(): Option {
  return new Option('--on-error <what>', 'what a bad row does to its file')
    .choices(['abort', 'skip'])
    .default('abort')
}
