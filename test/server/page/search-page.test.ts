import { expect, test } from 'vitest'
import { markWords } from '../../../src/server/page/search-page.ts'

test.each([
  ['Rust in the <kernel>', 'rust kernel', '<mark>Rust</mark> in the &lt;<mark>kernel</mark>&gt;'],
  ['Rüst & rustic', 'RUST', '<mark>Rüst</mark> &amp; <mark>rustic</mark>'],
  ['C++ and C', 'c++ book', '<mark>C++</mark> and C'],
  ['Don’t repeat', '"dont repeat"', '<mark>Don’t</mark> <mark>repeat</mark>'],
  ['A kernel', 'ker* new', 'A <mark>kernel</mark>'],
  ['<mark>', '!!', '&lt;mark&gt;'],
])('the words of the title %s that the query %s names are marked in escaped text', (title, query, marked) => {
  expect(markWords(title, query).html).toBe(marked)
})
