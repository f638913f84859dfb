import type { Command } from 'commander'
import type { VerifyFlags } from '../commands/verify/verify-archive.ts'
import type { Run } from '../context.ts'
import { readTargetConfig } from '../settings/read-config.ts'
import { shared } from './flags.ts'
import type { SharedFlags, Within } from './flags.ts'

/** `dash publish-year`. */
export function describePublishYear(program: Command, within: Within): void {
  shared(
    program
      .command('publish-year')
      .description('publish the Year of the last completed UTC day')
      .option('--retry-delay <seconds>', 'pause between the attempts of one run', '60')
      .option('--once', 'make one attempt instead of all that are left', false)
      .option('--dry-run', 'rank and report; count and write nothing', false)
      .option('--allow-empty', 'publish a Year although all its lists are empty', false),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<
      SharedFlags & { retryDelay: string; once: boolean; dryRun: boolean; allowEmpty: boolean }
    >()
    return within(
      flags,
      async (context) => (await import('../commands/publish-year.ts')).publishYearCommand(context, flags),
      flags.dryRun ? null : 'publish-year',
    )
  })
}

/** `dash verify-archive`. */
export function describeVerifyArchive(program: Command, within: Within): void {
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
    return within(
      flags,
      async (context) =>
        (await import('../commands/verify/verify-archive.ts')).verifyArchiveCommand(context, flags),
      flags.url === undefined ? 'verify-archive' : 'verify-host',
    )
  })
}

/** `dash copy-archive`; the environment is the one that an env file of the target adds to. */
export function describeCopyArchive(program: Command, within: Within, env: NodeJS.ProcessEnv): void {
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
    const run: Run = async (context) => {
      const target = readTargetConfig(flags.to, flags, env, context.cwd)
      return (await import('../commands/copy-archive.ts')).copyArchiveCommand(context, target)
    }
    return within(flags, run, 'copy-archive')
  })
}
