import type { Signal } from '../../../src/domain/feed/signal.ts'
import { dayOf } from '../../../src/domain/time.ts'
import { rankPeriods } from '../../../src/jobs/snapshot.ts'
import { HOUR_MS, signal } from '../../support/signals.ts'
import { openWorkspace, publishDays } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

/** A title that would clear the screen, reverse the line, and end markup. */
const HOSTILE_TITLE = 'Evil\u001b[2J\u009b2J\u202e <img src=x> [a](http://b.test) "title"'

/**
 * Stores with publications of 2026-03-01 and 2026-03-04, and a live feed. Of 30 stories with falling points, story 25 rises
 * to rank 1.
 */
export async function newsWorkspace(): Promise<Workspace> {
  const workspace = await openWorkspace()
  const published = Date.UTC(2026, 1, 20)
  const story = (number: number, changes: Partial<Signal> = {}): Signal =>
    signal({
      sourceId: String(number),
      title: `Story ${number}`,
      url: `https://example.org/${number}`,
      points: 400 - 10 * number,
      publishedAt: published,
      ...changes,
    })
  const stories = Array.from({ length: 30 }, (_, index) => story(index + 1))
  const now = Date.now()
  const live = { day: dayOf(now), publishedAt: now - HOUR_MS }
  await workspace.feed.importSignals([
    ...stories,
    story(25, { day: '2026-03-04', points: 1_000 }),
    story(50, { ...live, points: 60, title: HOSTILE_TITLE, url: 'javascript:alert(1)' }),
    story(51, { ...live, points: 50, title: 'Live story' }),
    story(52, { ...live, points: 40, source: 'lobsters', titleProvenance: 'lobsters:test' }),
  ])
  await publishDays(workspace, ['2026-03-01', '2026-03-04'])
  const signalOfRun = new AbortController().signal
  await rankPeriods({ feed: workspace.feed, clock: () => now }, { signal: signalOfRun, discardLater: false })
  return workspace
}
