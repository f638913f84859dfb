import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { drawsFrom } from '../../../src/domain/models/lite/suite.ts'
import { gradeFiles } from '../../../src/domain/models/lite/file-task.ts'
import { SHELL_CASES } from '../../../src/domain/models/lite/shell-jobs.ts'
import type { TaskResult } from '../../../src/domain/models/lite/suite.ts'
import { gradeClock } from '../../../src/domain/models/lite/text-tasks.ts'
import { addDays } from '../../../src/domain/time.ts'
import { drawItems, makeLiteSuite } from '../../../src/jobs/models/lite-suite.ts'
import { solutions, worthlessResponses } from './lite-responses.ts'
import { sandbox } from '../../adapters/sandbox/lite-shell.ts'

const sandboxShell = await sandbox()

const textResponse = (content: string): { text: string; toolCalls: []; finishReason: string } => ({
  text: content,
  toolCalls: [],
  finishReason: 'stop',
})
const pointsOf = (results: readonly TaskResult[]): number[] => results.map(({ points }) => points)

describe('the example of docs/lite-suite.md', () => {
  const page = readFileSync(fileURLToPath(new URL('../../../docs/lite-suite.md', import.meta.url)), 'utf8')
  const items = drawItems('2026-11-21')

  test('the example shows the prompts of its day', () => {
    for (const { messages } of Object.values(items.prompts)) expect(page).toContain(messages[0]?.content)
  })

  test('the example shows the points of each response', async () => {
    const suite = makeLiteSuite('2026-11-21', sandboxShell)
    const rows = [
      ...page.matchAll(/^\| ([^|\n]*`(?:COMMAND|TIME): (?:[^|\n]|\\\|)*)\|\s+(\d+) \|\s+(\d+) \|$/gm),
    ]
    expect(rows).toHaveLength(5)
    for (const [, answer = '', command, clock] of rows) {
      const lines = [...answer.matchAll(/`((?:COMMAND|TIME): [^`]*)`/g)].map(([, line = '']) => line)
      const reply = textResponse(lines.join('\n').replaceAll('\\|', '|'))
      expect(pointsOf(await suite.grade('text', reply)), answer).toEqual([Number(command), Number(clock)])
    }
  })
})

const DAYS = Array.from({ length: 430 }, (_, index) => addDays('2026-01-01', index))
const everyDay = DAYS.map(drawItems)

describe('draws', () => {
  test('the draws of one seed are always the same', () => {
    const draw = drawsFrom('lite-agent-eval-v1|2026-01-01|files')
    expect(Array.from({ length: 6 }, () => draw.integer(0, 999))).toEqual([117, 718, 290, 218, 399, 278])
    expect(drawsFrom('a').word(8)).not.toBe(drawsFrom('b').word(8))
  })

  test('draws reach both ends of a range, and every choice, evenly', () => {
    const draw = drawsFrom('ends')
    const counts = new Map<number, number>()
    for (let drawn = 0; drawn < 6000; drawn += 1) {
      const value = draw.integer(1, 6)
      counts.set(value, (counts.get(value) ?? 0) + 1)
    }
    expect([...counts.keys()].sort()).toEqual([1, 2, 3, 4, 5, 6])
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150)
    expect(new Set(draw.sample([1, 2, 3, 4], 4))).toEqual(new Set([1, 2, 3, 4]))
  })
})

describe('the items of 430 days', () => {
  test('the items of a day are always the same, and differ between days', () => {
    const texts = everyDay.map(({ prompts }) => JSON.stringify(prompts))
    expect(JSON.stringify(drawItems('2026-01-01').prompts)).toBe(texts[0])
    expect(new Set(texts).size).toBe(DAYS.length)
  })

  test('the items contain every kind of file and of job', () => {
    const kinds = new Set(everyDay.flatMap(({ files }) => files.requested.map(({ kind }) => kind)))
    expect([...kinds].sort()).toEqual(['ignore', 'makefile', 'readme', 'script', 'settings', 'table'])
    const jobs = new Set(everyDay.map(({ shell }) => shell.kind))
    const all = 'column count distinct frequency rename replace search sum top'
    expect([...jobs].sort().join(' ')).toBe(all)
  })

  test('the items contain three files at different paths, each with two properties that an empty file does not have', () => {
    for (const { files } of everyDay) {
      expect(new Set(files.requested.map(({ path }) => path)).size).toBe(3)
      for (const { properties, solution } of files.requested) {
        const judged = (content: string) => Object.values(properties).map((holds) => holds(content))
        expect(judged(solution)).toEqual([true, true])
        expect(judged('')).toEqual([false, false])
        expect(judged(solution.replaceAll('\n', '\r\n'))).toEqual([true, true])
      }
    }
  })

  test('the items have a solution with all points, and worthless calls with none', () => {
    for (const items of everyDay) {
      expect(gradeFiles(items.files, solutions(items).tool).points).toBe(350)
      for (const [name, response] of Object.entries(worthlessResponses(items).tool)) {
        expect(gradeFiles(items.files, response).points, name).toBe(0)
      }
    }
  })

  test('the items show one tree of a job, and hide two with other results', () => {
    for (const { shell, prompts } of everyDay) {
      const [question] = prompts.text.messages
      const results = SHELL_CASES.map((name) => shell.cases[name])
      expect(new Set(results.map(({ prints, after }) => JSON.stringify(prints ?? [...after]))).size).toBe(3)
      for (const path of shell.cases.shown.files.keys()) expect(question?.content).toContain(`--- ${path}\n`)
      expect(question?.content).not.toContain(shell.solution)
      const hidden = [...shell.cases.awkward.files.values()].find((content) => / /.test(content)) ?? '?'
      expect(question?.content).not.toContain(hidden)
    }
  })

  test('the clocks have the same size: 24 signs, two digits, one hour to borrow', () => {
    for (const { clock } of everyDay) {
      const shown = /It shows: (.*)$/m.exec(clock.task)?.[1] ?? ''
      expect(shown.replaceAll(' / ', '')).toHaveLength(24)
      expect(shown.split(' / ')).toHaveLength(3)
      expect(clock.expected).toMatch(/^1[2-8]:(0\d|[1-5]\d):[1-5]\d$/)
      expect(decode(clock.task)).toBe(clock.expected)
    }
  })
})

/** Reads a clock as a person would, from its words alone. */
function decode(task: string): string {
  const [, ten = '', one = ''] = /"(.)" counts ten and "(.)" counts one/.exec(task) ?? []
  const order = (/The order is (.*)\. It/.exec(task)?.[1] ?? '').split(' / ')
  const shown = (/It shows: (.*)$/m.exec(task)?.[1] ?? '').split(' / ')
  const count = (text: string, sign: string): number => text.split(sign).length - 1
  const value = (name: string): number => {
    const place = shown[order.indexOf(name)] ?? ''
    return 10 * count(place, ten) + count(place, one)
  }
  const lead = Number(/exactly (\d+) minutes ahead/.exec(task)?.[1])
  const seconds = value('hours') * 3600 + value('minutes') * 60 + value('seconds') - lead * 60
  return new Date(seconds * 1000).toISOString().slice(11, 19)
}

describe('the clock', () => {
  const item = { task: '', expected: '14:05:37' }

  test.each([
    ['14:05:37', 100],
    ['14:5:37', 100],
    ['14:05:38', 40],
    ['02:05:37', 40],
    ['14:00:00', 0],
    ['05:37:14', 0],
    ['', 0],
    [null, 0],
  ])('the time %j earns %i points', (received, points) => {
    expect(gradeClock(item, received)).toEqual({
      points,
      details: { expected: '14:05:37', received: received ?? '' },
    })
  })
})
