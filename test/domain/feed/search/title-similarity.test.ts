import { describe, expect, test } from 'vitest'
import { similarityReasons, titleSimilarity } from '../../../../src/domain/feed/search/title-similarity.ts'
import { tokenize } from '../../../../src/domain/feed/search/tokenize.ts'

describe('the similarity of two titles', () => {
  const of = { the: 20_000, of: 15_000, notes: 600, on: 9_000, ffts: 3, ntts: 2, rust: 1_700 }
  const counts = { items: 100_000, of: new Map(Object.entries(of)) }
  const compare = (a: string, b: string) => titleSimilarity(tokenize(a), tokenize(b), counts)

  test('the similarity is 1 for the same words in any order, and 0 without a shared word', () => {
    expect(compare('Notes on FFTs', 'FFTs: notes, on').score).toBe(1)
    expect(compare('Notes on FFTs', 'the rust').score).toBe(0)
    expect(compare('!', 'rust').score).toBe(0)
  })

  test.each([
    ['Notes on FFTs', 'FFTs: notes, on', ['near-duplicate-title']],
    ['FFTs with NTTs', 'NTTs or FFTs in Rust', ['same-subject']],
    ['FFTs of the sea', 'The end of FFTs', []],
    ['Rust notes', 'Notes of a Rust user', []],
  ])('"%s" and "%s" are similar for %j: one rare word or common words are no subject', (a, b, reasons) => {
    expect(similarityReasons(compare(a, b), false, counts)).toEqual(reasons)
  })
})
