import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import type { LiveSourceName } from '../domain/feed/live-source.ts'
import { Refusal } from '../domain/refusal.ts'
import { readConfig, readTargetConfig } from './config.ts'
import type { Config, ConfigFlags } from './config.ts'
import type { EvaluateFlags } from './commands/evaluate-models.ts'
import type { ModelFlags } from './commands/model.ts'
import type { SearchFlags } from './commands/search.ts'
import type { VerifyFlags } from './commands/verify-archive.ts'
import { describeError, EXIT, exitCodeOf, exitCodeOfStop } from './exit-codes.ts'
import { liveSourceOption, searchSourceOption } from './source-option.ts'
import { openTerminal } from './terminal.ts'
import type { Streams, Terminal } from './terminal.ts'

/** Everything a command gets: its surroundings, resolved once. */
export interface CommandContext {
  config: Config
  terminal: Terminal
  /** Aborted by SIGINT or SIGTERM. */
  signal: AbortSignal
  stdin: NodeJS.ReadStream
  /** Folder that relative paths start from. */
  cwd: string
  version: string
}

export interface Surroundings extends Streams {
  stdin: NodeJS.ReadStream
  cwd: string
  signal: AbortSignal
}

/** A command's outcome: its exit code. */
type Run = (context: CommandContext) => Promise<number>

interface SharedFlags {
  dataDir?: string
  dotenv?: string
  json?: boolean
  quiet?: boolean
  verbose?: boolean
  color?: boolean
}

/** The release, from the package itself. */
function releaseVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/**
 * Parses a command line and runs its command. Each command's modules are loaded when it runs, so that help is quick.
 *
 * @param argv arguments after the program's name
 * @returns the exit code (docs/troubleshooting.md)
 */
export async function runProgram(argv: readonly string[], surroundings: Surroundings): Promise<number> {
  let exitCode: number = EXIT.done
  const within = (flags: SharedFlags & ConfigFlags, run: Run): Promise<void> =>
    runCommand(flags, surroundings, run).then((code) => {
      exitCode = code
    })
  const program = describeProgram(within, surroundings)
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return error.exitCode === 0 ? EXIT.done : EXIT.usage
  }
}

type Within = (flags: SharedFlags & ConfigFlags, run: Run) => Promise<void>

function describeProgram(within: Within, surroundings: Surroundings): Command {
  const { stdout, stderr } = surroundings
  const program = shared(new Command('dash'))
    .description('Publishes a Top Year of news that anyone can replay and prove.')
    .version(releaseVersion(), '--version')
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .addHelpText(
      'before',
      'Examples:\n  dash serve --demo\n  dash import signals day.ndjson.gz\n  dash collect\n  dash publish-year --json\n',
    )
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
      return (await import('./commands/serve.ts')).serve(context, flags.demo)
    })
  })
  const imports = shared(program.command('import').description('bring data in from files'))
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
    return within(flags, async (context) =>
      (await import('./commands/import-signals.ts')).importSignalsCommand(context, files, {
        onError: flags.onError,
        titleProvenance: flags.titleProvenance ?? null,
      }),
    )
  })
  shared(
    imports
      .command('articles')
      .description('import article texts from NDJSON files, plain or gzip; - is standard input')
      .argument('<file...>', 'files to read')
      .addOption(onErrorOption()),
  ).action((files: string[], _flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<ImportFlags>()
    return within(flags, async (context) =>
      (await import('./commands/import-articles.ts')).importArticlesCommand(context, files, {
        onError: flags.onError,
      }),
    )
  })
  shared(
    imports
      .command('archive')
      .description('found an archive with older publications, verbatim, before anything is published')
      .argument('<dir>', 'folder with manifests.ndjson and the files it names'),
  ).action((dir: string, _flags: unknown, command: Command) =>
    within(command.optsWithGlobals<SharedFlags>(), async (context) =>
      (await import('./commands/import-archive.ts')).importArchiveCommand(context, dir),
    ),
  )
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
    return within(flags, async (context) =>
      (await import('./commands/collect.ts')).collectCommand(context, flags.source ?? []),
    )
  })
  shared(
    program
      .command('reindex')
      .description('build the search index anew; the one there answers until the new one is complete'),
  ).action((_flags: unknown, command: Command) =>
    within(command.optsWithGlobals<SharedFlags>(), async (context) =>
      (await import('./commands/reindex.ts')).reindexCommand(context),
    ),
  )
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
      (await import('./commands/search.ts')).searchCommand(context, words, flags),
    )
  })
  shared(
    program
      .command('publish-year')
      .description('publish the Year of the last completed UTC day')
      .option('--retry-delay <seconds>', 'pause between the attempts of one run', '60')
      .option('--once', 'make one attempt instead of all that are left', false)
      .option('--dry-run', 'rank and report; count and write nothing', false),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<
      SharedFlags & { retryDelay: string; once: boolean; dryRun: boolean }
    >()
    return within(flags, async (context) =>
      (await import('./commands/publish-year.ts')).publishYearCommand(context, flags),
    )
  })
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
    return within(flags, async (context) =>
      (await import('./commands/snapshot.ts')).snapshotCommand(context, flags),
    )
  })
  shared(
    program
      .command('verify-archive')
      .description('audit the archive: ledgers, chain, heads, objects; reads only')
      .option('--sample <amount>', 'read only some objects: a share (5%), a size (500M) or a bucket (2/7)')
      .option('--since <day>', 'read only objects of publications as of this day or later')
      .option('--expect-head <file>', 'a head file kept from before, which the ledger must still contain')
      .option('--url <base>', 'audit another host by its public answers instead')
      .option('--payloads', 'prove every payload as the server does, not only the newest', false)
      .option('--jobs <n>', 'objects read at a time (default: one a core)')
      .option(
        '--self-test',
        'also damage a private archive in every known way and count what is noticed',
        false,
      ),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & VerifyFlags>()
    return within(flags, async (context) =>
      (await import('./commands/verify-archive.ts')).verifyArchiveCommand(context, flags),
    )
  })
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
    return within(flags, async (context) =>
      (await import('./commands/evaluate-models.ts')).evaluateModelsCommand(context, flags),
    )
  })
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
      (await import('./commands/model.ts')).modelCommand(context, flags),
    )
  })
  shared(
    program
      .command('copy-archive')
      .description('copy the archive to other engines and audit the copy; goes on where it was cut short')
      .requiredOption(
        '--to <target...>',
        'a data folder, or a database URL and a store URL, or an env file that holds them',
      ),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & { to: string[] }>()
    return within(flags, async (context) => {
      const target = readTargetConfig(flags.to, flags, surroundings.env, surroundings.cwd)
      return (await import('./commands/copy-archive.ts')).copyArchiveCommand(context, target)
    })
  })
  return program
}

type ImportFlags = SharedFlags & { onError: 'abort' | 'skip'; titleProvenance?: string }

function onErrorOption(): Option {
  return new Option('--on-error <what>', 'what a bad row does to its file')
    .choices(['abort', 'skip'])
    .default('abort')
}

/** Flags every command has; they may stand before its name as well as after. */
function shared(command: Command): Command {
  return command
    .option('--data-dir <dir>', 'folder of ledger, feed and objects (DASH_DATA_DIR, default ./dash-data)')
    .option('--dotenv <file>', 'file of variables (default ./.env where it exists)')
    .option('--json', 'print one JSON document on standard output')
    .option('--quiet', 'print nothing when all went well')
    .option('--verbose', 'say more, and show the stack of an error')
    .option('--no-color', 'no colours')
}

async function runCommand(
  flags: SharedFlags & ConfigFlags,
  surroundings: Surroundings,
  run: Run,
): Promise<number> {
  const { json = false, quiet = false, verbose = false, color = true } = flags
  const terminal = openTerminal({ json, quiet, verbose, color }, surroundings)
  try {
    const config = readConfig(flags, surroundings.env, surroundings.cwd)
    const { signal, stdin, cwd } = surroundings
    return await run({ config, terminal, signal, stdin, cwd, version: releaseVersion() })
  } catch (error) {
    if (wasStopped(error, surroundings.signal)) {
      terminal.error('stopped by a signal')
      const exitCode = exitCodeOfStop(surroundings.signal)
      terminal.failure('stopped by a signal', exitCode)
      return exitCode
    }
    return reportFailure(error, terminal)
  }
}

/** True for an error that is the signal's own doing, however it was wrapped. */
function wasStopped(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause === signal.reason || cause.name === 'AbortError') return true
  }
  return false
}

/** Prints an error as one line, with its stack under `--verbose`; returns its exit code. */
function reportFailure(error: unknown, terminal: Terminal): number {
  const exitCode = exitCodeOf(error)
  terminal.error(describeError(error))
  terminal.failure(describeError(error), exitCode)
  if (terminal.verbose || (exitCode === EXIT.internal && !(error instanceof Refusal))) {
    terminal.note(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  return exitCode
}
