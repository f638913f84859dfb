import type { Signal } from '../../src/domain/feed/signal.ts'
import type { Clock } from '../../src/domain/ports.ts'
import { addDays, startOfDay } from '../../src/domain/time.ts'
import { AS_OF, openWorkspace, publishDays } from './workspace.ts'
import type { Workspace } from './workspace.ts'

/** As-of day of the second publication of {@link changedYear}. */
export const LATER = addDays(AS_OF, 2)

/** A story by its number, observed on a day. */
export function story(number: number, day: string, points: number, changes: Partial<Signal> = {}): Signal {
  return {
    source: 'hn',
    sourceId: String(number),
    day,
    title: `Story ${number} <b>&</b>`,
    url: `https://example.org/${number}?a=1&b=2`,
    points,
    comments: 1,
    publishedAt: startOfDay(addDays(AS_OF, -3)),
    titleProvenance: 'hn:test',
    ...changes,
  }
}

/** Two publications with a gap between them: story 15 rose to the top, 16 entered, and 14 is older than a year. */
export async function changedYear(fileClock?: Clock): Promise<Workspace> {
  const workspace = await openWorkspace(fileClock)
  const old = { publishedAt: startOfDay(addDays(AS_OF, -364)) }
  const stories = Array.from({ length: 15 }, (_, index) =>
    story(index + 1, AS_OF, 1_000 - index, index === 13 ? old : {}),
  )
  await workspace.feed.importSignals(stories)
  await publishDays(workspace, [AS_OF])
  await workspace.feed.importSignals([story(15, LATER, 2_000), story(16, LATER, 5)])
  await publishDays(workspace, [LATER])
  return workspace
}
