import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  mayRemember,
  openQuestions,
  QUESTIONS_KEPT,
  rememberedLine,
  rememberedQuestions,
} from '../../../../src/cli/commands/chat/line-prompt.ts'
import { temporaryFolder } from '../../../support/dash.ts'

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
])('%j is not written down', (question) => {
  expect(mayRemember(question)).toBe(false)
})

test.each(['what is trending?', 'which tokens does a tokenizer make?', 'a secret of success'])(
  '%j is written down',
  (question) => {
    expect(mayRemember(question)).toBe(true)
  },
)

test('what is written down is read again, each question where it was asked last, the latest of too many', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', minLength: 1 }), { maxLength: 20 }), (questions) => {
      const last = questions.filter((question, index) => !questions.includes(question, index + 1))
      expect(rememberedQuestions(questions.map(rememberedLine).join(''))).toEqual(last)
    }),
  )
  const many = Array.from({ length: QUESTIONS_KEPT + 5 }, (_, index) => rememberedLine(`q${index}`))
  expect(rememberedQuestions(many.join(''))).toHaveLength(QUESTIONS_KEPT)
  expect(rememberedQuestions(many.join('')).at(0)).toBe('q5')
})

test('lines that hold no question are left out', () => {
  expect(rememberedQuestions('"a"\nnot json\n7\n""\n"b')).toEqual(['a'])
})

const place = (): string => join(temporaryFolder(), 'dash', 'chat-history')

describe('remembered questions', () => {
  test('are there in the next run, in a file and a folder of the owner alone, and without secrets', () => {
    const path = place()
    const questions = openQuestions(path)
    for (const question of ['one', 'two\nlines', ' not this', 'token: abcdefghijkl', 'one'])
      questions.add(question)
    expect(questions.list()).toEqual(['two\nlines', ' not this', 'token: abcdefghijkl', 'one'])
    expect(openQuestions(path).list()).toEqual(['two\nlines', 'one'])
    expect([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777]).toEqual([0o600, 0o700])
  })

  test('of two terminals at once are all kept', () => {
    const path = place()
    const [first, second] = [openQuestions(path), openQuestions(path)]
    first.add('a')
    second.add('b')
    first.add('c')
    expect(openQuestions(path).list()).toEqual(['a', 'b', 'c'])
  })

  test('do not grow for ever, and a file others could read is closed to them', () => {
    const path = place()
    mkdirSync(dirname(path))
    const lines = Array.from({ length: 3 * QUESTIONS_KEPT }, (_, index) => rememberedLine(`q${index}`))
    writeFileSync(path, lines.join(''))
    chmodSync(path, 0o644)
    expect(openQuestions(path).list()).toHaveLength(QUESTIONS_KEPT)
    expect(readFileSync(path, 'utf8').trimEnd().split('\n')).toHaveLength(QUESTIONS_KEPT)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readdirSync(dirname(path))).toEqual(['chat-history'])
  })

  test('that cannot be kept are told once, and are there for this run', () => {
    const path = join(temporaryFolder(), 'file', 'chat-history')
    writeFileSync(dirname(path), '')
    const questions = openQuestions(path)
    questions.add('one')
    expect(questions.problem).toMatch(/^questions are not remembered: .*ENOTDIR/)
    expect(questions.list()).toEqual(['one'])
  })

  test('are none without a file', () => {
    const questions = openQuestions(null)
    questions.add('one')
    expect([questions.list(), questions.problem]).toEqual([['one'], null])
  })
})
