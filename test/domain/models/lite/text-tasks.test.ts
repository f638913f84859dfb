import { describe, expect, test } from 'vitest'
import { drawItems } from '../../../../src/jobs/models/lite-suite.ts'
import { SHELL_CASES } from '../../../../src/domain/models/lite/shell-jobs.ts'
import { gradeShell } from '../../../../src/domain/models/lite/text-tasks.ts'
import type { ShellRuns } from '../../../../src/domain/models/lite/text-tasks.ts'
import { taskResult, unansweredTasks } from '../../../../src/domain/models/lite/suite.ts'
import type { ShellRun } from '../../../../src/domain/models/lite/suite.ts'
import { addDays } from '../../../../src/domain/time.ts'

const jobOf = (kind: string) => {
  for (let index = 0; index < 400; index += 1) {
    const { shell } = drawItems(addDays('2026-01-01', index))
    if (shell.kind === kind) return shell
  }
  throw new Error(`no day asks for ${kind}`)
}
const job = jobOf('top')

type Case = keyof ShellRuns

const ran = (name: Case, of = job): ShellRun => ({
  outcome: 'ran',
  stdout: (of.cases[name].prints ?? []).map((line) => `${line}\n`).join(''),
  stderr: '',
  files: of.cases[name].after,
  reason: null,
  missingTools: [],
})
const ended = (outcome: ShellRun['outcome'], missingTools: string[] = []): ShellRun => ({
  outcome,
  stdout: '',
  stderr: '',
  files: new Map(),
  reason: `it ${outcome}`,
  missingTools,
})
const runs = (changed: Partial<ShellRuns> = {}, of = job): ShellRuns => ({
  shown: ran('shown', of),
  other: ran('other', of),
  awkward: ran('awkward', of),
  ...changed,
})
const everywhere = (run: ShellRun): ShellRuns => ({ shown: run, other: run, awkward: run })
const gap = ended('unsupported')
const wrong = (name: Case): ShellRun => ({ ...ran(name), stdout: 'x\n' })
const points = (changed: Partial<ShellRuns>, command = 'c'): number =>
  gradeShell(job, command, runs(changed)).points

describe('a command', () => {
  test('a command that is right everywhere earns all points', () => {
    const right = { rightOnShownFiles: true, rightOnOtherFiles: true, rightOnAwkwardFiles: true }
    const form = { plausiblyExecutable: true, shellOnly: true, usesGivenTools: true }
    const details = { command: 'sort', ...form, leavesOtherFilesAlone: true, ...right }
    expect(gradeShell(job, 'sort', runs())).toEqual({ isVoid: false, points: 300, details })
  })

  const extra = { ...ran('other'), files: new Map([...job.cases.other.files, ['made', 'x']]) }

  test.each<[string, Partial<ShellRuns>, string, number]>([
    ['is wrong on awkward files', { awkward: wrong('awkward') }, 'c', 230],
    ['is wrong on the shown files', { shown: wrong('shown') }, 'c', 260],
    ['has two lines', {}, 'a\nb', 280],
    ['makes another file', { other: extra }, 'c', 280],
    ['removes the files', { other: { ...extra, files: new Map() } }, 'c', 280],
    ['does not end on awkward files', { awkward: ended('limit') }, 'c', 210],
  ])('a command loses the points of a property when it %s', (_what, changed, command, earned) => {
    expect(points(changed, command)).toBe(earned)
  })

  test('a command that is right on the shown files alone earns nothing', () => {
    const parrot = runs({ other: wrong('other'), awkward: wrong('awkward') })
    const { points: earned, details } = gradeShell(job, 'c', parrot)
    expect(earned).toBe(0)
    expect(details).toMatchObject({ rightOnShownFiles: true, shellOnly: true })
  })

  test('a command that cannot be executed earns nothing', () => {
    const { points: earned, details } = gradeShell(job, 'c', everywhere(ended('not-executable')))
    expect(earned).toBe(0)
    expect(details).toMatchObject({ plausiblyExecutable: false, leavesOtherFilesAlone: false })
  })

  test('a missing command earns nothing, and no property', () => {
    const { points: earned, details } = gradeShell(job, null, null)
    expect(earned).toBe(0)
    expect(Object.values(details).filter((value) => value !== false)).toEqual([''])
    expect(Object.keys(details)).toHaveLength(8)
  })
})

describe('an unsupported command', () => {
  test.each<[string, Partial<ShellRuns>, boolean, number]>([
    ['both unseen trees', { other: gap, awkward: gap }, true, 0],
    ['every tree', everywhere(gap), true, 0],
    ['one unseen tree', { other: gap }, false, 300],
    ['one, wrong on the other', { other: gap, awkward: wrong('awkward') }, false, 0],
    ['one, wrong on the other one', { awkward: gap, other: wrong('other') }, false, 0],
    // 190 of the 230 points that could be decided.
    ['one, wrong on the shown one', { awkward: gap, shown: wrong('shown') }, false, 248],
    ['both, wrong on the shown one', { ...everywhere(gap), shown: wrong('shown') }, false, 0],
  ])('a command that is unsupported on %s is judged by the other trees', (_on, changed, isVoid, earned) => {
    const graded = gradeShell(job, 'c', runs(changed))
    expect([graded.isVoid, graded.points]).toEqual([isVoid, earned])
    const result = taskResult('task_shell_command_lite', '2026-01-01', graded)
    expect(result.points).toBe(earned)
    expect(result.status === 'http_timeout_or_error').toBe(isVoid)
  })

  test('a command that is unsupported everywhere keeps its form in the details, with a tool that was not offered', () => {
    const { points: earned, details } = gradeShell(job, 'perl', everywhere(ended('unsupported', ['perl'])))
    expect(earned).toBe(0)
    const form = { command: 'perl', plausiblyExecutable: true, shellOnly: true, usesGivenTools: false }
    expect(details).toEqual({ ...form, sandboxUnsupported: 'it unsupported' })
  })
})

describe('a result', () => {
  const search = jobOf('search')

  test.each<[string, (lines: readonly string[]) => string[], number]>([
    ['right in another order', (lines) => lines.toReversed(), 300],
    ['right with padding, ./ and empty lines', (lines) => lines.map((line) => `  ./${line}  \n`), 300],
    ['wrong with a line more', (lines) => [...lines, 'x'], 0],
    ['wrong with a line less', (lines) => lines.slice(1), 0],
    ['wrong with a line twice', (lines) => [...lines, lines[0] ?? ''], 0],
  ])('a result is %s', (_what, change, earned) => {
    const each = SHELL_CASES.map((name) => {
      const stdout = change(search.cases[name].prints ?? []).join('\n')
      return [name, { ...ran(name, search), stdout }]
    })
    expect(gradeShell(search, 'c', Object.fromEntries(each)).points).toBe(earned)
  })

  test('a result in another order is wrong when the job requires an order', () => {
    const stdout = (job.cases.other.prints ?? []).toReversed().join('\n')
    expect(points({ other: { ...ran('other'), stdout } })).toBe(230)
  })

  test('the result of a job that changes files is the files, whatever is printed', () => {
    const rename = jobOf('rename')
    expect(gradeShell(rename, 'c', runs({}, rename)).points).toBe(300)
    const chatty = { ...ran('shown', rename), stdout: 'renamed\n' }
    expect(gradeShell(rename, 'c', runs({ shown: chatty }, rename)).points).toBe(300)
    const undone = (name: Case): ShellRun => ({ ...ran(name, rename), files: rename.cases[name].files })
    const idle = { shown: undone('shown'), other: undone('other'), awkward: undone('awkward') }
    expect(gradeShell(rename, 'true', idle).points).toBe(0)
  })
})

describe('the result of a task', () => {
  test.each([
    [0, 0, 'failed'],
    [269, 0.897, 'partial'],
    [270, 0.9, 'passed'],
  ] as const)('a result of %i points has score %d and is %s', (earned, score, status) => {
    const result = taskResult('task_shell_command_lite', '2026-01-01', { points: earned, details: {} })
    const source = 'lite-agent-eval-v1/2026-01-01'
    expect(result).toMatchObject({ source, points: earned, maxPoints: 300, score, status })
  })

  test('a result without a response has its reason, and no tool use', () => {
    const why = { responseStatus: 'timeout_or_error', rateLimitKind: 'none' }
    const results = unansweredTasks('text', '2026-01-01', why)
    for (const result of results)
      expect(result).toMatchObject({ points: 0, score: 0, status: 'http_timeout_or_error', details: why })
    expect(unansweredTasks('tool', '2026-01-01', why)[0]?.details).toEqual(why)
  })

  test('a result keeps the beginning of a command: cut between code points, lone halves replaced', () => {
    const kept = (command: string) => gradeShell(job, command, runs()).details['command']
    expect(kept(`a${'😀'.repeat(300)}`)).toBe(`a${'😀'.repeat(199)}`)
    expect(kept('a\ud83db')).toBe('a\ufffdb')
  })
})
