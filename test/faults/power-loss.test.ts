import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { windowEnding } from '../../src/domain/year/ledger.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { audit } from '../support/sample-archive.ts'
import {
  CONCURRENCY,
  LONG,
  tally,
  printFacts,
  seeded,
  mapConcurrently,
  preparedFolder,
  withCopy,
} from '../support/attack.ts'
import { temporaryFolder } from '../support/dash.ts'
import type { PreparedFolder } from '../support/attack.ts'
import { signedLogOf } from '../support/signed-log.ts'
import { storiesOf } from '../support/signals.ts'
import {
  fingerprintOf,
  materialise,
  PowerLossDisk,
  stateOf,
  recordOperations,
} from '../support/power-loss.ts'
import type { DiskState, PossibleState, FileOperation } from '../support/power-loss.ts'
import { publish, publishPortsOf, reopenWorkspace, sampleSignals } from '../support/workspace.ts'

/** Random states at each moment, besides the systematic ones. */
const RANDOM_STATES = LONG ? 24 : 2

/** In the short form, every n-th of the states that are not about names is tried. */
const STRIDE = LONG ? 1 : 12

/** A recorded run, and every state that a power loss during or after it could leave. */
interface Recording {
  operations: FileOperation[]
  possible: number
  states: PossibleState[]
}

/** Returns the operations of a program that never syncs the data folder itself. */
function withoutFolderSyncs(operations: readonly FileOperation[]): FileOperation[] {
  const paths = new Map<number, string>()
  return operations.filter((operation) => {
    if (operation.do === 'open') paths.set(operation.descriptor, operation.path)
    return operation.do !== 'sync' || paths.get(operation.descriptor) !== ''
  })
}

/** Records a run on a copy of a folder, and checks the model: its final state must equal that of the real folder. */
async function record(
  folder: string,
  argsFor: (copy: string) => string[],
  change: (operations: FileOperation[]) => FileOperation[] = (operations) => operations,
): Promise<Recording> {
  return withCopy(folder, 'recorded', async (copy) => {
    const disk = new PowerLossDisk(copy)
    const operations = change(await recordOperations(argsFor(copy), copy))
    const random = seeded(20_260_301)
    const distinct = new Map<string, PossibleState>()
    let possible = 0
    for (const [index, operation] of operations.entries()) {
      disk.apply(operation)
      for (const each of disk.possibleStates(index + 1, random, RANDOM_STATES)) {
        possible += 1
        const key = `${each.stdout === '' ? 'silent' : 'said'} ${fingerprintOf(each.state)}`
        if (!distinct.has(key)) distinct.set(key, each)
      }
    }
    expect(fingerprintOf(disk.visible())).toBe(fingerprintOf(stateOf(copy)))
    return { operations, possible, states: [...distinct.values()] }
  })
}

/**
 * Returns the states to try: in the short form all states about names or after the acknowledgement, and some of the
 * others.
 */
function chosen(states: readonly PossibleState[]): PossibleState[] {
  return states.filter(
    ({ how, stdout }, index) => stdout !== '' || how.includes('name') || index % STRIDE === 0,
  )
}

async function onDisk<T>(state: DiskState, name: string, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = join(temporaryFolder(), name)
  materialise(state, folder)
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function tellOf(title: string, recording: Recording, tried: number, breaches: readonly string[][]): void {
  const { operations, possible, states } = recording
  printFacts(`${title}: power lost after each of its file operations`, {
    'file operations': `${operations.length}: ${tally(operations.map((each) => each.do))}`,
    'possible states': possible,
    'distinct states': states.length,
    'states tried': tried,
    'states with a breach': breaches.filter((each) => each.length > 0).length,
    breaches: tally(breaches.flat().map((each) => each.replace(/^after \d+ .*?: /, ''))) || 'none',
  })
}

async function publishBreaches(
  { day, earlier }: PreparedFolder,
  { after, how, stdout, state }: PossibleState,
): Promise<string[]> {
  const acknowledged = stdout !== '' && (JSON.parse(stdout) as PublishReport).outcome === 'published'
  const found = await onDisk(state, 'found', (folder) => audit(folder, day))
  const { next, last } = await onDisk(state, 'continued', async (folder) => {
    const workspace = reopenWorkspace(folder)
    try {
      // The machine was restarted: every lease holder is dead.
      const log = signedLogOf(folder)
      const ports = publishPortsOf(workspace, { log, clock: Date.now, isDead: () => true })
      const outcome = await publish(ports).then(({ report }) => report.outcome, String)
      return { next: outcome, last: await audit(folder, day) }
    } finally {
      workspace.close()
    }
  })
  const rules: [boolean, string][] = [
    [found.sound, `the archive is not sound: ${found.why}`],
    [!found.sound || earlier.every((each) => found.publications.includes(each)), 'an earlier day is lost'],
    [!acknowledged || found.publications.includes(day), 'an acknowledged publication is lost'],
    [['published', 'already-published'].includes(next), `the next attempt: ${next}`],
    [last.publications.join() === [...earlier, day].join(), 'the next attempt left other publications'],
    [!acknowledged || found.signed === earlier.length + 1, 'an acknowledged publication is not signed'],
    [last.signed === earlier.length + 1, `the next attempt left a note of ${last.signed} entries`],
  ]
  return rules.flatMap(([holds, breach]) => (holds ? [] : [`after ${after} operations, ${how}: ${breach}`]))
}

const SLOW = { timeout: LONG ? 3_600_000 : 600_000 }

test.each([
  ['on a new data folder', 0],
  ['after two earlier days', 2],
])('a publish %s survives a power loss at any moment', SLOW, async (title, earlierDays) => {
  const prepared = await preparedFolder(earlierDays, 20)
  const args = (folder: string): string[] => ['publish-year', '--once', '--json', '--data-dir', folder]
  const recording = await record(prepared.folder, args)
  expect(recording.operations.filter((each) => each.do === 'say')).toHaveLength(1)
  const tried = chosen(recording.states)
  const breaches = await mapConcurrently(tried, CONCURRENCY, (state) => publishBreaches(prepared, state))
  tellOf(`a publish ${title}`, recording, tried.length, breaches)
  expect(breaches.flat()).toEqual([])
})

async function importBreaches(
  { day }: PreparedFolder,
  { after, how, stdout, state }: PossibleState,
): Promise<string[]> {
  return onDisk(state, 'found', async (folder) => {
    const workspace = reopenWorkspace(folder)
    const count = async (): Promise<number> =>
      (await workspace.feed.readWindow(windowEnding(day))).events.length
    try {
      const found = await count()
      const { inserted } = await workspace.feed.importSignals(sampleSignals(day))
      const rules: [boolean, string][] = [
        [found === 20 || found === 60, 'half of an import is stored'],
        [stdout === '' || found === 60, 'an acknowledged import is lost'],
        [(await count()) === found + inserted && inserted === 9, 'the next import does not store'],
      ]
      return rules.flatMap(([holds, breach]) =>
        holds ? [] : [`after ${after} operations, ${how}: ${breach}`],
      )
    } catch (error) {
      return [`after ${after} operations, ${how}: the feed cannot be used: ${String(error)}`]
    } finally {
      workspace.close()
    }
  })
}

async function importFile(
  prepared: PreparedFolder,
  change?: (operations: FileOperation[]) => FileOperation[],
): Promise<{ recording: Recording; tried: number; breaches: string[][] }> {
  const file = join(temporaryFolder(), 'signals.ndjson')
  writeFileSync(file, storiesOf(prepared.day, 60))
  const args = (folder: string): string[] => ['import', 'signals', file, '--json', '--data-dir', folder]
  const recording = await record(prepared.folder, args, change)
  const tried = chosen(recording.states)
  const breaches = await mapConcurrently(tried, CONCURRENCY, (state) => importBreaches(prepared, state))
  return { recording, tried: tried.length, breaches }
}

test('an import survives a power loss at any moment', SLOW, async () => {
  const { recording, tried, breaches } = await importFile(await preparedFolder(0, 20))
  tellOf('an import', recording, tried, breaches)
  expect(breaches.flat()).toEqual([])
})

test('an import that does not sync its folder is noticed', SLOW, async () => {
  const { breaches } = await importFile(await preparedFolder(0, 20), withoutFolderSyncs)
  expect(breaches.flat().join()).toContain('an acknowledged import is lost')
})
