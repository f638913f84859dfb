import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { Refusal } from '../domain/refusal.ts'
import type { Job } from '../domain/job-run.ts'
import { Container } from './container.ts'
import { describeError, EXIT, exitCodeOf, exitCodeOfStop } from './exit-codes.ts'
import { describeChat, describeMcp, describeEvaluateModels, describeModel } from './program/models.ts'
import {
  describeCollect,
  describeReindex,
  describeSearch,
  describeSnapshot,
  describeImports,
} from './program/data.ts'
import {
  describeCompletion,
  describeConfig,
  describeDoctor,
  describeHealthcheck,
  describeInit,
  describeServe,
} from './program/operate.ts'
import { shared } from './program/flags.ts'
import type { Barely, Runners, SharedFlags, Within } from './program/flags.ts'
import { describeCopyArchive, describePublishYear, describeVerifyArchive } from './program/publish.ts'
import { readConfig } from './settings/read-config.ts'
import type { ConfigFlags } from './settings/read-config.ts'
import { openTerminal } from './terminal.ts'
import type { BareContext, Run, Surroundings } from './context.ts'
import type { Terminal } from './terminal.ts'

/** The release, from the package itself. */
function releaseVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** What `--version` prints: it ends the command line before the other flags are parsed. */
function versionText(argv: readonly string[]): string {
  const version = releaseVersion()
  return argv.includes('--json') ? JSON.stringify({ version }) : version
}

/**
 * Parses a command line and runs its command. Each command's modules are loaded when it runs, so that help is quick.
 *
 * @param argv arguments after the program's name
 * @returns the exit code (docs/troubleshooting.md)
 */
export async function runProgram(argv: readonly string[], surroundings: Surroundings): Promise<number> {
  let exitCode: number = EXIT.done
  const barely: Barely = async (flags, run) => {
    exitCode = await runCommand(flags, surroundings, run)
  }
  const within: Within = (flags, run, job = null) => barely(flags, (bare) => runConfigured(bare, run, job))
  const program = describeProgram({ within, barely }, surroundings, versionText(argv))
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return EXIT.done
    const json = argv.includes('--json')
    openTerminal({ json, quiet: false, verbose: false, color: false }, surroundings).failure(
      wordsOf(error),
      EXIT.usage,
    )
    return EXIT.usage
  }
}

/** What is wrong with a command line, on one line. */
function wordsOf({ code, message }: CommanderError): string {
  if (code === 'commander.help') return 'a command is missing; see dash --help'
  return message.replace(/^error: /, '').replaceAll('\n', ' ')
}

/** An empty value is a variable of a script that is not set: to go on without the flag would store and listen elsewhere. */
function refuseEmptyFlags(command: Command): void {
  for (let each: Command | null = command; each !== null; each = each.parent) {
    for (const option of each.options) {
      if (each.getOptionValue(option.attributeName()) !== '') continue
      command.error(`error: option '${option.flags}' must not be empty`)
    }
  }
}

function describeProgram({ within, barely }: Runners, surroundings: Surroundings, version: string): Command {
  const { stdout, stderr } = surroundings
  const program = shared(new Command('dash'))
    .description('Publishes a Top Year of news that anyone can replay and prove.')
    .version(version, '--version')
    .exitOverride()
    .hook('preAction', (_program, command) => refuseEmptyFlags(command))
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .addHelpText(
      'before',
      'Examples:\n  dash serve --demo\n  dash import signals day.ndjson.gz\n  dash collect\n  dash publish-year --json\n  dash chat\n',
    )
  describeServe(program, within)
  describeChat(program, within)
  describeMcp(program, within)
  describeImports(program, within)
  describeCollect(program, within)
  describeReindex(program, within)
  describeSearch(program, within)
  describePublishYear(program, within)
  describeSnapshot(program, within)
  describeVerifyArchive(program, within)
  describeEvaluateModels(program, within)
  describeModel(program, within)
  describeCopyArchive(program, within, surroundings.env)
  describeInit(program, barely)
  describeConfig(program, barely)
  describeDoctor(program, barely)
  describeHealthcheck(program, within)
  describeCompletion(program, barely)
  return program
}

function runCommand(
  flags: SharedFlags & ConfigFlags,
  surroundings: Surroundings,
  run: Run<BareContext>,
): Promise<number> {
  const { json = false, quiet = false, verbose = false, color = true } = flags
  const terminal = openTerminal({ json, quiet, verbose, color }, surroundings)
  return runToEnd({ ...surroundings, flags, terminal, version: releaseVersion() }, run)
}

/** Runs a command with its configuration; one that is a job is watched. */
async function runConfigured(bare: BareContext, run: Run, job: Job | null): Promise<number> {
  const config = readConfig(bare.flags, bare.env, bare.cwd)
  const runClosing = async (context: BareContext): Promise<number> => {
    const container = new Container({ config, version: context.version })
    try {
      return await run({ ...context, config, container })
    } finally {
      await container.close()
    }
  }
  if (job === null) return runClosing(bare)
  const { runWatched } = await import('./job-records.ts')
  return runWatched(job, config, bare, (watched) => runToEnd(watched, runClosing, job))
}

/** Runs a command; what it throws is told and becomes its exit code. */
async function runToEnd<Context extends BareContext>(
  context: Context,
  run: Run<Context>,
  job: Job | null = null,
): Promise<number> {
  const { terminal, signal } = context
  try {
    return await run(context)
  } catch (error) {
    if (!wasStopped(error, signal)) return reportFailure(error, terminal, job)
    terminal.error('stopped by a signal')
    const exitCode = exitCodeOfStop(signal)
    terminal.failure('stopped by a signal', exitCode, job)
    return exitCode
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
function reportFailure(error: unknown, terminal: Terminal, job: Job | null): number {
  const exitCode = exitCodeOf(error)
  terminal.error(describeError(error))
  terminal.failure(describeError(error), exitCode, job)
  if (terminal.verbose || (exitCode === EXIT.internal && !(error instanceof Refusal))) {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
    for (const line of stack.split('\n')) terminal.note(line)
  }
  return exitCode
}
