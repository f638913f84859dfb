import { expect, test } from 'vitest'
import { sha256Hex } from '../../src/domain/digest.ts'
import type { Day } from '../../src/domain/time.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { audit } from '../support/sample-archive.ts'
import { LONG, tally, tell, inLanes, preparedFolder } from '../support/attack.ts'
import { dash, serve } from '../support/dash.ts'
import { logSettings } from '../support/signed-log.ts'
import { reopenWorkspace } from '../support/workspace.ts'

const SLOW = { timeout: LONG ? 3_600_000 : 600_000 }

/** How many publishers are started, and how many of them work at the same time. */
const [PUBLISHERS, AT_ONCE] = LONG ? [200, 40] : [20, 20]

test(`${PUBLISHERS} publishers of one day have one winner`, SLOW, async () => {
  const { folder, day } = await preparedFolder()
  const publishers = Array.from({ length: PUBLISHERS }, (_, index) => index)
  const runs = await inLanes(publishers, AT_ONCE, () =>
    dash(['publish-year', '--once', '--json', '--data-dir', folder], { env: logSettings(folder) }),
  )
  const outcomes = runs.map(({ code, stdout }) =>
    code !== 0 ? `exit ${code}` : (JSON.parse(stdout) as PublishReport).outcome,
  )
  tell(`${PUBLISHERS} publishers of one day, ${AT_ONCE} at a time`, { outcomes: tally(outcomes) })
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

/** What a server answered: the as-of day of a proved body, or null for "none yet". */
type Answer = { day: Day | null; status: number }

async function askYear(url: string): Promise<Answer> {
  const response = await fetch(`${url}/api/feed/history?sort=year`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  if (response.status !== 200) return { day: null, status: response.status }
  // Old headers with a new body, or a body of both, has another digest.
  expect(response.headers.get('etag')).toBe(`"${sha256Hex(bytes)}"`)
  const { publicationId } = JSON.parse(Buffer.from(bytes).toString()) as { publicationId: string }
  return { day: publicationId.replace('top-year-v3-', ''), status: 200 }
}

const POLLERS = 4

/** The answers of one publish, from before it begins until each poller has seen it done and asked some more. */
async function pollDuringPublish(earlierDays: number): Promise<{ answers: Answer[]; breaches: string[] }> {
  const { folder, day, earlier } = await preparedFolder(earlierDays)
  const { url, child } = await serve(['--data-dir', folder])
  const answers: Answer[] = []
  const breaches: string[] = []
  const old = earlier.at(-1) ?? null
  let published = false
  /** How many answers of the new publication have been received, by anybody. */
  let news = 0
  const poll = async (): Promise<void> => {
    for (let afterwards = 0; afterwards < 5; afterwards += published ? 1 : 0) {
      const [newsBefore, publishedBefore] = [news, published]
      const answer = await askYear(url)
      answers.push(answer)
      if (answer.day === day) news += 1
      else if (newsBefore > 0) breaches.push(`${answer.status} ${answer.day} after the new publication`)
      else if (publishedBefore) breaches.push(`${answer.status} ${answer.day} after the acknowledgement`)
      else if (answer.day !== old) breaches.push(`${answer.status} ${answer.day} instead of ${old}`)
      else if (old === null && answer.status !== 404) breaches.push(`${answer.status} before any publication`)
    }
  }
  const pollers = Array.from({ length: POLLERS }, poll)
  const run = await dash(['publish-year', '--once', '--data-dir', folder])
  expect(run.code, run.stderr).toBe(0)
  published = true
  await Promise.all(pollers)
  child.kill('SIGKILL')
  return { answers, breaches }
}

test('a server polled while publications are made gives the old answer, then the new one', SLOW, async () => {
  const rounds = LONG ? 30 : 4
  const answers: Answer[] = []
  const breaches: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    const seen = await pollDuringPublish(round % 2)
    answers.push(...seen.answers)
    breaches.push(...seen.breaches)
  }
  tell(`${rounds} publishes, each under a server polled by ${POLLERS}`, {
    answers: answers.length,
    'by status': tally(answers.map(({ status }) => status)),
    breaches: breaches.length,
  })
  expect(breaches).toEqual([])
  expect(answers.filter(({ status }) => status === 404).length).toBeGreaterThan(0)
})
