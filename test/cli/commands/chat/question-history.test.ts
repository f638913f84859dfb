import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { openQuestionHistory, QUESTIONS_KEPT } from '../../../../src/cli/commands/chat/chat.ts'
import type { QuestionHistory } from '../../../../src/cli/commands/chat/chat.ts'
import { temporaryFolder } from '../../../support/dash.ts'

const historyPath = (): string => join(temporaryFolder(), 'dash', 'chat-history')

const open = (path: string | null): QuestionHistory =>
  openQuestionHistory(path, (problem) => {
    throw new Error(problem)
  })

/** Adds questions in one run and returns those of the next run. */
function remembered(added: readonly string[]): readonly string[] {
  const path = historyPath()
  const questions = open(path)
  for (const question of added) questions.add(question)
  return open(path).earlier
}

test.each([' a question that begins with a space', '   '])('the question %j is not stored', (question) => {
  expect(remembered([question])).toEqual([])
})

test('only the owner may read the file and the folder of questions', () => {
  const path = historyPath()
  const questions = open(path)
  for (const question of ['one', 'two\nlines', 'one']) questions.add(question)
  expect(open(path).earlier).toEqual(['two\nlines', 'one'])
  expect([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777]).toEqual([0o600, 0o700])
})

test('the questions of two terminals are all kept, and invalid lines are skipped', () => {
  const path = historyPath()
  const [first, second] = [open(path), open(path)]
  first.add('a')
  second.add('b')
  first.add('c')
  writeFileSync(path, 'not json\n7\n""\n"b', { flag: 'a' })
  expect(open(path).earlier).toEqual(['a', 'b', 'c'])
})

test('the file has a bounded size, and one that others could read becomes private', () => {
  const path = historyPath()
  mkdirSync(dirname(path))
  const lines = Array.from({ length: 3 * QUESTIONS_KEPT }, (_, index) => `"q${index}"\n`)
  writeFileSync(path, lines.join(''))
  chmodSync(path, 0o644)
  expect(open(path).earlier).toHaveLength(QUESTIONS_KEPT)
  expect(open(path).earlier[0]).toBe(`q${2 * QUESTIONS_KEPT}`)
  expect(readFileSync(path, 'utf8').trimEnd().split('\n')).toHaveLength(QUESTIONS_KEPT)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(dirname(path))).toEqual(['chat-history'])
})

test('an unusable file is reported once', () => {
  const path = join(temporaryFolder(), 'file', 'chat-history')
  writeFileSync(dirname(path), '')
  const problems: string[] = []
  const questions = openQuestionHistory(path, (problem) => problems.push(problem))
  questions.add('one')
  questions.add('two')
  expect(problems).toEqual([expect.stringMatching(/^questions are not saved: /)])
})
