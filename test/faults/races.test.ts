import { expect, test } from 'vitest'
import { sha256Hex } from '../../src/domain/digest.ts'
import type { Day } from '../../src/domain/time.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { audit } from '../support/sample-archive.ts'
import { LONG, tally, printFacts, mapConcurrently, preparedFolder } from '../support/attack.ts'
import { dash, serve } from '../support/dash.ts'
import { logSettings } from '../support/signed-log.ts'
import { reopenWorkspace } from '../support/workspace.ts'

const SLOW = { timeout: LONG ? 3_600_000 : 600_000 }

/** Number of publishers, and how many of them run at the same time. */
const [PUBLISHERS, AT_ONCE] = LONG ? [200, 40] : [20, 20]

test(`${PUBLISHERS} publishers of one day have one winner`, SLOW, async () => {
  const { folder, day } = await preparedFolder()
  const publishers = Array.from({ length: PUBLISHERS }, (_, index) => index)
  const runs = await mapConcurrently(publishers, AT_ONCE, () =>
    dash(['publish-year', '--once', '--json', '--data-dir', folder], { env: logSettings(folder) }),
  )
  const outcomes = runs.map(({ code, stdout }) =>
    code !== 0 ? `exit ${code}` : (JSON.parse(stdout) as PublishReport).outcome,
  )
  printFacts(`${PUBLISHERS} publishers of one day, ${AT_ONCE} at a time`, { outcomes: tally(outcomes) })
  expect(outcomes.filter((outcome) => outcome === 'published')).toHaveLength(1)
  for (const outcome of outcomes) expect(['published', 'already-published', 'exit 75']).toContain(outcome)
  expect(await audit(folder, day)).toMatchObject({
    sound: true,
    publications: [day],
    gaps: [],
    attempts: 1,
    signed: 1,
    orphans: 0,
    unfinished: 0,
  })
  const workspace = reopenWorkspace(folder)
  expect((await workspace.ledger.read()).rows).toHaveLength(1)
  expect(await workspace.objects.newestHead()).toMatchObject({ seq: 1 })
})

/** Result of a request: the as-of day of a verified body, or null without a publication. */
type YearResult = { day: Day | null; status: number }

async function fetchYear(url: string): Promise<YearResult> {
  const response = await fetch(`${url}/api/feed/history?sort=year`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  if (response.status !== 200) return { day: null, status: response.status }
  // Old headers with a new body, or a mixed body, would have another digest.
  expect(response.headers.get('etag')).toBe(`"${sha256Hex(bytes)}"`)
  const { publicationId } = JSON.parse(Buffer.from(bytes).toString()) as { publicationId: string }
  return { day: publicationId.replace('top-year-v3-', ''), status: 200 }
}

const POLLERS = 4

/**
 * Returns the responses during one publish, from before it begins until each poller has seen its end and sent some
 * more requests.
 */
async function pollDuringPublish(
  earlierDays: number,
): Promise<{ results: YearResult[]; breaches: string[] }> {
  const { folder, day, earlier } = await preparedFolder(earlierDays)
  const { url, child } = await serve(['--data-dir', folder])
  const results: YearResult[] = []
  const breaches: string[] = []
  const old = earlier.at(-1) ?? null
  let published = false
  /** Number of responses with the new publication, received by any poller. */
  let newResponses = 0
  const poll = async (): Promise<void> => {
    for (let afterwards = 0; afterwards < 5; afterwards += published ? 1 : 0) {
      const [newBefore, publishedBefore] = [newResponses, published]
      const result = await fetchYear(url)
      results.push(result)
      if (result.day === day) newResponses += 1
      else if (newBefore > 0) breaches.push(`${result.status} ${result.day} after the new publication`)
      else if (publishedBefore) breaches.push(`${result.status} ${result.day} after the acknowledgement`)
      else if (result.day !== old) breaches.push(`${result.status} ${result.day} instead of ${old}`)
      else if (old === null && result.status !== 404) breaches.push(`${result.status} before any publication`)
    }
  }
  const pollers = Array.from({ length: POLLERS }, poll)
  const run = await dash(['publish-year', '--once', '--data-dir', folder])
  expect(run.code, run.stderr).toBe(0)
  published = true
  await Promise.all(pollers)
  child.kill('SIGKILL')
  return { results, breaches }
}

test('a server polled during publications serves the old publication, then the new one', SLOW, async () => {
  const rounds = LONG ? 30 : 4
  const results: YearResult[] = []
  const breaches: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    const seen = await pollDuringPublish(round % 2)
    results.push(...seen.results)
    breaches.push(...seen.breaches)
  }
  printFacts(`${rounds} publishes, each under a server polled by ${POLLERS}`, {
    answers: results.length,
    'by status': tally(results.map(({ status }) => status)),
    breaches: breaches.length,
  })
  expect(breaches).toEqual([])
  expect(results.filter(({ status }) => status === 404).length).toBeGreaterThan(0)
})
