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

const WORDY = [
  ...Array.from(
    'abLs15 0\'’ʼ`´"“*+#.,_-&™²½ßéİŉﬁＣ\u00ad\u200b\u200d\u00a0\x1f猫賢いサーが한국々漢\u{20000}ภาไทยລາວខមနက',
  ),
  ..."l’|'s |d'| |++|000|,000|e\u0301|ﾊﾞ|か゚|漢\u{e0100}|ทำ|ท\u0e4d\u0e32|មែ|हि|ന്\u200d|ൻ|🦀|\ud800".split(
    '|',
  ),
]

/** Texts of characters that decide where a word begins and ends, among letters of several scripts. */
export const wordyText = (constraints: fc.ArrayConstraints = {}): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...WORDY), constraints).map((parts) => parts.join(''))
