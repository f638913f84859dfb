import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  mayRemember,
  QUESTIONS_KEPT,
  rememberedLine,
  rememberedQuestions,
} from '../../../../src/cli/commands/chat/line-prompt.ts'

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
