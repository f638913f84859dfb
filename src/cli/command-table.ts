import { Argument, InvalidArgumentError } from 'commander'
import type { Option } from 'commander'
import type { LiveSort } from '../domain/feed/live-sort.ts'
import { LIVE_SOURCES } from '../domain/feed/live-source.ts'
import type { LiveSourceName } from '../domain/feed/live-source.ts'
import type { SearchSort } from '../domain/feed/search/search.ts'
import { choice, option, settingOption, toggle } from './context.ts'
import type { CommandSpec } from './context.ts'
import { SETTING_FLAGS } from './settings/flags.ts'

const demo = (): Option => toggle('--demo', 'run with a bundled sample in a temporary folder')

/** Adds the names of `--source` of `collect`: after it, comma-separated, or with the option again. */
function addLiveSources(value: string, before: LiveSourceName[] = []): LiveSourceName[] {
  const names = value.split(',')
  const sources = LIVE_SOURCES.filter((source) => names.includes(source))
  if (names.some((name) => !sources.some((source) => source === name)))
    throw new InvalidArgumentError(`Allowed choices are ${LIVE_SOURCES.join(', ')}.`)
  return [...before, ...sources]
}

// Said again here, where their types are checked: their modules load a library that help does not need.
const SORTS = Object.keys({ trending: 0, day: 0, week: 0, month: 0 } satisfies Record<LiveSort, 0>)

const SEARCH_SORTS = Object.keys({ relevance: 0, newest: 0, points: 0 } satisfies Record<SearchSort, 0>)

const TOP_SOURCES = [...LIVE_SOURCES, 'hype', 'midjourney']

const onError = (): Option =>
  choice('--on-error <what>', 'at a bad row: abort imports nothing of its file, skip omits the row', [
    'abort',
    'skip',
  ]).default('abort')
const files = (): Argument => new Argument('<file...>', 'files to read')

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandSpec[] = [
  {
    name: 'init',
    group: 'Start',
    description: 'write a commented .env with a fresh secret, and print systemd units and cron lines',
    example: 'dash init --base-url https://dash.example --print systemd',
    options: [
      settingOption('HOST'),
      settingOption('PORT'),
      settingOption('DASH_BASE_URL'),
      settingOption('DASH_CHAT_MODEL'),
      option('--user <name>', 'user that runs the services (default: you, or dash if you are root)'),
      toggle('--yes', 'ask no questions; use the default of every setting without a flag'),
      option('--no-env', 'write no env file; print units and cron lines for the existing one'),
      option('--write-units <dir>', 'write the systemd units to this folder instead of printing them'),
      choice('--print <what>', 'setup to print (default: choose on a terminal, otherwise systemd and cron)', [
        'systemd',
        'cron',
        'containers',
        'nothing',
      ]),
    ],
    loadBare: async () => (await import('./commands/init/init.ts')).initCommand,
  },
  {
    name: 'serve',
    group: 'Start',
    description: 'serve the API, the page and the documentation',
    example: 'dash serve --demo',
    options: [
      settingOption('HOST'),
      settingOption('PORT', SETTING_FLAGS.PORT.help.replace(')', '; 0: any free port)')),
      demo(),
    ],
    load: async () => (await import('./commands/serve.ts')).serveCommand,
  },
  {
    name: 'doctor',
    group: 'Start',
    description:
      'check configuration, stores, clock, permissions and services, and print how to fix each problem',
    example: 'dash doctor --offline',
    options: [toggle('--offline', 'contact no service')],
    loadBare: async () => (await import('./commands/doctor/doctor.ts')).doctorCommand,
  },
  {
    name: 'import',
    group: 'Data',
    description: 'import data from files',
    example: 'dash import signals day.ndjson.gz',
  },
  {
    name: 'import signals',
    description: 'import daily signals from NDJSON files, plain or gzip; - reads standard input',
    example: 'dash import signals --on-error skip day.ndjson.gz',
    argument: files(),
    options: [
      onError(),
      option('--title-provenance <value>', 'title provenance of rows without one, <source>:<channel>'),
    ],
    job: () => 'import-signals',
    load: async () => (await import('./commands/import-lines.ts')).importSignalsCommand,
  },
  {
    name: 'import articles',
    description: 'import article texts from NDJSON files, plain or gzip; - reads standard input',
    example: 'dash import articles texts.ndjson',
    argument: files(),
    options: [onError()],
    job: () => 'import-articles',
    load: async () => (await import('./commands/import-lines.ts')).importArticlesCommand,
  },
  {
    name: 'import archive',
    description: 'import older publications byte for byte into an archive without publications',
    example: 'dash import archive older-publications',
    argument: new Argument('<dir>', 'folder with manifests.ndjson and the files it names'),
    job: () => 'import-archive',
    load: async () => (await import('./commands/archive.ts')).importArchiveCommand,
  },
  {
    name: 'collect',
    group: 'Data',
    description:
      "collect today's items from the live sources, rank the live feed, index new items and " +
      'read article texts',
    example: 'dash collect --source hn,lobsters',
    options: [
      choice('--source <names...>', 'sources to collect from (default: all)', LIVE_SOURCES).argParser(
        addLiveSources,
      ),
    ],
    job: () => 'collect',
    load: async () => (await import('./commands/collect.ts')).collectCommand,
  },
  {
    name: 'snapshot',
    group: 'Data',
    description: 'rank the live feed now and store the snapshot that /api/feed serves',
    example: 'dash snapshot --json',
    options: [
      toggle('--discard-later', 'remove snapshots with a future date, left by a wrong clock or by damage'),
    ],
    job: () => 'snapshot',
    load: async () => (await import('./commands/collect.ts')).snapshotCommand,
  },
  {
    name: 'search',
    group: 'Data',
    description: 'search stored items by words of their titles and texts',
    example: `dash search rust '"memory safety"' --from 2026-01-01`,
    argument: new Argument('<words...>', 'words, "quoted phrases" and prefixes (word*)'),
    options: [
      // It takes no names after the first, since words to look for may stand there.
      option('--source <sources>', 'only these sources, comma-separated; may be repeated').argParser(
        (value: string, before: string | undefined) => (before === undefined ? value : `${before},${value}`),
      ),
      option('--min-points <n>', 'only items with at least as many points, in the unit of their source'),
      option('--min-comments <n>', 'only items with at least as many comments'),
      option('--from <day>', 'only items of this day or later (YYYY-MM-DD)'),
      option('--to <day>', 'only items of this day or earlier (YYYY-MM-DD)'),
      choice('--sort <order>', 'order of the items (default: relevance)', SEARCH_SORTS),
      option('--limit <n>', 'maximum number of items (1 to 100, default 20)'),
    ],
    load: async () => (await import('./commands/search.ts')).searchCommand,
  },
  {
    name: 'top',
    group: 'Data',
    description: 'print the ranking of a live period, or of the Year of any time',
    example: 'dash top year --at 2026-03-02 --limit 10',
    argument: new Argument('[sort]', 'ranking to print (default: trending)').choices([...SORTS, 'year']),
    options: [
      option('--at <time>', 'with year: the publication that was current then (a day or an instant)'),
      choice('--source <source>', 'print the list of this source instead of the popular one', TOP_SOURCES),
      option('--limit <n>', 'maximum number of items (1 to 100, default 20)'),
      option('--url <base>', 'read the public API of another host instead of the data folder'),
    ],
    load: async () => (await import('./commands/top.ts')).topCommand,
  },
  {
    name: 'reindex',
    group: 'Data',
    description: 'rebuild the search index; searches are refused until it is complete',
    example: 'dash reindex',
    job: () => 'reindex',
    load: async () => (await import('./commands/collect.ts')).reindexCommand,
  },
  {
    name: 'publish-year',
    group: 'Publish',
    description: 'publish the Year ranking of the last completed UTC day',
    example: 'dash publish-year --dry-run',
    options: [
      option('--retry-delay <seconds>', 'pause between attempts, in seconds').default('60'),
      toggle('--once', 'make one attempt instead of all remaining attempts'),
      toggle('--dry-run', 'rank and report; write nothing and count no attempt'),
      toggle('--allow-empty', 'publish even if every news list is empty'),
      option(
        '--record-gaps <n>',
        'confirm more than seven missed days, or old data, by the number of missed days',
      ),
    ],
    job: ({ dryRun }) => (dryRun ? null : 'publish-year'),
    load: async () => (await import('./commands/publish.ts')).publishYearCommand,
  },
  {
    name: 'checkpoint',
    group: 'Publish',
    description: 'sign the checkpoint of the ledger unless publish-year already signed it',
    example: 'dash checkpoint --json',
    load: async () => (await import('./commands/publish.ts')).checkpointCommand,
  },
  {
    name: 'log-key',
    group: 'Publish',
    description: 'create the key that signs checkpoints',
    example: 'dash log-key new log.key',
  },
  {
    name: 'log-key new',
    description: 'create a key file and, beside it, the record of the last signed checkpoint',
    example: 'dash log-key new log.key',
    argument: new Argument('[file]', 'file to write (default: DASH_LOG_KEY_FILE)'),
    options: [option('--replaces <file>', 'key file whose keys sign too until you remove their lines')],
    load: async () => (await import('./commands/publish.ts')).newLogKeyCommand,
  },
  {
    name: 'export',
    group: 'Publish',
    description: 'write the archive up to its newest checkpoint as static files for any web server',
    example: 'dash export /var/www/history',
    argument: new Argument('<target>', 'a folder, or a bucket as s3://BUCKET/PREFIX?endpoint=URL'),
    options: [toggle('--page', 'write pages for readers too, one for each publication, and feeds')],
    job: () => 'export',
    load: async () => (await import('./commands/archive.ts')).exportCommand,
  },
  {
    name: 'verify-archive',
    group: 'Prove',
    description: 'audit the archive (ledgers, chain, heads, signed checkpoints, objects) without changing it',
    example: 'dash verify-archive --sample 5%',
    options: [
      option('--sample <amount>', 'read only some objects: a share (5%), a size (500M) or a bucket (2/7)'),
      option('--since <day>', 'read only objects of publications as of this day or later (YYYY-MM-DD)'),
      option('--expect-head <file>', 'saved head file; the ledger must still contain this head'),
      option('--url <base>', 'audit another host, or static files of an export, instead'),
      option('--policy <file>', 'policy file: the keys to trust for the log of the host'),
      option('--state <dir>', 'folder of seen checkpoints (default: $XDG_STATE_HOME/dash/logs)'),
      toggle('--payloads', 'check the content of every publication as the server does, not only the newest'),
      option('--jobs <n>', 'objects to read in parallel (default: one per core)'),
    ],
    job: ({ url }) => (url === undefined ? 'verify-archive' : 'verify-host'),
    load: async () => (await import('./commands/verify.ts')).verifyArchiveCommand,
  },
  {
    name: 'verify',
    group: 'Prove',
    description: 'verify a publication against its proof file, offline',
    example: 'dash verify year.json year.json.tlog-proof --policy policy',
    argument: new Argument('<files...>', 'the publication, then its proof file'),
    options: [option('--policy <file>', 'policy file: the keys whose signatures to require')],
    load: async () => (await import('./commands/verify.ts')).verifyProofCommand,
  },
  {
    name: 'evaluate-models',
    group: 'Models',
    description: 'choose the free model to recommend, within the quota of a free account',
    example: 'dash evaluate-models --dry-run',
    options: [
      choice('--mode <mode>', 'requests the run may send', [
        'fullEval',
        'forceEval',
        'healthOnly',
        'metadataOnly',
      ]).default('fullEval'),
      toggle('--dry-run', 'plan and rank; send no chat request and write nothing'),
    ],
    job: ({ dryRun }) => (dryRun ? null : 'evaluate-models'),
    load: async () => (await import('./commands/evaluate-models.ts')).evaluateModelsCommand,
  },
  {
    name: 'model',
    group: 'Models',
    description: 'print the free model to use now',
    example: 'eval "$(dash model --env)"',
    options: [
      toggle('--id', 'print only its id'),
      toggle('--env', 'print shell commands that export OPENAI_BASE_URL and OPENAI_MODEL'),
      option('--needs <names>', 'choose the best model that supports all of these: tools,structured,…'),
      option('--url <base>', 'read the list of another host instead of the local store'),
    ],
    load: async () => (await import('./commands/model.ts')).modelCommand,
  },
  {
    name: 'chat',
    group: 'Chat',
    description: 'ask the chat agent; without a question, chat in the terminal',
    example: `dash chat --demo 'What is trending today?'`,
    argument: new Argument(
      '[question...]',
      'one question, also accepted from a pipe; the answer is plain text unless the output is a terminal',
    ),
    options: [
      option('--url <base>', 'server to use (default: DASH_BASE_URL, else HOST and PORT)'),
      option('--item <key>', 'chat about one item, given by its save key'),
      choice('--sort <sort>', 'initial ranking of a chat about the whole site', SORTS),
      toggle('--demo', 'start a private server with the bundled sample and chat with it'),
      option('--no-history', 'do not save questions for the next run'),
    ],
    load: async () => (await import('./commands/chat/chat.ts')).chatCommand,
  },
  {
    name: 'chat-key',
    group: 'Chat',
    description: 'manage the keys with which other servers use the chat at /v1',
    example: 'dash chat-key list',
  },
  {
    name: 'chat-key new',
    description: 'create a key and print it, once',
    example: 'dash chat-key new --name open-webui --per-day 500 --per-minute 20',
    options: [
      option('--name <name>', 'name of the key, for list and revoke').makeOptionMandatory(),
      option('--per-day <n>', 'answers of the key in one UTC day').makeOptionMandatory(),
      option('--per-minute <n>', 'answers of the key in 60 seconds').makeOptionMandatory(),
    ],
    load: async () => (await import('./commands/chat/chat-key.ts')).newChatKeyCommand,
  },
  {
    name: 'chat-key list',
    description: 'list all keys with their quotas and their use today',
    example: 'dash chat-key list --json',
    load: async () => (await import('./commands/chat/chat-key.ts')).listChatKeysCommand,
  },
  {
    name: 'chat-key revoke',
    description: 'end a key: no server admits another request with it',
    example: 'dash chat-key revoke open-webui',
    argument: new Argument('<name>', 'name of the key'),
    load: async () => (await import('./commands/chat/chat-key.ts')).revokeChatKeyCommand,
  },
  {
    name: 'mcp',
    group: 'Chat',
    description: 'offer the read-only tools of the chat agent to an MCP client on standard input and output',
    example: 'dash mcp --demo',
    options: [demo()],
    load: async () => (await import('./commands/mcp.ts')).mcpCommand,
  },
  {
    name: 'config',
    group: 'Operate',
    description: 'show every setting, its value and its origin; secrets stay hidden',
    example: 'dash config PORT DASH_DATA_DIR',
    argument: new Argument('[names...]', 'settings to show (default: all)'),
    loadBare: async () => (await import('./commands/config.ts')).configCommand,
  },
  {
    name: 'copy-archive',
    group: 'Operate',
    description: 'copy the archive to other stores and audit the copy; an interrupted copy resumes',
    example: 'dash copy-archive --to /srv/dash-copy',
    options: [
      option(
        '--to <target...>',
        'a data folder, or a database URL and a store URL, or an env file with both',
      ).makeOptionMandatory(),
    ],
    job: () => 'copy-archive',
    load: async () => (await import('./commands/archive.ts')).copyArchiveCommand,
  },
]
