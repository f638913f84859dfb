import { pathToFileURL } from 'node:url'
import { parseEnv } from 'node:util'
import type { LiveSourceName } from '../../../domain/feed/live-source.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { GROUPS } from '../../settings/rules.ts'
import { namedVariables } from '../../settings/variables.ts'
import type { NamedVariable } from '../../settings/variables.ts'

/** One file for systemd. */
export interface Unit {
  name: string
  text: string
}

/** Seconds beyond the drain until a server that does not end is killed. */
const STOP_MARGIN_SECONDS = 20

/**
 * The systemd units of an installation: the server, and each job with its timer. The env file is handed over as a
 * credential: the manager reads it, so that it may belong to root, and nobody else can (docs/deployment.md).
 */
export function systemdUnits(installation: Installation): Unit[] {
  return [
    { name: 'dash.service', text: serverUnit(installation) },
    ...JOBS.flatMap((job) => [
      { name: `dash-${job.name}.service`, text: jobUnit(installation, job) },
      { name: `dash-${job.name}.timer`, text: timerUnit(job) },
    ]),
  ]
}

function serverUnit(installation: Installation): string {
  return `[Unit]
Description=dash: the interfaces, the page and the documentation
${dependencies(installation)}

[Service]
Type=exec
${execution(installation, ['serve'])}
Restart=on-failure
RestartSec=5
# What only a person can mend: the command line, the configuration.
RestartPreventExitStatus=64 78
TimeoutStopSec=${installation.drainSeconds + STOP_MARGIN_SECONDS}
${hardening(installation, installation.written.map(word))}

[Install]
WantedBy=multi-user.target
`
}

function jobUnit(installation: Installation, { meaning, words }: Job): string {
  const { written, textfileDir } = installation
  // One that is missing costs the metrics and not the run.
  const writable = [...written.map(word), ...(textfileDir === null ? [] : [word(`-${textfileDir}`)])]
  return `[Unit]
Description=dash: ${meaning}
${dependencies(installation)}

[Service]
Type=oneshot
${execution(installation, words)}
# Another run is at work on it.
SuccessExitStatus=75
Nice=10
${hardening(installation, writable)}
`
}

function timerUnit(job: Job): string {
  const { meaning, weekday } = job
  const days = weekday === null ? '*-*-*' : `${weekday} *-*-*`
  return `[Unit]
Description=dash: ${meaning}

[Timer]
${scheduleLines(job)
  .map(({ hours, minute }) => `OnCalendar=${days} ${hours.join(',')}:${minute}:00 UTC`)
  .join('\n')}
AccuracySec=1s
# What was missed while the machine was off is made up for when it is on again.
Persistent=true

[Install]
WantedBy=timers.target
`
}

function dependencies({ root, written }: Installation): string {
  const mounts = written.map((folder) => `\nRequiresMountsFor=${word(folder)}`).join('')
  return `Documentation=${specifiers(pathToFileURL(`${root}/docs/deployment.md`).href)}
Wants=network-online.target
After=network-online.target${mounts}`
}

function execution({ node, program, folder, dotenv, user }: Installation, words: readonly string[]): string {
  const command = [node, program, ...words, '--dotenv'].map(commandWord).join(' ')
  return `User=${user}
WorkingDirectory=${specifiers(folder)}
LoadCredential=env:${specifiers(dotenv)}
# A secret in a file of its own instead of in the env file, here the key of the chat's provider:
#LoadCredential=openai-api-key:/etc/dash/openai-api-key
#Environment=OPENAI_API_KEY_FILE=%d/openai-api-key
ExecStart=${command} \${CREDENTIALS_DIRECTORY}/env`
}

/** @param writable words: the paths that are written, after a `-` where one may be missing */
function hardening(installation: Installation, writable: readonly string[]): string {
  return `UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=${isBelow(installation, HOMES) ? 'read-only' : 'yes'}
${writable.map((path) => `ReadWritePaths=${path}\n`).join('')}PrivateTmp=${isBelow(installation, ['/tmp', '/var/tmp']) ? 'no' : 'yes'}
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM`
}

const HOMES = ['/home', '/root', '/run/user']

/** True when anything of the installation lies below one of these folders, which would then be hidden from it. */
function isBelow(
  { node, program, folder, root, written, textfileDir }: Installation,
  folders: readonly string[],
): boolean {
  return [node, program, folder, root, ...written, textfileDir ?? root].some((path) =>
    folders.some((each) => path === each || path.startsWith(`${each}/`)),
  )
}

/** A value that runs to the end of its line; only specifiers have to be escaped. */
function specifiers(text: string): string {
  return text.replaceAll('%', '%%')
}

/** A word of a list. */
function word(text: string): string {
  return /^[\w./:@+=,-]+$/.test(text)
    ? text
    : `"${specifiers(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/** A word of a command line, where variables are replaced too. */
function commandWord(text: string): string {
  return word(text).replaceAll('$', '$$$$')
}

/**
 * The lines of a crontab for an installation. Times are UTC, while cron follows the zone of its host and only some crons
 * know another: elsewhere each line runs at every quarter of an hour in question and asks the clock.
 *
 * @param hostIsUtc true when the host's own time is UTC all year
 */
export function crontab(installation: Installation, hostIsUtc: boolean): string {
  const lines = JOBS.flatMap((job) => [
    `# ${job.meaning}`,
    ...(hostIsUtc ? plain(job) : [guarded(job)]).map((when) => `${when}${commandOf(installation, job)}`),
  ])
  return `# dash, for the crontab of ${installation.user}, who must be able to read the env file: crontab -e\n${lines.join('\n')}\n`
}

function plain(job: Job): string[] {
  const weekday = job.weekday === null ? '*' : WEEKDAYS[job.weekday]
  return scheduleLines(job).map(
    ({ hours, minute }) => `${Number(minute)} ${hours.map(Number).join(',')} * * ${weekday} `,
  )
}

const WEEKDAYS = { Sun: 0 }

/** Zones differ from UTC by whole quarters of an hour, so that a time of UTC is one of four minutes everywhere. */
function guarded({ times, weekday }: Job): string {
  const minutes = new Set(
    times.flatMap((time) => [0, 15, 30, 45].map((shift) => (Number(time.slice(3)) + shift) % 60)),
  )
  const format = weekday === null ? '\\%H:\\%M' : '\\%w-\\%H:\\%M'
  const wanted = times.map((time) => (weekday === null ? time : `${WEEKDAYS[weekday]}-${time}`))
  const sorted = [...minutes].sort((a, b) => a - b)
  return `${sorted.join(',')} * * * * case "$(date -u +${format})" in ${wanted.join('|')}) ;; *) exit 0 ;; esac; `
}

function commandOf({ node, program, folder, dotenv }: Installation, { words }: Job): string {
  const command = [node, program, ...words, '--dotenv', dotenv].map(cronWord).join(' ')
  return `cd ${cronWord(folder)} && ${command}`
}

/** cron takes a bare percent sign for the end of the command. */
function cronWord(text: string): string {
  return shellWord(text).replaceAll('%', '\\%')
}

/** A word of a command line for a shell. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** What runs by itself, and when. */
export interface Job {
  /** As its unit is called: `dash-<name>`. */
  name: string
  meaning: string
  /** The command line after the program. */
  words: readonly string[]
  /** Times of a UTC day, `HH:MM`. */
  times: readonly string[]
  /** Only on this day of the week; null: daily. */
  weekday: 'Sun' | null
}

/** What needs a token that is not there would make every run a failure (docs/collecting.md, "Tokens"). */
const SOURCES_WITHOUT_TOKEN: readonly LiveSourceName[] = [
  'hn',
  'lobsters',
  'lesswrong',
  'hype:github',
  'hype:huggingface',
]

/** The even hours, a few minutes in: trending halves every six hours, and lists move within hours. */
const EVERY_TWO_HOURS = Array.from({ length: 12 }, (_, index) => `${String(2 * index).padStart(2, '0')}:05`)

/** The jobs of one installation (docs/operations.md). A day has three attempts: each time spends at most one. */
export const JOBS: readonly Job[] = [
  {
    name: 'publish-year',
    meaning: 'the Year publication of the last complete UTC day',
    words: ['publish-year', '--once', '--quiet'],
    times: ['00:10', '00:40', '01:10'],
    weekday: null,
  },
  {
    name: 'evaluate-models',
    meaning: 'which free model to recommend',
    words: ['evaluate-models', '--quiet'],
    times: ['03:17'],
    weekday: null,
  },
  {
    name: 'verify-archive',
    meaning: 'the integrity audit of the archive',
    words: ['verify-archive', '--quiet'],
    times: ['04:30'],
    weekday: 'Sun',
  },
  {
    name: 'collect',
    meaning: "the items of the day from the live sources, all day and before the day's end",
    words: ['collect', '--quiet', '--source', ...SOURCES_WITHOUT_TOKEN],
    times: [...EVERY_TWO_HOURS, '23:50'],
    weekday: null,
  },
]

/** Hours that share a minute, from this many on, stand on one line. */
const HOURS_TOGETHER = 3

/** The times of a job as lines of a schedule, each of one minute. */
function scheduleLines({ times }: Job): { hours: string[]; minute: string }[] {
  const lines: { hours: string[]; minute: string }[] = []
  for (const time of times) {
    const [hour = '', minute = ''] = time.split(':')
    const together = times.filter((other) => other.endsWith(`:${minute}`)).length >= HOURS_TOGETHER
    const line = together ? lines.find((each) => each.minute === minute) : undefined
    if (line) line.hours.push(hour)
    else lines.push({ hours: [hour], minute })
  }
  return lines
}

/** Where everything of one installation is; absolute paths. */
export interface Installation {
  node: string
  program: string
  /** Folder the program runs in. */
  folder: string
  dotenv: string
  /** Folders that are written: data, and whatever store lies elsewhere. */
  written: readonly string[]
  /** Folder in which jobs leave their metrics; null: they leave none. */
  textfileDir: string | null
  /** Folder of the package, with its documents. */
  root: string
  user: string
  /** Time open answers have to finish, in seconds. */
  drainSeconds: number
}

/**
 * The text of an env file: every variable with what it does, those that were chosen set, all others commented out.
 *
 * @param chosen values by the names of their variables
 * @throws Refusal `usage` for a value no env file can hold
 */
export function envFile(chosen: Readonly<Record<string, string>>): string {
  const groups = Object.entries(GROUPS).map(([group, title]) => {
    const variables = namedVariables.filter((variable) => variable.group === group)
    return [`# --- ${title}`, ...variables.map((variable) => entry(variable, chosen[variable.name]))].join(
      '\n\n',
    )
  })
  const text = `${HEADER}\n${groups.join('\n\n')}\n`
  const read = parseEnv(text)
  const lost = Object.keys(chosen).find((name) => read[name] !== chosen[name])
  if (lost === undefined) return text
  throw new Refusal(
    'usage',
    `${lost} has a value that no env file can hold; leave quotes and line ends out of it`,
  )
}

const HEADER = `# Settings of dash, written by "dash init". Flags and the environment win over this file.
# "dash config" shows what counts, "dash doctor" checks it. Keep this file to yourself: it holds secrets.
# A secret may stand in a file instead: NAME_FILE=/path/to/it.
`

function entry({ name, meaning, standard, unset }: NamedVariable, value: string | undefined): string {
  const unquoted = (words: string): string => words.replaceAll('`', '')
  const otherwise = standard === null && unset !== undefined ? ` (not set: ${unquoted(unset)})` : ''
  const line = value === undefined ? `#${name}=${standard ?? ''}` : `${name}=${quoted(value)}`
  return `# ${unquoted(meaning)}${otherwise}\n${line}`
}

/** Env files know no escapes: a value is put between quotes it does not hold itself. */
function quoted(value: string): string {
  if (/^[\w.:/@%+=,?&~-]+$/.test(value)) return value
  const quote = ["'", '"', '`'].find((each) => !value.includes(each)) ?? "'"
  return `${quote}${value}${quote}`
}
