import type { Command } from 'commander'
import type { Job } from '../../domain/job-run.ts'
import type { BareContext, Run } from '../context.ts'
import type { ConfigFlags } from '../settings/read-config.ts'

export interface SharedFlags {
  dataDir?: string
  dotenv?: string
  json?: boolean
  quiet?: boolean
  verbose?: boolean
  color?: boolean
}

/**
 * Runs a command with what its flags and the surroundings come to, and keeps its exit code.
 *
 * @param job the job the command is, when it is one whose runs are watched
 */
export type Within = (flags: SharedFlags & ConfigFlags, run: Run, job?: Job | null) => Promise<void>

/** As {@link Within}, for a command that runs whatever the configuration is worth. */
export type Barely = (flags: SharedFlags & ConfigFlags, run: Run<BareContext>) => Promise<void>

export interface Runners {
  within: Within
  barely: Barely
}

/** Flags every command has; they may stand before its name as well as after. */
export function shared(command: Command): Command {
  return command
    .option('--data-dir <dir>', 'folder of ledger, feed and objects (DASH_DATA_DIR, default ./dash-data)')
    .option('--dotenv <file>', 'file of variables (default ./.env where it exists)')
    .option('--json', 'print one JSON document on standard output')
    .option('--quiet', 'print nothing when all went well')
    .option('--verbose', 'say more, and show the stack of an error')
    .option('--no-color', 'no colours')
}
