import { cpSync, rmSync } from 'node:fs'
import pLimit from 'p-limit'
import { describe, expect, test } from 'vitest'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import { dash } from '../support/dash.ts'
import { logSettings } from '../support/signed-log.ts'
import { audit, listSyscalls, LONG, preparedFolder, strike, SYSCALL_FAULTS, withCopy } from './attack.ts'
import type { PreparedFolder, Standing, SyscallFault, SyscallPoint } from './attack.ts'

const publishIn = (folder: string): string[] => ['publish-year', '--once', '--json', '--data-dir', folder]

interface Attack {
  point: SyscallPoint
  fault: SyscallFault
}

/** Result of one publish with one fault, and of the next run. */
interface Outcome {
  attack: Attack
  fired: boolean
  /** null: the run was ended by a signal. */
  code: number | null
  acknowledged: boolean
  after: Standing
  nextCode: number | null
  nextOutcome: string
  afterNext: Standing
}

/**
 * Returns every point with every fault, or every n-th of these in the short form.
 *
 * @param stride not divisible by the number of faults, so that all of them occur
 */
function attacksOn(points: readonly SyscallPoint[], stride: number): Attack[] {
  const all = points.flatMap((point) => SYSCALL_FAULTS.map((fault) => ({ point, fault })))
  return LONG ? all : all.filter((_attack, index) => index % stride === 0)
}

function reportOf(stdout: string): Partial<PublishReport> {
  return stdout === '' ? {} : (JSON.parse(stdout) as PublishReport)
}

async function suffer({ folder, day }: PreparedFolder, attack: Attack, number: number): Promise<Outcome> {
  return withCopy(folder, `struck-${number}`, async (copy) => {
    const freshFolder = (): void => {
      rmSync(copy, { recursive: true, force: true })
      cpSync(folder, copy, { recursive: true })
    }
    const { fired, run } = await strike(publishIn(copy), copy, attack, freshFolder)
    // Verifying a ledger rolls back the journal of a crash; the next run must find that journal unchanged.
    const after = await withCopy(copy, 'audited', (audited) => audit(audited, day))
    const next = await dash(publishIn(copy), { env: logSettings(copy) })
    return {
      attack,
      fired,
      code: run.code,
      acknowledged: ['published', 'already-published'].includes(reportOf(run.stdout).outcome ?? ''),
      after,
      nextCode: next.code,
      nextOutcome: reportOf(next.stdout).outcome ?? next.stderr,
      afterNext: await audit(copy, day),
    }
  })
}

/** Returns the broken rules of a publish with a fault, each as a sentence. */
function breachesOf(outcome: Outcome, { day, earlier }: PreparedFolder): string[] {
  const { attack, fired, code, acknowledged, after, afterNext, nextCode, nextOutcome } = outcome
  const { call, nth, path } = attack.point
  const published = after.publications.includes(day)
  const rules: [boolean, string][] = [
    [fired, 'the fault did not strike'],
    [after.damage === '', `the archive is not sound: ${after.damage}`],
    [earlier.every((each) => after.publications.includes(each)), 'an earlier publication is lost'],
    [!acknowledged || published, 'an acknowledged publication is lost'],
    [code !== 0 || acknowledged, 'the run ended well and acknowledged nothing'],
    [code !== 70, 'the run ended with an internal error'],
    [code !== null || attack.fault === 'KILL', 'the run was aborted'],
    [after.gaps.length === 0, 'a day became a gap'],
    [nextCode === 0, `the next run ended with ${nextCode}: ${nextOutcome}`],
    [nextOutcome === (published ? 'already-published' : 'published'), `the next run said ${nextOutcome}`],
    [afterNext.damage === '', `the archive is not sound after the next run: ${afterNext.damage}`],
    [afterNext.publications.join() === [...earlier, day].join(), 'the next run left other publications'],
    [afterNext.signed === earlier.length + 1, `the next run left a note of ${afterNext.signed} entries`],
    [code !== 0 || after.signed === earlier.length + 1, 'the run ended well and signed nothing'],
  ]
  return rules.flatMap(([holds, breach]) =>
    holds ? [] : [`${attack.fault} at ${call} ${nth} (${path}), exit ${code}: ${breach}`],
  )
}

async function attackAll(earlierDays: number, stride: number): Promise<string[]> {
  let preparing = preparedFolder(earlierDays)
  const { folder } = await preparing
  const points = await withCopy(folder, 'rehearsal', (copy) => listSyscalls(publishIn(copy), copy))
  const isToday = ({ day }: PreparedFolder): boolean => day === lastCompleteDay(Date.now())
  // At midnight the next publish becomes that of another day.
  const sufferInOneDay = async (attack: Attack, number: number): Promise<string[]> => {
    const prepared = await preparing
    if (isToday(prepared)) {
      const outcome = await suffer(prepared, attack, number)
      if (isToday(prepared)) return breachesOf(outcome, prepared)
    }
    preparing = preparedFolder(earlierDays)
    return sufferInOneDay(attack, number)
  }
  return (await pLimit(2).map(attacksOn(points, stride), sufferInOneDay)).flat()
}

describe('a publish killed, or failed with EIO or ENOSPC, at its system calls', () => {
  test.each([
    ['on a new data folder', 0, 41],
    ['after two earlier days', 2, 23],
  ])(
    'a failed publish leaves a sound archive and loses nothing, %s',
    { timeout: LONG ? 3_600_000 : 1_200_000 },
    async (_when, earlierDays, stride) => {
      expect(await attackAll(earlierDays, stride)).toEqual([])
    },
  )
})
