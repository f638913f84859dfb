import type { Container } from './container.ts'
import type { Config } from './settings/config.ts'
import type { ConfigFlags } from './settings/flags.ts'
import type { Streams, Terminal } from './terminal.ts'

/** What the process gives a command line. */
export interface ProcessContext extends Streams {
  stdin: NodeJS.ReadStream
  /** Folder that relative paths start from. */
  cwd: string
  /** Aborted by SIGHUP, SIGINT, SIGQUIT or SIGTERM. */
  signal: AbortSignal
}

/** Context of commands that must run even when the configuration is invalid. */
export interface BareContext extends ProcessContext {
  /** Those that say where the configuration is, and what wins over it. */
  flags: ConfigFlags
  terminal: Terminal
  version: string
}

/** Everything a command gets: its surroundings, resolved once. */
export interface CommandContext extends BareContext {
  config: Config
  /** The stores and services of that configuration; closed when the command has ended. */
  container: Container
}

/** Runs a command and resolves with its exit code. */
export type Run<Context = CommandContext> = (context: Context) => Promise<number>
