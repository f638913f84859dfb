import { expect, test } from 'vitest'
import { complexityOf } from '../../../src/domain/v1/completion-request.ts'

test.each([
  ['a text full of brackets', JSON.stringify({ content: '[{,:'.repeat(200_000) })],
  ['a quote and a backslash in a text', JSON.stringify({ content: '\\"[[' })],
  ['128 levels', `${'['.repeat(128)}${']'.repeat(128)}`],
  ['100,000 values', `[${'1,'.repeat(99_998)}1]`],
  ['text that is not JSON', '"'],
])('%s is simple enough to parse', (_name, text) => {
  expect(complexityOf(text)).toBeNull()
})

const LEVELS = 'the body has more than 128 levels'
const VALUES = 'the body has more than 100000 values'

test.each([
  ['129 levels', '{"a":'.repeat(129), LEVELS],
  ['a level after a text that ends with a backslash', `["\\\\",${'['.repeat(128)}`, LEVELS],
  ['a level after an empty list', `[[],${'['.repeat(128)}`, LEVELS],
  ['a million empty lists', `[${'[],'.repeat(1_000_000)}1]`, VALUES],
  ['a million members', `{${'"a":1,'.repeat(1_000_000)}`, VALUES],
])('%s is too complex to parse', (_name, text, problem) => {
  expect(complexityOf(text)).toBe(problem)
})
