import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
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

const opsFile = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../../ops/${name}`, import.meta.url)), 'utf8')

/** Days of a job, as systemd and cron write them. */
const DAILY = { systemd: '*-*-*', cron: '*' }
const SUNDAYS = { systemd: 'Sun *-*-*', cron: '0' }

/**
 * Scheduled jobs of an installation, which the timer of the containers starts at the same times. A day has three
 * attempts to publish; each time uses at most one.
 */
export const JOBS = [...opsFile('container/schedule').matchAll(/^# (.+)\n([*7]) +(\S+) +((\S+).*)$/gm)].map(
  ([, meaning = '', days = '', times = '', args = '', name = '']) => ({
    name,
    meaning,
    args: args.split(' '),
    /** Times of a UTC day, `HH:MM`. */
    times: times.split(','),
    days: days === '*' ? DAILY : SUNDAYS,
  }),
)

type Job = (typeof JOBS)[number]

/** The times of a job as lines of a timer or a crontab: the hours of each minute. */
function scheduleLines({ times }: Job): { hours: string[]; minute: string }[] {
  const minutes = [...new Set(times.map((time) => time.slice(3)))]
  return minutes.map((minute) => ({
    minute,
    hours: times.filter((time) => time.endsWith(minute)).map((time) => time.slice(0, 2)),
  }))
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
  const stop = `${drainSeconds + STOP_MARGIN_SECONDS}`
  return filled('server.service', { ...serviceValues(installation, ['serve'], written), stop })
}

function jobUnit(installation: Installation, { name, meaning, args }: Job): string {
  const { written, recordFolder } = installation
  // Only the publisher signs checkpoints.
  const folders = name === 'publish-year' && recordFolder !== null ? [...written, recordFolder] : written
  return filled('job.service', { ...serviceValues(installation, args, folders), meaning })
}

function timerUnit(job: Job): string {
  const times = scheduleLines(job).map(
    ({ hours, minute }) => `OnCalendar=${job.days.systemd} ${hours.join(',')}:${minute}:00 UTC`,
  )
  return filled('job.timer', { meaning: job.meaning, times })
}

type Values = Readonly<Record<string, string | readonly string[]>>

/** Fills the `@placeholders@` of a template, which may also name templates; a list fills one line for each value. */
function filled(template: string, values: Values): string {
  return opsFile(`systemd/${template}.in`).replaceAll(/@([a-z]+)@(\n?)/g, (_, name: string, end: string) =>
    [values[name] ?? filled(name, values).trimEnd()]
      .flat()
      .map((value) => value + end)
      .join(''),
  )
}

const HOMES = ['/home', '/root', '/run/user']

/** @param folders that the service writes */
function serviceValues(
  installation: Installation,
  args: readonly string[],
  folders: readonly string[],
): Values {
  const { node, program, folder, dotenv, user, root } = installation
  return {
    documentation: specifiers(pathToFileURL(`${root}/docs/deployment.md`).href),
    mounts: folders.map((path) => `RequiresMountsFor=${unitWord(path)}`),
    user,
    folder: specifiers(folder),
    dotenv: specifiers(dotenv),
    command: [node, program, ...args].map((each) => unitWord(each).replaceAll('$', '$$$$')).join(' '),
    home: isBelow(installation, HOMES) ? 'read-only' : 'yes',
    written: folders.map((path) => `ReadWritePaths=${unitWord(path)}`),
    tmp: isBelow(installation, ['/tmp', '/var/tmp']) ? 'no' : 'yes',
  }
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

function plainStarts(job: Job): string[] {
  return scheduleLines(job).map(
    ({ hours, minute }) => `${Number(minute)} ${hours.map(Number).join(',')} * * ${job.days.cron} `,
  )
}

/**
 * Returns the minutes of a job with a check of the UTC time. Time zones differ from UTC by whole quarters of an
 * hour, so that a UTC time falls on one of four minutes everywhere.
 */
function guardedStart({ times, days }: Job): string {
  const minutes = new Set(
    times.flatMap((time) => [0, 15, 30, 45].map((shift) => (Number(time.slice(3)) + shift) % 60)),
  )
  const isDaily = days === DAILY
  const format = isDaily ? '\\%H:\\%M' : '\\%w-\\%H:\\%M'
  const wanted = times.map((time) => (isDaily ? time : `${days.cron}-${time}`))
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
