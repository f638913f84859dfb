import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lastCompleteDay, windowEnding } from '../../src/domain/year/window.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { audit } from '../support/archive-audit.ts'
import { dash, exitOf, PROGRAM, startDash, temporaryFolder } from '../support/dash.ts'
import { storiesOf } from '../support/ndjson.ts'
import { reopenWorkspace } from '../support/workspace.ts'

/**
 * The system calls by which a publish changes what is on disk, but for `write`, by which the runtime also wakes its own
 * threads, so that its count is not the same in every run; objects are written between two of these.
 */
const CALLS = 'pwrite64,fsync,fdatasync,ftruncate,link,unlink,mkdir'

async function preparedFolder(): Promise<{ folder: string; day: string }> {
  const day = lastCompleteDay(Date.now())
  const folder = join(temporaryFolder(), 'data')
  const imported = await dash(['import', 'signals', '-', '--data-dir', folder], {
    stdin: storiesOf(day, 200),
  })
  expect(imported.code).toBe(0)
  return { folder, day }
}

/** One moment of a publish: the nth call of a kind on the main thread, where all its file writes happen. */
interface Moment {
  call: string
  nth: number
  line: string
}

function traced(folder: string, options: string[]) {
  const args = ['-qq', '-y', '-e', `trace=${CALLS}`, ...options, process.execPath, PROGRAM]
  return spawnSync('strace', [...args, 'publish-year', '--once', '--json', '--data-dir', folder], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  })
}

/** Consecutive moments at one place with one outcome. */
interface Step {
  place: string
  calls: number
  stood: string
}

function noteStep(table: Step[], place: string, stood: string): void {
  const last = table.at(-1)
  if (last?.place === place && last.stood === stood) last.calls += 1
  else table.push({ place, calls: 1, stood })
}

function placeOf(line: string): string {
  if (line.includes('/objects/heads')) return 'head'
  if (line.includes('/objects')) return 'object'
  return line.includes('/feed.db') ? 'feed' : 'ledger'
}

/** Every call of a whole publish that touches the data folder, from strace's own log. */
function momentsOf(folder: string): Moment[] {
  const log = join(temporaryFolder(), 'strace.log')
  const run = traced(folder, ['-o', log])
  expect(JSON.parse(run.stdout)).toMatchObject({ outcome: 'published' })
  const counts = new Map<string, number>()
  return readFileSync(log, 'utf8')
    .split('\n')
    .flatMap((line): Moment[] => {
      const call = /^(\w+)\(/.exec(line)?.[1]
      if (call === undefined) return []
      const nth = (counts.get(call) ?? 0) + 1
      counts.set(call, nth)
      return line.includes(folder)
        ? [{ call, nth, line: line.replaceAll(folder, '<data>').slice(0, 100) }]
        : []
    })
}

test('a publish killed at any of its system calls leaves a sound archive, and the next run publishes', async () => {
  const { folder, day } = await preparedFolder()
  const rehearsal = `${folder}-rehearsal`
  cpSync(folder, rehearsal, { recursive: true })
  const moments = momentsOf(rehearsal)
  expect(moments.length).toBeGreaterThan(25)
  const table: Step[] = []
  for (const [number, { call, nth, line }] of moments.entries()) {
    const copy = `${folder}-${number}`
    cpSync(folder, copy, { recursive: true })
    const killed = traced(copy, ['-o', '/dev/null', '-e', `inject=${call}:signal=KILL:when=${nth}`])
    const where = `${call} ${nth}: ${line}`
    expect(killed.signal ?? killed.status, where).toBe('SIGKILL')
    const after = await audit(copy, day)
    expect(after, where).toMatchObject({ sound: true, gaps: [] })
    if (killed.stdout !== '') expect(after.publications, `acknowledged: ${where}`).toEqual([day])
    noteStep(table, placeOf(line), after.publications.length === 1 ? 'published' : 'nothing published')
    const next = await dash(['publish-year', '--once', '--json', '--data-dir', copy])
    const { outcome } = JSON.parse(next.stdout) as PublishReport
    expect([next.code, outcome], where).toEqual([
      0,
      after.publications.length === 1 ? 'already-published' : 'published',
    ])
    expect(await audit(copy, day), where).toMatchObject({ sound: true, publications: [day], gaps: [] })
  }
  const lines = table.map(({ place, calls, stood }) => `  ${place}: ${calls} calls, afterwards ${stood}`)
  process.stdout.write(`kill -9 at each of ${moments.length} system calls, in order:\n${lines.join('\n')}\n`)
  expect(new Set(table.map(({ stood }) => stood))).toEqual(new Set(['nothing published', 'published']))
})

test('three publishes killed in their work spend the day’s attempts: the fourth run records a gap', async () => {
  const { folder, day } = await preparedFolder()
  // The first fsync of an object comes after the attempt was counted and before the commit.
  const rehearsal = `${folder}-rehearsal`
  cpSync(folder, rehearsal, { recursive: true })
  const moment = momentsOf(rehearsal).find(({ call, line }) => call === 'fsync' && line.includes('.writing-'))
  expect(moment).toBeDefined()
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    // A run that finds a first attempt spent meets the same calls again, so the same moment kills it.
    traced(folder, ['-o', '/dev/null', '-e', `inject=fsync:signal=KILL:when=${moment?.nth}`])
    expect(await audit(folder, day)).toMatchObject({ sound: true, publications: [], attempts: attempt })
  }
  const fourth = await dash(['publish-year', '--once', '--json', '--data-dir', folder])
  expect([fourth.code, JSON.parse(fourth.stdout)]).toMatchObject([3, { outcome: 'gap', attempt: 3 }])
  expect(await audit(folder, day)).toMatchObject({ sound: true, publications: [], gaps: [day] })
})

test('twenty publishers started together have one winner', async () => {
  const { folder, day } = await preparedFolder()
  const runs = await Promise.all(
    Array.from({ length: 20 }, () => dash(['publish-year', '--once', '--json', '--data-dir', folder])),
  )
  const outcomes = runs.map(({ code, stdout }) =>
    code !== 0 ? `exit ${code}` : (JSON.parse(stdout) as PublishReport).outcome,
  )
  expect(outcomes.filter((outcome) => outcome === 'published')).toHaveLength(1)
  for (const outcome of outcomes) expect(['published', 'already-published', 'exit 75']).toContain(outcome)
  expect(await audit(folder, day)).toMatchObject({ sound: true, publications: [day], gaps: [], attempts: 1 })
})

test('an import killed at any moment loses nothing that a second import does not bring', async () => {
  const day = lastCompleteDay(Date.now())
  const folder = temporaryFolder()
  const file = join(folder, 'signals.ndjson')
  writeFileSync(file, storiesOf(day, 40_000))
  const data = join(folder, 'data')
  mkdirSync(data)
  const args = ['import', 'signals', file, '--data-dir', data, '--json']
  let stored = 0
  for (let round = 0; round < 4; round += 1) {
    const child = startDash(args)
    const size = (): number => statSync(join(data, 'feed.db'), { throwIfNoEntry: false })?.size ?? 0
    const before = size()
    // The file grows with each commit, by less than this: each run is killed when it has stored at least one batch.
    while (size() < before + 1_500_000 && child.exitCode === null)
      await new Promise((resolve) => setImmediate(resolve))
    child.kill('SIGKILL')
    await exitOf(child)
    const { events } = await reopenWorkspace(data).feed.readWindow(windowEnding(day))
    expect(events.length % 5_000, `round ${round}`).toBe(0)
    expect(events.length).toBeGreaterThanOrEqual(stored)
    stored = events.length
  }
  expect(stored).toBeGreaterThan(0)
  expect(stored).toBeLessThan(40_000)
  const finished = await dash(args)
  expect(JSON.parse(finished.stdout)).toMatchObject({
    rows: 40_000,
    inserted: 40_000 - stored,
    unchanged: stored,
    replaced: 0,
  })
  expect((await reopenWorkspace(data).feed.readWindow(windowEnding(day))).events).toHaveLength(40_000)
})
