import { Refusal } from '../../../domain/refusal.ts'
import { DAY_MS, parseDay, parseInstant, startOfDay } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import type { CommandContext } from '../../context.ts'
import { EXIT } from '../../exit-codes.ts'
import { flagValue } from '../../settings/environment.ts'
import { fail } from '../../terminal.ts'
import { digestSince } from './digest-content.ts'
import { formatDigest } from './digest-formats.ts'
import type { DigestFormat } from './digest-formats.ts'
import { layoutOf } from './item-lines.ts'
import { openNews } from './reader.ts'

export interface DigestFlags {
  since?: string
  days?: string
  format: DigestFormat
  url?: string
}

const PERIOD_DEFAULT = '7d'

/**
 * `dash digest`: prints what changed in the Year during a period, and the top of the live feed.
 *
 * @returns 0, or 1 if nothing is published or ranked yet
 * @throws Refusal `usage` for an invalid flag; refusals of the stores and of the host
 */
export async function digestCommand(
  context: CommandContext,
  { since, days, format, url }: DigestFlags,
): Promise<number> {
  const { terminal } = context
  const now = Date.now()
  const begin = parseBegin(since, days, now)
  const news = await openNews(context, url)
  const digest = await digestSince(news, begin, now)
  if (digest.year.after === null && digest.live === null) {
    const reason = 'nothing is published or ranked yet; dash publish-year and dash snapshot do it'
    return fail(terminal, reason, EXIT.failed)
  }
  terminal.result(digest, formatDigest(digest, format, layoutOf(context)), true)
  return EXIT.done
}

/** Returns the begin of the period of `--since` or `--days`. @throws Refusal `usage` */
function parseBegin(since: string | undefined, days: string | undefined, now: Instant): Instant {
  if (since !== undefined && days !== undefined)
    throw new Refusal('usage', '--since and --days exclude each other; choose one')
  if (days !== undefined)
    return flagValue('--days', days, 'a whole number from 1', (text) => beginOf(`${text}d`, now))
  const what = 'a period such as 7d or 24h, a day, or an instant such as 2026-03-02T12:00:00Z, before now'
  return flagValue('--since', since ?? PERIOD_DEFAULT, what, (text) => beginOf(text, now))
}

const UNIT_MS = { d: DAY_MS, h: 3_600_000 }

function beginOf(text: string, now: Instant): Instant | null {
  const [, count, unit] = /^([1-9]\d{0,4})([dh])$/.exec(text) ?? []
  if (count !== undefined) return now - Number(count) * UNIT_MS[unit === 'h' ? 'h' : 'd']
  const day = parseDay(text)
  const begin = day === null ? parseInstant(text) : startOfDay(day)
  return begin !== null && begin < now ? begin : null
}
