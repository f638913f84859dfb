import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Command, CommanderError, Help, Option } from 'commander'
import { Refusal } from '../domain/refusal.ts'
import type { Job } from '../domain/jobs.ts'
import { sharedOptions } from './context.ts'
import type { CommandSpec, JobFlags, SharedFlags, BareContext, Run, ProcessContext } from './context.ts'
import { COMMANDS } from './command-table.ts'
import { causesOf, describeError, EXIT, exitCodeOf, exitCodeOfStop } from './exit-codes.ts'
import { fail, openTerminal } from './terminal.ts'
import { STANDARD_HOST, STANDARD_PORT } from './settings/flags.ts'
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
export async function runProgram(
  argv: readonly string[],
  host: Omit<ProcessContext, 'cwd'> & { cwd: string | null },
): Promise<number> {
  let exitCode: number = EXIT.done
  const json = argv.includes('--json')
  const version = releaseVersion()
  // The version ends the command line before other flags are parsed.
  const program = describeProgram(host, json ? JSON.stringify({ version }) : version)
  for (const spec of COMMANDS)
    addCommand(program, spec, async (command) => {
      const { cwd } = host
      if (cwd === null) return command.error('error: the current folder was removed; change to another one')
      exitCode = await runCommand(spec, command, { ...host, cwd, version })
    })
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return EXIT.done
    const terminal = openTerminal({ json, quiet: false, verbose: false, color: false }, host)
    return fail(terminal, commandLineMessage(error), EXIT.usage)
  }
}

function describeProgram(
  { stdout, stderr }: Pick<ProcessContext, 'stdout' | 'stderr'>,
  version: string,
): Command {
  const program = new Command('dash')
    .description('Publishes a Top Year of news that anyone can replay and prove.')
    .optionsGroup('Global options, before or after the command:')
    .configureHelp({ optionDescription, subcommandTerm })
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      // Printed once the error is caught.
      outputError: () => {},
    })
    .exitOverride()
    .hook('preAction', (_program, command) => {
      refuseExcess(command)
      refuseEmptyValues(command)
    })
    .addHelpText('after', `\nExamples:\n${ROOT_EXAMPLES}\n\nDocumentation: ${documentation()}`)
  for (const option of sharedOptions()) program.addOption(option)
  return program
    .version(version, '--version', 'print the version')
    .helpOption('-h, --help', HELP_DESCRIPTION)
    .commandsGroup('Operate:')
    .helpCommand(HELP_COMMAND, HELP_DESCRIPTION)
}

const HELP_COMMAND = 'help [command]'
const HELP_DESCRIPTION = 'print the help of dash or of a command'

const ROOT_EXAMPLES = [
  'serve --demo',
  'import signals day.ndjson.gz',
  'collect',
  'publish-year --json',
  'chat',
]
  .map((line) => `  dash ${line}`)
  .join('\n')

const documentation = (): string =>
  `/docs of a running server, as in http://${STANDARD_HOST}:${STANDARD_PORT}/docs, or the files in ${fileURLToPath(new URL('../../docs', import.meta.url))}`

/** The description of an option in the help. That a switch is off by default is not worth a remark. */
function optionDescription(option: Option): string {
  return option.defaultValue === false ? option.description : new Help().optionDescription(option)
}

/** A command and its arguments in the list of commands; every command has options. */
function subcommandTerm(command: Command): string {
  return `${command.name()} ${command.usage().replace(/^\[options\] ?/, '')}`.trimEnd()
}

/** The beginnings of commander's messages about a value outside the choices of an option or argument. */
const INVALID_OPTION = /^option '(\S+).*?' argument '(.*)' is invalid\. Allowed choices are /
const INVALID_ARGUMENT =
  /^command-argument value '(.*)' is invalid for argument '(.*)'\. Allowed choices are /

function commandLineMessage({ code, message }: CommanderError): string {
  if (code === 'commander.help') return 'the command is missing or unknown; dash --help lists all commands'
  const text = message.replace(/^error: |\.$/g, '').replaceAll('\n', ' ')
  if (code === 'commander.unknownCommand') return `${text}; dash --help lists all commands`
  return text
    .replace(INVALID_OPTION, '$1 "$2" must be one of ')
    .replace(INVALID_ARGUMENT, '$2 "$1" must be one of ')
}

/** Refuses an argument that the command does not take; commander's own message does not name it. */
function refuseExcess(command: Command): void {
  const { args, registeredArguments: known } = command
  const excess = known.at(-1)?.variadic ? undefined : args[known.length]
  if (excess !== undefined)
    command.error(`error: unexpected argument ${JSON.stringify(excess)}; see dash help`)
}

/**
 * Refuses empty arguments and flag values: they come from unset variables of scripts, and without them the command
 * would use another folder, port or target.
 */
function refuseEmptyValues(command: Command): void {
  const refuse = (what: string): void => command.error(`error: ${what} must not be empty`)
  for (let each: Command | null = command; each !== null; each = each.parent) {
    for (const option of each.options)
      if (hasEmpty(each.getOptionValue(option.attributeName()))) refuse(`option '${option.flags}'`)
  }
  for (const [index, argument] of command.registeredArguments.entries())
    if (hasEmpty(command.processedArgs[index])) refuse(`argument '${argument.name()}'`)
}

function hasEmpty(value: unknown): boolean {
  return [value].flat().includes('')
}

function addCommand(program: Command, spec: CommandSpec, run: (command: Command) => Promise<void>): void {
  const [name = '', above] = spec.name.split(' ').toReversed()
  const parent = program.commands.find((each) => each.name() === above) ?? program
  const command = parent
    .command(name)
    .description(spec.description)
    .allowExcessArguments()
    .addHelpText('after', `\nExample:\n  ${spec.example}\n\nGlobal options: dash --help`)
    .addHelpOption(new Option('-h, --help').hideHelp())
  if (spec.group) command.helpGroup(`${spec.group}:`)
  if (spec.argument) command.addArgument(spec.argument)
  for (const option of spec.options ?? []) command.addOption(option)
  if (spec.load || spec.loadBare) command.action(() => run(command))
  // Without a group: the one of the root is inherited.
  else command.helpCommand(HELP_COMMAND, HELP_DESCRIPTION)
  for (const option of sharedOptions()) command.addOption(option.hideHelp())
}

function runCommand(
  spec: CommandSpec,
  command: Command,
  host: ProcessContext & { version: string },
): Promise<number> {
  const flags = command.optsWithGlobals<SharedFlags & JobFlags>()
  const args = command.processedArgs.flat() as string[]
  const { json = false, quiet = false, verbose = false, color = true } = flags
  const terminal = openTerminal({ json, quiet, verbose, color }, host)
  return runToEnd({ ...host, flags, terminal }, async (context) => {
    if (spec.loadBare) return (await spec.loadBare())(context, flags as never, args)
    const run: Run = async (full) => (await spec.load?.())?.(full, flags as never, args) ?? EXIT.done
    return runConfigured(context, run, spec.job?.(flags) ?? null)
  })
}

async function runConfigured(bare: BareContext, run: Run, job: Job | null): Promise<number> {
  const { gatherSettings, noteUnknownSettings } = await import('./settings/read-config.ts')
  const { configFrom } = await import('./settings/config.ts')
  const { Container } = await import('./container.ts')
  const { values, originOf } = gatherSettings(bare)
  noteUnknownSettings(values, bare.terminal)
  const config = configFrom(values, bare.cwd, originOf)
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
    const message = isStop ? 'stopped by a signal' : withAdvice(describeError(error))
    fail(terminal, message, exitCode, job)
    if (!isStop) noteStack(error, exitCode, terminal)
    return exitCode
  }
}

/** The beginnings of messages about a store of this installation, whose checks say what to do. */
const OWN_STORE = /^(the database|the ledger|the folder|object|head) (?!.*; )/

function withAdvice(message: string): string {
  return OWN_STORE.test(message) ? `${message}; dash doctor says what to do` : message
}

/** Returns true if an error or one of its causes is the abort of the signal. */
function wasStopped(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false
  return causesOf(error).some((cause) => cause === signal.reason || cause.name === 'AbortError')
}

/** Prints the stack of an error under `--verbose`, and of internal errors always. */
function noteStack(error: unknown, exitCode: number, { verbose, note }: Terminal): void {
  if (!verbose && (exitCode !== EXIT.internal || error instanceof Refusal)) return
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  for (const line of stack.split('\n')) note(line)
}
