import fc from 'fast-check'
import { expect, test } from 'vitest'
import { matchesEntityTag } from '../../src/server/respond.ts'

const ETAG = '"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"'

test.each([
  ['a star', '*', true],
  ['a tag after one with characters beyond ASCII', `"\u00e9", ${ETAG}`, true],
  ['no header', null, false],
  ['an empty header', '', false],
  ['the digest without quotes', ETAG.slice(1, -1), false],
  ['the tag without its last quote', ETAG.slice(0, -1), false],
  ['the tag in upper case', ETAG.toUpperCase(), false],
  ['a space inside the quotes', `" ${ETAG.slice(1)}`, false],
  ['a star in quotes', '"*"', false],
])('the current tag is matched by %s: %s', (_, field, isMatch) => {
  expect(matchesEntityTag(field, ETAG)).toBe(isMatch)
})

const opaque = fc.string({ unit: fc.constantFrom('a', ',', 'W', '/', '*', '\\'), maxLength: 3 })

test('a tag matches a list exactly if one element, weak or strong, is that tag', () => {
  const elements = fc.array(fc.record({ tag: opaque, weak: fc.boolean() }), { minLength: 1, maxLength: 6 })
  const questions = elements.chain((list) =>
    fc.record({
      list: fc.constant(list),
      wanted: fc.oneof(opaque, fc.constantFrom(...list.map(({ tag }) => tag))),
      separator: fc.constantFrom(',', ', ', ' ,\t', ',,', ', ,'),
    }),
  )
  fc.assert(
    fc.property(questions, ({ list, wanted, separator }) => {
      const field = list.map(({ tag, weak }) => `${weak ? 'W/' : ''}"${tag}"`).join(separator)
      expect(matchesEntityTag(field, `"${wanted}"`)).toBe(list.some(({ tag }) => tag === wanted))
    }),
    { numRuns: 300 },
  )
})
