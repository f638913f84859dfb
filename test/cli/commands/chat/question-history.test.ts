import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openQuestionHistory, QUESTIONS_KEPT } from '../../../../src/cli/commands/chat/question-history.ts'
import type { QuestionHistory } from '../../../../src/cli/commands/chat/question-history.ts'
import { temporaryFolder } from '../../../support/dash.ts'
import { anyText } from '../../../support/any-text.ts'

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
  return open(path).list()
}

test.each([
  'why does sk-abcdefghijklmnopqrstuv not work?',
  'ghp_abcdefghijklmnopqrstuvwxyz0123',
  'AKIAABCDEFGHIJKLMNOP',
  'is eyJhbGciOiJI.eyJzdWIiOiIx.c2ln valid',
  'v1.eyJ2IjoxLCJzaWQiOiJkS3NCak1l.WLktt7CfUYuJSIcC8w5Bt7kO',
  'my password: correct-horse',
  'https://me:secret@example.org/',
  ' a question that begins with a space',
  '   ',
])('the question %j is not stored', (question) => {
  expect(remembered([question])).toEqual([])
})

test('questions are kept for the next run, each at its last use', () => {
  expect(
    remembered(['what is trending?', 'which tokens does a tokenizer make?', 'a secret of success']),
  ).toEqual(['what is trending?', 'which tokens does a tokenizer make?', 'a secret of success'])
  const question = anyText({ minLength: 1 })
  const path = historyPath()
  mkdirSync(dirname(path))
  fc.assert(
    fc.property(fc.array(question, { maxLength: 20 }), (added) => {
      writeFileSync(path, added.map((each) => `${JSON.stringify(each)}\n`).join(''))
      expect(open(path).list()).toEqual(added.filter((each, index) => !added.includes(each, index + 1)))
    }),
  )
})

test('only the owner may read the file and the folder of questions, and secrets are kept for this run only', () => {
  const path = historyPath()
  const questions = open(path)
  for (const question of ['one', 'two\nlines', ' not this', 'token: abcdefghijkl', 'one'])
    questions.add(question)
  expect(questions.list()).toEqual(['two\nlines', ' not this', 'token: abcdefghijkl', 'one'])
  expect(open(path).list()).toEqual(['two\nlines', 'one'])
  expect([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777]).toEqual([0o600, 0o700])
})

test('the questions of two terminals are all kept, and invalid lines are skipped', () => {
  const path = historyPath()
  const [first, second] = [open(path), open(path)]
  first.add('a')
  second.add('b')
  first.add('c')
  writeFileSync(path, 'not json\n7\n""\n"b', { flag: 'a' })
  expect(open(path).list()).toEqual(['a', 'b', 'c'])
})

test('the file has a bounded size, and one that others could read becomes private', () => {
  const path = historyPath()
  mkdirSync(dirname(path))
  const lines = Array.from({ length: 3 * QUESTIONS_KEPT }, (_, index) => `"q${index}"\n`)
  writeFileSync(path, lines.join(''))
  chmodSync(path, 0o644)
  expect(open(path).list()).toHaveLength(QUESTIONS_KEPT)
  expect(open(path).list()[0]).toBe(`q${2 * QUESTIONS_KEPT}`)
  expect(readFileSync(path, 'utf8').trimEnd().split('\n')).toHaveLength(QUESTIONS_KEPT)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(dirname(path))).toEqual(['chat-history'])
})

test('an unusable file is reported once, and questions are kept for this run', () => {
  const path = join(temporaryFolder(), 'file', 'chat-history')
  writeFileSync(dirname(path), '')
  const problems: string[] = []
  const questions = openQuestionHistory(path, (problem) => problems.push(problem))
  questions.add('one')
  questions.add('two')
  expect(problems).toEqual([expect.stringMatching(/^questions are not saved: .*ENOTDIR/)])
  expect(questions.list()).toEqual(['one', 'two'])
})

test('questions are kept for this run without a file', () => {
  const questions = open(null)
  questions.add('one')
  expect(questions.list()).toEqual(['one'])
})
