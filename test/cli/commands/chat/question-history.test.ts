import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openQuestionHistory, QUESTIONS_KEPT } from '../../../../src/cli/commands/chat/question-history.ts'
import type { QuestionHistory } from '../../../../src/cli/commands/chat/question-history.ts'
import { temporaryFolder } from '../../../support/dash.ts'

const place = (): string => join(temporaryFolder(), 'dash', 'chat-history')

const open = (path: string | null): QuestionHistory =>
  openQuestionHistory(path, (problem) => {
    throw new Error(problem)
  })

/** What the next run knows of questions asked in this one. */
function remembered(asked: readonly string[]): readonly string[] {
  const path = place()
  const questions = open(path)
  for (const question of asked) questions.add(question)
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
])('the question %j is not written down', (question) => {
  expect(remembered([question])).toEqual([])
})

test('questions are there in the next run, each where it was asked last', () => {
  expect(
    remembered(['what is trending?', 'which tokens does a tokenizer make?', 'a secret of success']),
  ).toEqual(['what is trending?', 'which tokens does a tokenizer make?', 'a secret of success'])
  const question = fc.string({ unit: 'binary', minLength: 1 })
  const path = place()
  mkdirSync(dirname(path))
  fc.assert(
    fc.property(fc.array(question, { maxLength: 20 }), (asked) => {
      writeFileSync(path, asked.map((each) => `${JSON.stringify(each)}\n`).join(''))
      expect(open(path).list()).toEqual(asked.filter((each, index) => !asked.includes(each, index + 1)))
    }),
  )
})

test('questions stay in a file and a folder of the owner alone, secrets in this run alone', () => {
  const path = place()
  const questions = open(path)
  for (const question of ['one', 'two\nlines', ' not this', 'token: abcdefghijkl', 'one'])
    questions.add(question)
  expect(questions.list()).toEqual(['two\nlines', ' not this', 'token: abcdefghijkl', 'one'])
  expect(open(path).list()).toEqual(['two\nlines', 'one'])
  expect([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777]).toEqual([0o600, 0o700])
})

test('questions of two terminals at once are all kept, lines that hold none are left out', () => {
  const path = place()
  const [first, second] = [open(path), open(path)]
  first.add('a')
  second.add('b')
  first.add('c')
  writeFileSync(path, 'not json\n7\n""\n"b', { flag: 'a' })
  expect(open(path).list()).toEqual(['a', 'b', 'c'])
})

test('the file does not grow for ever, and one that others could read is closed to them', () => {
  const path = place()
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

test('a file that cannot be used is told once, and its questions are there for this run', () => {
  const path = join(temporaryFolder(), 'file', 'chat-history')
  writeFileSync(dirname(path), '')
  const problems: string[] = []
  const questions = openQuestionHistory(path, (problem) => problems.push(problem))
  questions.add('one')
  questions.add('two')
  expect(problems).toEqual([expect.stringMatching(/^questions are not remembered: .*ENOTDIR/)])
  expect(questions.list()).toEqual(['one', 'two'])
})

test('without a file questions are there for this run', () => {
  const questions = open(null)
  questions.add('one')
  expect(questions.list()).toEqual(['one'])
})
