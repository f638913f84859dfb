import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { LIVE_SOURCES } from '../../../domain/feed/live-source.ts'
import { REQUIRED_TOKENS } from '../../settings/config.ts'
import { shellWord } from '../../terminal.ts'

/** Paths and user of one installation; all paths are absolute. */
export interface Installation {
  node: string
  program: string
  /** Working folder of the program. */
  folder: string
  dotenv: string
  /** Folders that are written: the data folder, and stores outside of it. */
  written: readonly string[]
  /** Folder of the log key's record, which only the publisher writes; null: none outside of these folders. */
  recordFolder: string | null
  /** Folder of the package, with its documents. */
  root: string
  user: string
  /** Time for open responses to finish, in seconds. */
  drainSeconds: number
}

interface Job {
  /** Name without the prefix of its unit, `dash-<name>`. */
  name: string
  meaning: string
  args: readonly string[]
  /** Times of a UTC day, `HH:MM`. */
  times: readonly string[]
  /** Only on this day of the week; absent: daily. */
  weekday?: 'Sun'
  /** True if the job signs checkpoints. */
  signs?: boolean
}

/** A source without its required token would make every run fail. */
const SOURCES_WITHOUT_TOKEN = LIVE_SOURCES.filter((name) => REQUIRED_TOKENS[name] === undefined)

/** Every even hour, at minute 5: trending scores halve every six hours, and source lists change within hours. */
const EVERY_TWO_HOURS = Array.from({ length: 12 }, (_, index) => `${String(2 * index).padStart(2, '0')}:05`)

/** Scheduled jobs of an installation (docs/operations.md). A day has three attempts; each time uses at most one. */
export const JOBS: readonly Job[] = [
  {
    name: 'publish-year',
    meaning: 'publish the Year ranking of the last completed UTC day',
    args: ['publish-year', '--once', '--quiet'],
    times: ['00:10', '00:40', '01:10'],
    signs: true,
  },
  {
    name: 'evaluate-models',
    meaning: 'choose the free model to recommend',
    args: ['evaluate-models', '--quiet'],
    times: ['03:17'],
  },
  {
    name: 'verify-archive',
    meaning: 'audit the archive',
    args: ['verify-archive', '--quiet'],
    times: ['04:30'],
    weekday: 'Sun',
  },
  {
    name: 'collect',
    meaning: "collect today's items from the live sources, all day and before the day ends",
    args: ['collect', '--quiet', '--source', ...SOURCES_WITHOUT_TOKEN],
    times: [...EVERY_TWO_HOURS, '23:50'],
  },
]

/** Up to this many hours of the same minute get separate lines; more of them share one. */
const SEPARATE_HOURS_MAX = 2

function scheduleLines({ times }: Job): { hours: string[]; minute: string }[] {
  const lines: { hours: string[]; minute: string }[] = []
  for (const time of times) {
    const [hour = '', minute = ''] = time.split(':')
    const sharesLine = times.filter((other) => other.endsWith(`:${minute}`)).length > SEPARATE_HOURS_MAX
    const line = sharesLine ? lines.find((each) => each.minute === minute) : undefined
    if (line) line.hours.push(hour)
    else lines.push({ hours: [hour], minute })
  }
  return lines
}

export interface Unit {
  name: string
  text: string
}

/**
 * Returns the systemd units of an installation: the server, and each job with its timer. systemd passes the env
 * file as a credential, so that root may own it and other users cannot read it (docs/deployment.md).
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

/** Seconds after the drain time until systemd kills a server that has not ended. */
const STOP_MARGIN_SECONDS = 20

function serverUnit(installation: Installation): string {
  const { written, drainSeconds } = installation
  const lines = `Restart=on-failure
RestartSec=5
# Errors that only a person can fix: the command line, the configuration.
RestartPreventExitStatus=64 78
TimeoutStopSec=${drainSeconds + STOP_MARGIN_SECONDS}`
  const meaning = 'API, page and documentation'
  const service: Service = { type: 'exec', args: ['serve'], lines, folders: written }
  return `${serviceUnit(installation, meaning, service)}
[Install]
WantedBy=multi-user.target
`
}

function jobUnit(installation: Installation, { meaning, args, signs = false }: Job): string {
  const { written, recordFolder } = installation
  const folders = signs && recordFolder !== null ? [...written, recordFolder] : written
  const lines = `# 75: another run is active.
SuccessExitStatus=75
Nice=10`
  return serviceUnit(installation, meaning, { type: 'oneshot', args, lines, folders })
}

function timerUnit(job: Job): string {
  const days = job.weekday === undefined ? '*-*-*' : `${job.weekday} *-*-*`
  const times = scheduleLines(job).map(
    ({ hours, minute }) => `OnCalendar=${days} ${hours.join(',')}:${minute}:00 UTC`,
  )
  return `[Unit]
Description=dash: ${job.meaning}
${AFTER_TIME_SYNC}
[Timer]
${times.join('\n')}
AccuracySec=1s
# Runs missed while the machine was off start when it is on again.
Persistent=true

[Install]
WantedBy=timers.target
`
}

/** A machine that starts with a wrong clock would run every missed job at once, with a wrong date. */
const AFTER_TIME_SYNC = 'Wants=time-sync.target\nAfter=time-sync.target\n'

const HOMES = ['/home', '/root', '/run/user']

/** What distinguishes one service from the others. */
interface Service {
  /** A `oneshot` is a job. */
  type: 'exec' | 'oneshot'
  /** Arguments of the program. */
  args: readonly string[]
  /** Lines of this service only. */
  lines: string
  /** Folders that it writes. */
  folders: readonly string[]
}

function serviceUnit(
  installation: Installation,
  meaning: string,
  { type, args, lines, folders }: Service,
): string {
  const { node, program, folder, dotenv, user, root } = installation
  const command = [node, program, ...args, '--dotenv'].map((each) => unitWord(each).replaceAll('$', '$$$$'))
  const mounts = folders.map((path) => `RequiresMountsFor=${unitWord(path)}\n`)
  const waits = `# Waits until the clock is set, if a service waits for that: with systemd-timesyncd
# systemd-time-wait-sync.service, with chrony chrony-wait.service. Enable it.
${AFTER_TIME_SYNC}`
  return `[Unit]
Description=dash: ${meaning}
Documentation=${specifiers(pathToFileURL(`${root}/docs/deployment.md`).href)}
Wants=network-online.target
After=network-online.target
${type === 'oneshot' ? waits : ''}${mounts.join('')}
[Service]
Type=${type}
User=${user}
WorkingDirectory=${specifiers(folder)}
LoadCredential=env:${specifiers(dotenv)}
# To keep a secret in a separate file instead of the env file, here the key of the chat's provider:
#LoadCredential=openai-api-key:/etc/dash/openai-api-key
#Environment=OPENAI_API_KEY_FILE=%d/openai-api-key
ExecStart=${command.join(' ')} \${CREDENTIALS_DIRECTORY}/env
${lines}
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=${isBelow(installation, HOMES) ? 'read-only' : 'yes'}
${folders.map((path) => `ReadWritePaths=${unitWord(path)}\n`).join('')}PrivateTmp=${isBelow(installation, ['/tmp', '/var/tmp']) ? 'no' : 'yes'}
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
SystemCallErrorNumber=EPERM
`
}

/** Returns true if a path of the installation is below one of these folders, which the unit must then not hide. */
function isBelow(
  { node, program, folder, root, written, recordFolder }: Installation,
  folders: readonly string[],
): boolean {
  return [node, program, folder, root, ...written, recordFolder ?? root].some((path) =>
    folders.some((each) => path === each || path.startsWith(`${each}/`)),
  )
}

/** Escapes a value that extends to the end of its line, where only specifiers need it. */
function specifiers(text: string): string {
  return text.replaceAll('%', '%%')
}

/** Quotes an element of a list if necessary. */
function unitWord(text: string): string {
  return /^[\w./:@+=,-]+$/.test(text)
    ? text
    : `"${specifiers(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/**
 * Returns the crontab of an installation. Times are UTC, but cron uses the time zone of its host: where that is not
 * UTC, each line runs at every possible quarter of an hour and checks the clock.
 *
 * @param hostIsUtc true if the host's time zone is UTC all year
 */
export function crontab(installation: Installation, hostIsUtc: boolean): string {
  const { node, program, folder, dotenv, user } = installation
  const lines = JOBS.flatMap((job) => {
    const command = [node, program, ...job.args, '--dotenv', dotenv].map(cronWord).join(' ')
    const starts = hostIsUtc ? plainStarts(job) : [guardedStart(job)]
    return [`# ${job.meaning}`, ...starts.map((start) => `${start}cd ${cronWord(folder)} && ${command}`)]
  })
  return `# dash, for the crontab of ${user} (crontab -e); ${user} must be able to read the env file\n${lines.join('\n')}\n`
}

const WEEKDAYS = { Sun: 0 }

function plainStarts(job: Job): string[] {
  const weekday = job.weekday === undefined ? '*' : WEEKDAYS[job.weekday]
  return scheduleLines(job).map(
    ({ hours, minute }) => `${Number(minute)} ${hours.map(Number).join(',')} * * ${weekday} `,
  )
}

/**
 * Returns the minutes of a job with a check of the UTC time. Time zones differ from UTC by whole quarters of an
 * hour, so that a UTC time falls on one of four minutes everywhere.
 */
function guardedStart({ times, weekday }: Job): string {
  const minutes = new Set(
    times.flatMap((time) => [0, 15, 30, 45].map((shift) => (Number(time.slice(3)) + shift) % 60)),
  )
  const format = weekday === undefined ? '\\%H:\\%M' : '\\%w-\\%H:\\%M'
  const wanted = times.map((time) => (weekday === undefined ? time : `${WEEKDAYS[weekday]}-${time}`))
  const sorted = [...minutes].sort((a, b) => a - b)
  return `${sorted.join(',')} * * * * case "$(date -u +${format})" in ${wanted.join('|')}) ;; *) exit 0 ;; esac; `
}

/** Quotes a word for a crontab, where a bare percent sign ends the command. */
function cronWord(text: string): string {
  return shellWord(text).replaceAll('%', '\\%')
}

/** Settings that the image sets itself: its volume, and the address that the compose file publishes. */
const SETTINGS_OF_IMAGE = 'DASH_DATA_DIR|HOST|PORT'

/**
 * Returns the commands that run the package's compose file with the env file of an installation
 * (docs/deployment.md).
 *
 * @param baseUrl public address of the server; null: not known yet
 */
export function containerCommands({ root, dotenv }: Installation, baseUrl: string | null): string {
  const compose = join(root, 'compose.yaml')
  if (!existsSync(compose))
    return `# Containers need the source of dash: ${compose} does not exist; clone the project (docs/deployment.md)\n`
  const domain = baseUrl === null ? 'dash.example.org' : new URL(baseUrl).hostname
  const append = `echo ${shellWord(`DASH_DOMAIN=${domain}`)} >> .env`
  const env = join(root, '.env')
  const settings =
    dotenv === env
      ? `sed -i -E '/^(${SETTINGS_OF_IMAGE})=/d' .env && ${append}`
      : `(umask 077 && set -C && sed -E '/^(${SETTINGS_OF_IMAGE})=/d' ${shellWord(dotenv)} > .env && ${append})`
  return `# dash in containers: the server, the timer of its jobs, and Caddy with TLS (${join(root, 'docs/deployment.md')})
cd ${shellWord(root)}
# The image sets its own data folder, host and port. DASH_DOMAIN is the public host name.
${settings}
${baseUrl === null ? `# In ${env}, set DASH_DOMAIN to the public host name and DASH_BASE_URL to https:// and that name\n` : ''}docker compose up -d --build
docker compose run --rm server collect
`
}
