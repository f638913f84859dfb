import { addDays, parseDay } from '../../domain/time.ts'
import type { Day } from '../../domain/time.ts'

/** English names and Russian stems, in the order of the months. */
const MONTHS =
  'jan(?:uary)?|январ\\p{L}*,feb(?:ruary)?|феврал\\p{L}*,mar(?:ch)?|март\\p{L}*,apr(?:il)?|апрел\\p{L}*,may|ма[йяе],june?|июн\\p{L}*,july?|июл\\p{L}*,aug(?:ust)?|август\\p{L}*,sept?(?:ember)?|сентябр\\p{L}*,oct(?:ober)?|октябр\\p{L}*,nov(?:ember)?|ноябр\\p{L}*,dec(?:ember)?|декабр\\p{L}*'
    .split(',')
    .map((names) => `(?:${names})`)

const MONTH = `(?<month>${MONTHS.join('|')})(?!\\p{L})\\.?`
const DATE = `(?<!\\p{L}|\\d)(?<date>\\d{1,2})(?:st|nd|rd|th|-?го)?(?!\\d)`
const YEAR = `(?:,?\\s+(?<year>\\d{4}))?`

const NAMED_DAYS = [`${DATE}\\s+(?:of\\s+)?${MONTH}${YEAR}`, `(?<!\\p{L})${MONTH}\\s+${DATE}${YEAR}`].map(
  (pattern) => new RegExp(pattern, 'iu'),
)
const ISO_DAY = /(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)/

/** Days before today; the first group is their number. */
const RELATIVE: readonly (readonly [RegExp, number])[] = [
  [/the day before yesterday|позавчера/iu, 2],
  [/\byesterday\b|вчера/iu, 1],
  [/\b(\d{1,3}) days? ago\b|(?<!\d)(\d{1,3}) (?:день|дня|дней) назад/iu, 1],
  [/\ba week ago\b|неделю назад/iu, 7],
  [/\ba month ago\b|месяц назад/iu, 30],
]

/**
 * Finds the day that a question names: `2026-11-03`, `3 November`, `November 3rd, 2026`, `yesterday`, `5 days ago`, and the
 * same in Russian. A date without a year is the latest one up to today.
 *
 * @returns the day, and the question without it; null when it names none, or one that does not exist
 */
export function dayOfQuestion(text: string, today: Day): { day: Day; rest: string } | null {
  const iso = ISO_DAY.exec(text)
  if (iso) return found(text, iso[0], parseDay(iso[0]))
  for (const pattern of NAMED_DAYS) {
    const match = pattern.exec(text)
    if (match?.groups) return found(text, match[0], namedDay(match.groups, today))
  }
  for (const [pattern, days] of RELATIVE) {
    const match = pattern.exec(text)
    if (match) return found(text, match[0], addDays(today, -days * Number(match[1] ?? match[2] ?? 1)))
  }
  return null
}

function found(text: string, words: string, day: Day | null): { day: Day; rest: string } | null {
  return day === null ? null : { day, rest: text.replace(words, ' ') }
}

function namedDay(
  { month = '', date = '', year }: Readonly<Record<string, string | undefined>>,
  today: Day,
): Day | null {
  const index = MONTHS.findIndex((names) => new RegExp(`^${names}$`, 'iu').test(month))
  const inYear = (each: number): Day | null =>
    parseDay(`${each}-${String(index + 1).padStart(2, '0')}-${date.padStart(2, '0')}`)
  if (year !== undefined) return inYear(Number(year))
  const current = Number(today.slice(0, 4))
  const day = inYear(current)
  return day !== null && day <= today ? day : inYear(current - 1)
}
