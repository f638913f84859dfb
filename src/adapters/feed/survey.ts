import type { FeedFacts } from '../../domain/operations/survey.ts'
import type { Instant } from '../../domain/time.ts'
import { windowProblem, withoutProvenance } from '../../domain/year/window-problem.ts'
import { lastCompleteDay, windowEnding } from '../../domain/year/window.ts'
import type { Reader } from '../libsql/store-client.ts'
import { latestDay, readEvents, verifiedTitles } from './window.ts'

/** What an operator asks of the feed. */
export async function feedFacts(reader: Reader, now: Instant): Promise<FeedFacts> {
  const { rows } = await reader.execute('SELECT max(generated_at) FROM snapshots')
  const newest = rows[0]?.[0]
  return {
    snapshotAt: typeof newest === 'number' ? newest : null,
    publicationProblem: await publicationProblem(reader, now),
  }
}

/** As `publish-year` finds it. That nothing was imported yet is no problem of the rows. */
async function publicationProblem(reader: Reader, now: Instant): Promise<string | null> {
  const window = windowEnding(lastCompleteDay(now))
  const events = await readEvents(reader, window)
  const titles = await verifiedTitles(reader, withoutProvenance(events))
  const problem = windowProblem({ window, events, observed: [] }, titles, { allowEmpty: true, now })
  if (problem === null) return null
  const days = problem.rows.map((event) => latestDay(reader, event, window.asOfDay))
  return problem.message(await Promise.all(days))
}
