import type { Config } from './config.ts'
import type { Streams, Terminal } from './terminal.ts'

/** Everything a command gets: its surroundings, resolved once. */
export interface CommandContext {
  config: Config
  terminal: Terminal
  /** Aborted by SIGINT or SIGTERM. */
  signal: AbortSignal
  stdin: NodeJS.ReadStream
  stdout: NodeJS.WriteStream
  stderr: NodeJS.WriteStream
  /** Folder that relative paths start from. */
  cwd: string
  version: string
}

/** What the process gives a command line. */
export interface Surroundings extends Streams {
  stdin: NodeJS.ReadStream
  cwd: string
  signal: AbortSignal
}

/** A command's outcome: its exit code. */
export type Run = (context: CommandContext) => Promise<number>
