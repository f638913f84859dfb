import { Option } from 'commander'
import type { Command } from 'commander'
import type { Run } from '../context.ts'
import { shared } from './shared-flags.ts'
import type { SharedFlags, Within } from './shared-flags.ts'

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
      (await import('../commands/import-signals.ts')).importSignalsCommand(context, files, {
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
      (await import('../commands/import-articles.ts')).importArticlesCommand(context, files, { onError })
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
