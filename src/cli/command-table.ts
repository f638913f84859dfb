import { Argument, InvalidArgumentError, Option } from 'commander'
import type { Command } from 'commander'
import type { LiveSort } from '../domain/feed/live-sort.ts'
import { LIVE_SOURCES } from '../domain/feed/live-source.ts'
import type { LiveSourceName } from '../domain/feed/live-source.ts'
import type { Job } from '../domain/job-run.ts'
import { Refusal } from '../domain/refusal.ts'
import type { ChatFlags } from './commands/chat/chat.ts'
import type { EvaluateFlags } from './commands/evaluate-models.ts'
import type { InitFlags } from './commands/init/init.ts'
import type { ModelFlags } from './commands/model.ts'
import type { PublishFlags } from './commands/publish-year.ts'
import type { SearchFlags } from './commands/search.ts'
import type { VerifyFlags } from './commands/verify/verify-archive.ts'
import type { BareContext, CommandContext } from './context.ts'
import { SETTING_FLAGS } from './settings/flags.ts'
import type { ConfigFlags } from './settings/flags.ts'

/** Flags every command has; they may stand before its name as well as after. */
export interface SharedFlags extends ConfigFlags {
  json?: boolean
  quiet?: boolean
  verbose?: boolean
  color?: boolean
}

/** One command: its description and flags, and the module that runs it, which is loaded when it runs. */
export interface CommandSpec<Flags = object> {
  /** `collect`, or `import signals` below `import`. */
  name: string
  description: string
  argument?: Argument
  options?: readonly Option[]
  /** The job whose runs are watched; null for a run that is none. */
  job?(flags: Flags): Job | null
  /** Absent for a command that only has others below it. */
  run?(context: CommandContext, flags: Flags & SharedFlags, args: string[]): Promise<number>
  /** In place of `run`: runs even when the configuration is invalid. */
  runBare?(context: BareContext, flags: Flags, args: string[], program: Command): Promise<number>
}

const option = (flags: string, description: string): Option => new Option(flags, description)
const toggle = (flags: string, description: string): Option => option(flags, description).default(false)
const choice = (flags: string, description: string, choices: readonly string[]): Option =>
  option(flags, description).choices(choices)

function settingOption(name: keyof typeof SETTING_FLAGS, help: string = SETTING_FLAGS[name].help): Option {
  return option(`${SETTING_FLAGS[name].flag} ${SETTING_FLAGS[name].value}`, help)
}

export const sharedOptions = (): Option[] => [
  settingOption('DASH_DATA_DIR'),
  option('--dotenv <file>', 'file of variables (default ./.env where it exists)'),
  option('--json', 'print one JSON document on standard output'),
  option('--quiet', 'print nothing when all went well'),
  option('--verbose', 'say more, and show the stack of an error'),
  option('--no-color', 'no colours'),
]

const demo = (): Option => toggle('--demo', 'run on a bundled sample in a throw-away folder')

function refuseFolderOfDemo({ demo: isDemo, dataDir }: { demo: boolean } & SharedFlags): void {
  if (isDemo && dataDir !== undefined)
    throw new Refusal('usage', '--demo runs in a folder of its own; leave --data-dir out')
}

/** Adds the names of `--source` of `collect`: after it, comma-separated, or with the option again. */
function addLiveSources(value: string, before: LiveSourceName[] = []): LiveSourceName[] {
  const names = value.split(',')
  const sources = LIVE_SOURCES.filter((source) => names.includes(source))
  if (names.some((name) => !sources.some((source) => source === name)))
    throw new InvalidArgumentError(`Allowed choices are ${LIVE_SOURCES.join(', ')}.`)
  return [...before, ...sources]
}

// Said again here, where its type is checked: the module of the periods loads a library that help does not need.
const SORTS = Object.keys({ trending: 0, day: 0, week: 0, month: 0 } satisfies Record<LiveSort, 0>)

type ImportFlags = { onError: 'abort' | 'skip'; titleProvenance?: string }
const onError = (): Option =>
  choice('--on-error <what>', 'what a bad row does to its file', ['abort', 'skip']).default('abort')
const files = (): Argument => new Argument('<file...>', 'files to read')

function spec<Flags extends object>(command: CommandSpec<Flags>): CommandSpec {
  return command
}

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandSpec[] = [
  spec<{ demo: boolean }>({
    name: 'serve',
    description: 'serve the API, the page and the documentation',
    options: [
      settingOption('HOST'),
      settingOption('PORT', SETTING_FLAGS.PORT.help.replace(')', '; 0 takes a free one)')),
      demo(),
    ],
    async run(context, flags) {
      refuseFolderOfDemo(flags)
      return (await import('./commands/serve.ts')).serve(context, flags.demo)
    },
  }),
  spec<ChatFlags>({
    name: 'chat',
    description: 'ask the chat agent; without a question: talk to it on the terminal',
    argument: new Argument(
      '[question...]',
      'one question, answered once, as plain text where the output is no terminal; it may come from a pipe too',
    ),
    options: [
      option('--url <base>', 'server to ask (default: DASH_BASE_URL, else where dash serve listens)'),
      option('--item <key>', 'talk about one item, by its save key'),
      choice('--sort <sort>', 'ranking that a talk about the whole site begins with', SORTS),
      toggle('--demo', 'start a private server on the bundled sample and talk to that'),
      option('--no-history', 'remember no questions between runs'),
    ],
    run: async (context, flags, words) =>
      (await import('./commands/chat/chat.ts')).chatCommand(context, words, flags),
  }),
  spec<{ demo: boolean }>({
    name: 'mcp',
    description: 'give the read-only tools of the chat agent to an MCP client, on standard input and output',
    options: [demo()],
    async run(context, flags) {
      refuseFolderOfDemo(flags)
      return (await import('./commands/mcp.ts')).mcpCommand(context, flags.demo)
    },
  }),

  { name: 'import', description: 'bring data in from files' },
  spec<ImportFlags>({
    name: 'import signals',
    description: 'import daily signals from NDJSON files, plain or gzip; - is standard input',
    argument: files(),
    options: [
      onError(),
      option(
        '--title-provenance <value>',
        'vouch for the titles of rows without provenance, <source>:<channel>',
      ),
    ],
    job: () => 'import-signals',
    run: async (context, { onError: mode, titleProvenance = null }, names) =>
      (await import('./commands/import-lines.ts')).importSignalsCommand(context, names, {
        onError: mode,
        titleProvenance,
      }),
  }),
  spec<ImportFlags>({
    name: 'import articles',
    description: 'import article texts from NDJSON files, plain or gzip; - is standard input',
    argument: files(),
    options: [onError()],
    job: () => 'import-articles',
    run: async (context, { onError: mode }, names) =>
      (await import('./commands/import-lines.ts')).importArticlesCommand(context, names, { onError: mode }),
  }),
  spec({
    name: 'import archive',
    description: 'found an archive with older publications, verbatim, before anything is published',
    argument: new Argument('<dir>', 'folder with manifests.ndjson and the files it names'),
    job: () => 'import-archive',
    run: async (context, _flags, [folder = '']) =>
      (await import('./commands/import-archive.ts')).importArchiveCommand(context, folder),
  }),
  spec<{ source?: LiveSourceName[] }>({
    name: 'collect',
    description:
      'collect the items of today from the live sources, take a snapshot of the live feed, index what is new and ' +
      'read texts of items',
    options: [
      choice('--source <names...>', 'sources to collect from, default all', LIVE_SOURCES).argParser(
        addLiveSources,
      ),
    ],
    job: () => 'collect',
    run: async (context, { source = [] }) =>
      (await import('./commands/collect.ts')).collectCommand(context, source),
  }),
  spec({
    name: 'reindex',
    description: 'rebuild the search index; the old index serves searches until the new one is complete',
    job: () => 'reindex',
    run: async (context) => (await import('./commands/reindex.ts')).reindexCommand(context),
  }),
  spec<SearchFlags>({
    name: 'search',
    description: 'find stored items by the words of their titles and texts',
    argument: new Argument('<words...>', 'words, "phrases" in quotation marks, and beginnings (word*)'),
    options: [
      // It takes no names after the first, since words to look for may stand there.
      option('--source <sources>', 'only these sources, comma-separated; may be repeated').argParser(
        (value: string, before: string | undefined) => (before === undefined ? value : `${before},${value}`),
      ),
      option('--from <day>', 'only items of this day or later'),
      option('--to <day>', 'only items of this day or earlier'),
      option('--limit <n>', 'most items to print (1 to 100, default 20)'),
    ],
    run: async (context, flags, words) =>
      (await import('./commands/search.ts')).searchCommand(context, words, flags),
  }),
  spec<PublishFlags>({
    name: 'publish-year',
    description: 'publish the Year of the last completed UTC day',
    options: [
      option('--retry-delay <seconds>', 'pause between the attempts of one run').default('60'),
      toggle('--once', 'make one attempt instead of all that are left'),
      toggle('--dry-run', 'rank and report; count and write nothing'),
      toggle('--allow-empty', 'publish a Year although all its lists are empty'),
    ],
    job: ({ dryRun }) => (dryRun ? null : 'publish-year'),
    run: async (context, flags) =>
      (await import('./commands/publish-year.ts')).publishYearCommand(context, flags),
  }),
  spec({
    name: 'checkpoint',
    description: 'sign the checkpoint of the ledger, if publish-year has not signed it',
    run: async (context) => (await import('./commands/checkpoint.ts')).checkpointCommand(context),
  }),
  { name: 'log-key', description: 'make the key that signs checkpoints' },
  spec({
    name: 'log-key new',
    description: 'make a new key in a file, and beside it the record of what it signed last',
    argument: new Argument('[file]', 'file to write (default: DASH_LOG_KEY_FILE)'),
    run: async (context, _flags, [file]) =>
      (await import('./commands/log-key.ts')).newLogKeyCommand(context, file),
  }),
  spec<{ discardLater: boolean }>({
    name: 'snapshot',
    description: 'rank the live periods now and store what /api/feed serves',
    options: [
      toggle('--discard-later', 'remove snapshots dated later than now, which a wrong clock or damage made'),
    ],
    job: () => 'snapshot',
    run: async (context, flags) => (await import('./commands/snapshot.ts')).snapshotCommand(context, flags),
  }),
  spec<VerifyFlags>({
    name: 'verify-archive',
    description: 'audit the archive: ledgers, chain, heads, signed checkpoints, objects; reads only',
    options: [
      option('--sample <amount>', 'read only some objects: a share (5%), a size (500M) or a bucket (2/7)'),
      option('--since <day>', 'read only objects of publications as of this day or later'),
      option('--expect-head <file>', 'a head file kept from before, which the ledger must still contain'),
      option('--url <base>', 'audit another host by its public answers instead'),
      toggle('--payloads', 'prove every payload as the server does, not only the newest'),
      option('--jobs <n>', 'objects read at a time (default: one a core)'),
      toggle(
        '--self-test',
        'also damage a private archive in every known kind of way and count what is noticed',
      ),
    ],
    job: ({ url }) => (url === undefined ? 'verify-archive' : 'verify-host'),
    run: async (context, flags) =>
      (await import('./commands/verify/verify-archive.ts')).verifyArchiveCommand(context, flags),
  }),
  spec<{ policy?: string }>({
    name: 'verify',
    description: 'verify a publication against its proof file, without any network',
    argument: new Argument('<files...>', 'the publication, then its proof file'),
    options: [option('--policy <file>', 'the policy of the log: whose signatures to require')],
    runBare: async (context, { policy }, names) =>
      (await import('./commands/verify/verify-proof.ts')).verifyProofCommand(context, names, policy),
  }),
  spec<EvaluateFlags>({
    name: 'evaluate-models',
    description: 'find out which free model to recommend, within the quota of a free account',
    options: [
      choice('--mode <mode>', 'what may be asked', [
        'fullEval',
        'forceEval',
        'healthOnly',
        'metadataOnly',
      ]).default('fullEval'),
      toggle('--dry-run', 'plan and rank; send no chat request and write nothing'),
      option('--why <model>', 'explain where a model stands instead: every part of its score'),
    ],
    job: ({ dryRun, why }) => (dryRun || why !== undefined ? null : 'evaluate-models'),
    run: async (context, flags) =>
      (await import('./commands/evaluate-models.ts')).evaluateModelsCommand(context, flags),
  }),
  spec<ModelFlags>({
    name: 'model',
    description: 'print the free model to use now',
    options: [
      toggle('--id', 'print its id alone'),
      toggle('--env', 'print what exports OPENAI_BASE_URL and OPENAI_MODEL to a shell'),
      option('--needs <names>', 'the best model that supports all of these: tools,structured,…'),
      option('--url <base>', 'ask another host instead of the own store'),
    ],
    run: async (context, flags) => (await import('./commands/model.ts')).modelCommand(context, flags),
  }),
  spec<{ to: string[] }>({
    name: 'copy-archive',
    description: 'copy the archive to other engines and audit the copy; goes on where it was cut short',
    options: [
      option(
        '--to <target...>',
        'a data folder, or a database URL and a store URL, or an env file that holds them',
      ).makeOptionMandatory(),
    ],
    job: () => 'copy-archive',
    run: async (context, { to }) =>
      (await import('./commands/copy-archive.ts')).copyArchiveCommand(context, to),
  }),
  spec<InitFlags>({
    name: 'init',
    description: 'write a commented .env with a fresh secret, and print systemd units and cron lines for it',
    options: [
      settingOption('HOST'),
      settingOption('PORT'),
      settingOption('DASH_BASE_URL'),
      settingOption('DASH_CHAT_MODEL'),
      option('--user <name>', 'user the services run as (default: you; dash, when you are root)'),
      toggle('--yes', 'ask nothing, and take the defaults for what no flag says'),
      option('--no-env', 'write no env file: print units and cron lines for the one that is there'),
      option('--write-units <dir>', 'write the systemd units into this folder instead of printing them'),
      choice(
        '--print <what>',
        'what is printed to run it (default: a person is asked; else units and cron lines)',
        ['systemd', 'cron', 'containers', 'nothing'],
      ),
    ],
    runBare: async (context, flags) => (await import('./commands/init/init.ts')).initCommand(context, flags),
  }),
  spec({
    name: 'config',
    description: 'show every setting, its value and where that comes from; secrets are not shown',
    argument: new Argument('[names...]', 'settings to show; none: all of them'),
    runBare: async (context, _flags, names) =>
      (await import('./commands/config.ts')).configCommand(context, names),
  }),
  spec<{ offline: boolean }>({
    name: 'doctor',
    description: 'check configuration, stores, clock, permissions and services, and say how to mend each',
    options: [toggle('--offline', 'ask no service')],
    runBare: async (context, { offline }) =>
      (await import('./commands/doctor/doctor.ts')).doctorCommand(context, offline),
  }),
  spec<{ url?: string }>({
    name: 'healthcheck',
    description: 'end with 0 when a server is ready, with 69 when it is not',
    options: [option('--url <base>', 'server to ask (default: HOST and PORT of this machine)')],
    run: async (context, { url }) =>
      (await import('./commands/healthcheck.ts')).healthcheckCommand(context, url),
  }),
  spec({
    name: 'completion',
    description: 'print what a shell loads to complete command lines of this program',
    argument: new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']),
    runBare: async (context, _flags, [shell = ''], program) =>
      (await import('./commands/completion.ts')).completionCommand(context, program, shell),
  }),
]
