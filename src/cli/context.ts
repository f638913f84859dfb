import { Option } from 'commander'
import type { Argument } from 'commander'
import type { Job } from '../domain/jobs.ts'
import type { Container } from './container.ts'
import type { Config } from './settings/config.ts'
import type { ConfigFlags } from './settings/flags.ts'
import type { Streams, Terminal } from './terminal.ts'
import { SETTING_FLAGS } from './settings/flags.ts'

/** Streams, environment and signal of the process that a command runs in. */
export interface ProcessContext extends Streams {
  stdin: NodeJS.ReadStream
  /** Base folder of relative paths. */
  cwd: string
  /** Aborted by SIGHUP, SIGINT, SIGQUIT or SIGTERM. */
  signal: AbortSignal
}

/** Context of commands that must run even when the configuration is invalid. */
export interface BareContext extends ProcessContext {
  /** Flags that name the configuration or override it. */
  flags: ConfigFlags
  terminal: Terminal
  version: string
}

/** Context of a command: its configuration, stores and services. */
export interface CommandContext extends BareContext {
  config: Config
  /** Stores and services of the configuration; closed when the command has ended. */
  container: Container
}

/** Runs a command and resolves with its exit code. */
export type Run<Context = CommandContext> = (context: Context) => Promise<number>

/** Flags every command has; they may stand before its name as well as after. */
export interface SharedFlags extends ConfigFlags {
  json?: boolean
  quiet?: boolean
  verbose?: boolean
  color?: boolean
}

/** Headings of the root help, in its order. */
type CommandGroup = 'Start' | 'Data' | 'Publish' | 'Prove' | 'Models' | 'Chat' | 'Operate'

/** One command: its description and flags, and the function that runs it, which is loaded when it runs. */
export interface CommandSpec {
  /** `collect`, or `import signals` below `import`. */
  name: string
  /** Heading of the root help; absent for a subcommand. */
  group?: CommandGroup
  description: string
  /** A command line that works as it stands. */
  example: string
  argument?: Argument
  options?: readonly Option[]
  /** The job whose runs are watched; null for a run that is none. */
  job?: (flags: JobFlags) => Job | null
  /** Loads the function that runs the command; absent for one that only groups subcommands. */
  load?: () => Promise<Handler<CommandContext>>
  /** In place of `load`: the command runs even when the configuration is invalid. */
  loadBare?: () => Promise<Handler<BareContext>>
}

/**
 * Runs a command and resolves with its exit code. It declares the flags of its options as commander parses them, and throws
 * refusals, faults and the signal's reason, each of which has an exit code (exit-codes.ts).
 */
type Handler<Context> = (context: Context, flags: never, args: string[]) => Promise<number>

/** Flags by which a run of a command is another job, or none. */
export interface JobFlags {
  dryRun?: boolean
  url?: string
}

export const option = (flags: string, description: string): Option => new Option(flags, description)
export const toggle = (flags: string, description: string): Option =>
  option(flags, description).default(false)
export const choice = (flags: string, description: string, choices: readonly string[]): Option =>
  option(flags, description).choices(choices)

export function settingOption(
  name: keyof typeof SETTING_FLAGS,
  help: string = SETTING_FLAGS[name].help,
): Option {
  return option(SETTING_FLAGS[name].flag, help)
}

export const sharedOptions = (): Option[] => [
  settingOption('DASH_DATA_DIR'),
  option('--dotenv <file>', 'env file (default: ./.env, if it exists)'),
  option('--json', 'print one JSON document on standard output'),
  option('--quiet', 'print nothing on success'),
  option('--verbose', 'print more details, and the stack trace of an error'),
  option('--no-color', 'print without colours'),
]
