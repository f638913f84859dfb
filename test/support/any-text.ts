import fc from 'fast-check'

const FIRST_SURROGATE = 0xd800
const SURROGATES = 0x800

/** Any character; `unit: 'binary'` of the library builds a table of all of them, which takes seconds. */
const character = fc.integer({ min: 0, max: 0x10ffff - SURROGATES }).map(
  (index) => String.fromCodePoint(index < FIRST_SURROGATE ? index : index + SURROGATES),
  (text) => {
    const code = typeof text === 'string' ? (text.codePointAt(0) ?? -1) : -1
    if (code < 0 || text !== String.fromCodePoint(code)) throw new Error('no character')
    return code < FIRST_SURROGATE ? code : code - SURROGATES
  },
)

/** Well-formed texts of any characters; lengths count characters. */
export const anyText = (constraints: Omit<fc.StringConstraints, 'unit'> = {}): fc.Arbitrary<string> =>
  fc.string({ ...constraints, unit: character })
