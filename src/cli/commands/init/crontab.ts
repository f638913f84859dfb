import { JOBS, scheduleLines } from './schedule.ts'
import type { Installation, Job } from './schedule.ts'

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
