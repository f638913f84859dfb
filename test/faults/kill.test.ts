import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { addDays, startOfDay } from '../../src/domain/time.ts'
import type { Day } from '../../src/domain/time.ts'
import { lastCompleteDay, windowEnding } from '../../src/domain/year/ledger.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { builtModule, startScript } from '../support/compiled-sources.ts'
import { audit } from '../support/sample-archive.ts'
import { LONG, tally, printFacts, durationOf, killAtRandom, seeded } from '../support/attack.ts'
import { dash, startDash, temporaryFolder } from '../support/dash.ts'
import { storiesOf } from '../support/signals.ts'
import { reopenWorkspace } from '../support/workspace.ts'

const SLOW = { timeout: LONG ? 3_600_000 : 600_000 }

test('an import killed at any moment is completed by a second import', async () => {
  const day = lastCompleteDay(Date.now())
  const folder = temporaryFolder()
  const file = join(folder, 'signals.ndjson')
  writeFileSync(file, storiesOf(day, 40_000))
  const data = join(folder, 'data')
  mkdirSync(data)
  const args = ['import', 'signals', file, '--data-dir', data, '--json']
  let stored = 0
  let killed = 0
  for (let round = 0; round < 4; round += 1) {
    const { child, end } = startDash(args)
    const size = (): number => statSync(join(data, 'feed.db'), { throwIfNoEntry: false })?.size ?? 0
    const before = size()
    // The file grows with each commit by less than this: each run is killed after it has stored at least one batch.
    while (size() < before + 1_500_000 && child.exitCode === null)
      await new Promise((resolve) => setImmediate(resolve))
    if ((await end('SIGKILL')) === null) killed += 1
    const { events } = await reopenWorkspace(data).feed.readWindow(windowEnding(day))
    expect(events.length % 5_000, `round ${round}`).toBe(0)
    expect(events.length).toBeGreaterThanOrEqual(stored)
    stored = events.length
  }
  expect(stored).toBeGreaterThan(0)
  // On a busy machine a run may end before it is killed.
  expect(killed).toBeGreaterThan(0)
  const finished = await dash(args)
  expect(JSON.parse(finished.stdout)).toMatchObject({
    rows: 40_000,
    inserted: 40_000 - stored,
    unchanged: stored,
    replaced: 0,
  })
  expect((await reopenWorkspace(data).feed.readWindow(windowEnding(day))).events).toHaveLength(40_000)
})

/** Rows of a file, more than one batch of 5,000. */
const FILE_ROWS = 6_000

/** Returns the stored files, and the number of rows of each. */
async function storedRows(data: string, day: Day): Promise<Map<string, number>> {
  const workspace = reopenWorkspace(data)
  try {
    const rows = new Map<string, number>()
    for (const { sourceId } of (await workspace.feed.readWindow(windowEnding(day))).events) {
      const file = sourceId.slice(0, sourceId.lastIndexOf('-'))
      rows.set(file, (rows.get(file) ?? 0) + 1)
    }
    return rows
  } finally {
    workspace.close()
  }
}

test('two importers killed at random moments lose no acknowledged rows', SLOW, async () => {
  const day = lastCompleteDay(Date.now())
  const folder = temporaryFolder()
  const data = join(folder, 'data')
  const random = seeded(1)
  const rounds = LONG ? 40 : 6
  const acknowledged: string[] = []
  const ends: (number | null)[] = []
  const undisturbed = await durationOf(async () => {
    const stdin = storiesOf(day, FILE_ROWS).replaceAll('"sourceId":"', '"sourceId":"first-')
    expect((await dash(['import', 'signals', '-', '--data-dir', data], { stdin })).code).toBe(0)
  })
  for (let round = 0; round < rounds; round += 1) {
    const files = ['left', 'right'].map((writer) => `${writer}-${round}`)
    const runs = files.map((name) => {
      const file = join(folder, `${name}.ndjson`)
      writeFileSync(file, storiesOf(day, FILE_ROWS).replaceAll('"sourceId":"', `"sourceId":"${name}-`))
      const { child, end } = startDash(['import', 'signals', file, '--data-dir', data])
      return { name, end, killed: killAtRandom(child, random, 8 * undisturbed) }
    })
    for (const { name, end, killed } of runs) {
      const code = await end()
      ends.push(code)
      await killed
      if (code === 0) acknowledged.push(name)
    }
    const rows = await storedRows(data, day)
    for (const name of acknowledged) expect(rows.get(name), name).toBe(FILE_ROWS)
    for (const [name, count] of rows) expect([5_000, FILE_ROWS], name).toContain(count)
  }
  const last = join(folder, 'left-0.ndjson')
  expect((await dash(['import', 'signals', last, '--data-dir', data])).code).toBe(0)
  printFacts(`two importers, ${rounds} rounds of kill -9`, {
    'exit codes (null: killed)': tally(ends),
    acknowledged: acknowledged.length,
  })
  expect(new Set(ends)).toEqual(new Set([0, null]))
})

/**
 * Script of `dash publish-year --once --json` at another time: `process.argv` holds the data folder and the time
 * offset.
 */
const PUBLISH_AT = `
  import { readConfig } from '${builtModule('cli/settings/read-config.js')}'
  import { Container } from '${builtModule('cli/container.js')}'
  import { publishYear } from '${builtModule('jobs/publish-year.js')}'
  const [, dataDir, ago] = process.argv
  const config = readConfig({ dataDir }, {}, '/')
  const container = new Container({ config, version: '0' })
  const ports = await container.publishPorts(() => Date.now() - Number(ago), () => undefined)
  const signal = new AbortController().signal
  const options = { once: true, dryRun: false, recordGaps: null, retryDelayMs: 0, signal }
  const outcome = await publishYear(ports, options).then(({ report }) => report.outcome, (error) => error.code)
  console.log(outcome)
  process.exit()`

test('two publishers killed at random moments lose no acknowledged day', SLOW, async () => {
  const days = LONG ? 30 : 3
  const last = lastCompleteDay(Date.now())
  const data = join(temporaryFolder(), 'data')
  const first = addDays(last, 1 - days)
  const undisturbed = await durationOf(async () => {
    const stdin = storiesOf(first, 200)
    expect((await dash(['import', 'signals', '-', '--data-dir', data], { stdin })).code).toBe(0)
  })
  const random = seeded(2)
  const acknowledged: Day[] = []
  const outcomes: string[] = []
  for (let index = 0; index < days; index += 1) {
    const day = addDays(first, index)
    const ago = startOfDay(last) - startOfDay(day)
    for (let settled = false; !settled;) {
      const publishers = [0, 1].map(() => startScript(PUBLISH_AT, [data, String(ago)]))
      const answers = await Promise.all(
        publishers.map(async (publisher) => {
          const killed = killAtRandom({ kill: () => (publisher.kill(), true) }, random, 2 * undisturbed)
          const outcome = (await publisher.line()) ?? 'killed'
          await killed
          await publisher.ended
          return outcome
        }),
      )
      outcomes.push(...answers)
      if (answers.includes('published')) acknowledged.push(day)
      expect(answers.filter((answer) => answer === 'published').length, day).toBeLessThan(2)
      const standing = await audit(data, day)
      expect(standing.sound, standing.why).toBe(true)
      for (const each of acknowledged) expect(standing.publications, day).toContain(each)
      settled = standing.publications.includes(day) || standing.gaps.includes(day)
    }
  }
  const after = await audit(data, last)
  expect([...after.publications, ...after.gaps].sort()).toEqual(
    Array.from({ length: days }, (_, index) => addDays(first, index)),
  )
  printFacts(`two publishers, ${days} days, kill -9`, {
    runs: outcomes.length,
    outcomes: tally(outcomes),
    'days published': after.publications.length,
    'days that became gaps': after.gaps.length,
  })
  const next = await dash(['publish-year', '--once', '--json', '--data-dir', data])
  expect([0, 3]).toContain(next.code)
  expect(['already-published', 'gap']).toContain((JSON.parse(next.stdout) as PublishReport).outcome)
})
