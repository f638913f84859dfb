import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { Refusal } from '../domain/refusal.ts'
import type { Job } from '../domain/job-run.ts'
import { COMMANDS, sharedOptions } from './command-table.ts'
import type { CommandSpec, SharedFlags } from './command-table.ts'
import { causesOf, describeError, EXIT, exitCodeOf, exitCodeOfStop } from './exit-codes.ts'
import { openTerminal } from './terminal.ts'
import type { BareContext, Run, ProcessContext } from './context.ts'
import type { Terminal } from './terminal.ts'

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
export async function runProgram(argv: readonly string[], host: ProcessContext): Promise<number> {
  let exitCode: number = EXIT.done
  const json = argv.includes('--json')
  const version = releaseVersion()
  // The version ends the command line before other flags are parsed.
  const program = describeProgram(host, json ? JSON.stringify({ version }) : version)
  for (const spec of COMMANDS)
    addCommand(program, spec, async (command) => {
      exitCode = await runCommand(spec, command, program, { ...host, version })
    })
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return EXIT.done
    openTerminal({ json, quiet: false, verbose: false, color: false }, host).failure(
      commandLineMessage(error),
      EXIT.usage,
    )
    return EXIT.usage
  }
}

function describeProgram({ stdout, stderr }: ProcessContext, version: string): Command {
  return shared(new Command('dash'))
    .description('Publishes a Top Year of news that anyone can replay and prove.')
    .version(version, '--version')
    .exitOverride()
    .hook('preAction', (_program, command) => refuseEmptyFlags(command))
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .addHelpText(
      'before',
      'Examples:\n  dash serve --demo\n  dash import signals day.ndjson.gz\n  dash collect\n  dash publish-year --json\n  dash chat\n',
    )
}

function commandLineMessage({ code, message }: CommanderError): string {
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

function shared(command: Command): Command {
  for (const option of sharedOptions()) command.addOption(option)
  return command
}

function addCommand(program: Command, spec: CommandSpec, run: (command: Command) => Promise<void>): void {
  const [name = '', above] = spec.name.split(' ').toReversed()
  const parent = program.commands.find((each) => each.name() === above) ?? program
  const command = parent.command(name).description(spec.description)
  if (spec.argument) command.addArgument(spec.argument)
  for (const option of spec.options ?? []) command.addOption(option)
  if (spec.run || spec.runBare) command.action(() => run(command))
  shared(command)
}

function runCommand(
  spec: CommandSpec,
  command: Command,
  program: Command,
  host: ProcessContext & { version: string },
): Promise<number> {
  const flags = command.optsWithGlobals<SharedFlags>()
  const args = command.processedArgs.flat() as string[]
  const { json = false, quiet = false, verbose = false, color = true } = flags
  const terminal = openTerminal({ json, quiet, verbose, color }, host)
  return runToEnd({ ...host, flags, terminal }, async (context) => {
    if (spec.runBare) return spec.runBare(context, flags, args, program)
    const run: Run = async (full) => (await spec.run?.(full, flags, args)) ?? EXIT.done
    return runConfigured(context, run, spec.job?.(flags) ?? null)
  })
}

async function runConfigured(bare: BareContext, run: Run, job: Job | null): Promise<number> {
  const { readConfig } = await import('./settings/read-config.ts')
  const { Container } = await import('./container.ts')
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

/** Runs a command; an error it throws is printed and becomes its exit code. */
async function runToEnd(
  context: BareContext,
  run: Run<BareContext>,
  job: Job | null = null,
): Promise<number> {
  const { terminal, signal } = context
  try {
    return await run(context)
  } catch (error) {
    const isStop = wasStopped(error, signal)
    const exitCode = isStop ? exitCodeOfStop(signal) : exitCodeOf(error)
    const message = isStop ? 'stopped by a signal' : describeError(error)
    terminal.error(message)
    terminal.failure(message, exitCode, job)
    if (!isStop) noteStack(error, exitCode, terminal)
    return exitCode
  }
}

/** True for an error that is the signal's own doing, however it was wrapped. */
function wasStopped(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false
  return causesOf(error).some((cause) => cause === signal.reason || cause.name === 'AbortError')
}

/** The stack of an error under `--verbose`, and of one that is a fault of the program. */
function noteStack(error: unknown, exitCode: number, { verbose, note }: Terminal): void {
  if (!verbose && (exitCode !== EXIT.internal || error instanceof Refusal)) return
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  for (const line of stack.split('\n')) note(line)
}
