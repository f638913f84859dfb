import { describe, expect, test } from 'vitest'
import { errorCodeOf, parseListing } from '../../../src/adapters/objects/s3-request.ts'
import { StorageFault } from '../../../src/domain/refusal.ts'

const page = (inner: string): Uint8Array =>
  new TextEncoder().encode(
    `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${inner}</ListBucketResult>\n`,
  )

const entry = (key: string): string =>
  `<Contents><Key>${key}</Key><ETag>&quot;9b2c&quot;</ETag><Size>3</Size><Owner><ID>1</ID></Owner></Contents>`

const LAST = '<IsTruncated>false</IsTruncated>'
const ENCODED = '<EncodingType>url</EncodingType>'

describe('a page of a listing', () => {
  test('a page has its keys and the token of the next page', () => {
    const rest = '<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b+/=</NextContinuationToken>'
    expect(parseListing(page(`<KeyCount>2</KeyCount>${rest}${entry('a/1')}\n${entry('a/2')}`))).toEqual({
      keys: ['a/1', 'a/2'],
      next: 'a&b+/=',
    })
  })

  test('a page may be empty', () => {
    expect(parseListing(page(`<Prefix/><KeyCount>0</KeyCount>${LAST}`))).toEqual({ keys: [], next: null })
  })

  test.each([
    ['encoded', ENCODED, 'a%2Fb+c%2Bd%3Fe%26%C3%A9%0A', 'a/b c+d?e&é\n'],
    ['with references of XML', '', 'a&amp;b&lt;c&gt;&quot;&apos;%41+', 'a&b<c>"\'%41+'],
  ])('a page returns keys that are %s as the bucket names them', (_what, rest, key, name) => {
    expect(parseListing(page(`${rest}${LAST}${entry(key)}`)).keys).toEqual([name])
  })

  test.each([
    ['a truncated page without a token', page(`<IsTruncated>true</IsTruncated>${entry('a')}`)],
    [
      'an empty token',
      page('<IsTruncated>true</IsTruncated><NextContinuationToken></NextContinuationToken>'),
    ],
    ['fewer keys than it counts', page(`<KeyCount>2</KeyCount>${LAST}${entry('a')}`)],
    ['an entry without a key', page(`${LAST}<Contents><Size>3</Size></Contents>`)],
    ['an entry with two keys', page(`${LAST}<Contents><Key>a</Key><Key>b</Key></Contents>`)],
    ['a key outside of its entries', page(`${LAST}<Key>a</Key>`)],
    ['a comment', page(`${LAST}<!-- ${entry('a')} -->`)],
    ['a key that is not encoded as it says', page(ENCODED + LAST + entry('100%'))],
    ['a page of another encoding', Buffer.from('<!doctype html><title>Café</title>', 'latin1')],
  ])('a page is refused if it is %s', (_what, bytes) => {
    expect(() => parseListing(bytes)).toThrow(StorageFault)
  })
})

test.each([
  [
    '<?xml version="1.0"?>\n<Error><Code>NoSuchKey</Code><Message>no &lt;Code&gt;</Message></Error>',
    'NoSuchKey',
  ],
  ['', null],
])('the code of the error document %j is %j', (text, code) => {
  expect(errorCodeOf(new TextEncoder().encode(text))).toBe(code)
})
