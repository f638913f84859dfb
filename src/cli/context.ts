import type { Container } from './container.ts'
import type { Config } from './settings/config.ts'
import type { ConfigFlags } from './settings/flags.ts'
import type { Streams, Terminal } from './terminal.ts'

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
