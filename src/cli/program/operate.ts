import { Argument, Option } from 'commander'
import type { Command } from 'commander'
import { Refusal } from '../../domain/refusal.ts'
import type { InitFlags } from '../commands/init/init.ts'
import type { Shell } from '../completion/completion.ts'
import { shared } from './flags.ts'
import type { Barely, SharedFlags, Within } from './flags.ts'

/** `dash init`. */
export function describeInit(program: Command, barely: Barely): void {
  shared(
    program
      .command('init')
      .description(
        'write a commented .env with a fresh secret, and print systemd units and cron lines for it',
      )
      .option('--host <host>', 'address to listen on (HOST, default 127.0.0.1)')
      .option('--port <port>', 'port to listen on (PORT, default 3000)')
      .option('--base-url <base>', 'address the server is reached at from outside (DASH_BASE_URL)')
      .option('--chat-model <model>', 'model the chat runs on (DASH_CHAT_MODEL); auto: a free one')
      .option('--user <name>', 'user the services run as (default: you; dash, when you are root)')
      .option('--yes', 'ask nothing, and take the defaults for what no flag says', false)
      .option('--no-env', 'write no env file: print units and cron lines for the one that is there')
      .option('--write-units <dir>', 'write the systemd units into this folder instead of printing them')
      .addOption(
        new Option(
          '--print <what>',
          'what is printed to run it (default: a person is asked; else units and cron lines)',
        ).choices(['systemd', 'cron', 'containers', 'nothing']),
      ),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & InitFlags>()
    return barely(flags, async (context) =>
      (await import('../commands/init/init.ts')).initCommand(context, flags),
    )
  })
}

/** `dash config`. */
export function describeConfig(program: Command, barely: Barely): void {
  shared(
    program
      .command('config')
      .description('show every setting, its value and where that comes from; secrets are not shown')
      .argument('[names...]', 'settings to show; none: all of them'),
  ).action((names: string[], _flags: unknown, command: Command) =>
    barely(command.optsWithGlobals<SharedFlags>(), async (context) =>
      (await import('../commands/config.ts')).configCommand(context, names),
    ),
  )
}

/** `dash doctor`. */
export function describeDoctor(program: Command, barely: Barely): void {
  shared(
    program
      .command('doctor')
      .description('check configuration, stores, clock, permissions and services, and say how to mend each')
      .option('--offline', 'ask no service', false),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & { offline: boolean }>()
    return barely(flags, async (context) =>
      (await import('../commands/doctor/doctor.ts')).doctorCommand(context, flags.offline),
    )
  })
}

/** `dash healthcheck`. */
export function describeHealthcheck(program: Command, within: Within): void {
  shared(
    program
      .command('healthcheck')
      .description('end with 0 when a server is ready, with 69 when it is not')
      .option('--url <base>', 'server to ask (default: HOST and PORT of this machine)'),
  ).action((_flags: unknown, command: Command) => {
    const flags = command.optsWithGlobals<SharedFlags & { url?: string }>()
    return within(flags, async (context) =>
      (await import('../commands/healthcheck.ts')).healthcheckCommand(context, flags.url),
    )
  })
}

/** `dash completion`. */
export function describeCompletion(program: Command, barely: Barely): void {
  shared(
    program
      .command('completion')
      .description('print what a shell loads to complete command lines of this program')
      .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish'])),
  ).action((shell: Shell, _flags: unknown, command: Command) =>
    barely(command.optsWithGlobals<SharedFlags>(), async (context) =>
      (await import('../completion/completion.ts')).completionCommand(context, program, shell),
    ),
  )
}

/** `dash serve`. */
export function describeServe(program: Command, within: Within): void {
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
      return (await import('../commands/serve.ts')).serve(context, flags.demo)
    })
  })
}
