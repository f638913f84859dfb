import type { LiveSourceName } from '../../../domain/feed/live-source.ts'

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
export function scheduleLines({ times }: Job): { hours: string[]; minute: string }[] {
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
