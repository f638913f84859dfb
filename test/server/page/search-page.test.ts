import { expect, test } from 'vitest'
import { markWords } from '../../../src/server/page/search-page.ts'

test.each([
  ['Rust in the <kernel>', 'rust kernel', '<mark>Rust</mark> in the &lt;<mark>kernel</mark>&gt;'],
  ['Rüst & rustic', 'RUST', '<mark>Rüst</mark> &amp; <mark>rustic</mark>'],
  ['Søren Müller', 'mueller', 'Søren <mark>Müller</mark>'],
  ['C++ and C', 'c++ book', '<mark>C++</mark> and C'],
  ['Don’t repeat', '"dont repeat"', '<mark>Don’t</mark> <mark>repeat</mark>'],
  ['A kernel', 'ker* new', 'A <mark>kernel</mark>'],
  ["Google's phone", 'google phone', '<mark>Google</mark>&#39;s <mark>phone</mark>'],
  ["L'année du logiciel", 'annee', 'L&#39;<mark>année</mark> du logiciel'],
  ['Rust+WebAssembly & Łódź', 'rust lodz', '<mark>Rust</mark>+WebAssembly &amp; <mark>Łódź</mark>'],
  ['Micro\u00adservices™ guide', 'microservices', '<mark>Micro\u00adservices™</mark> guide'],
  ['クラウドサーバーの作り方', 'ｻｰﾊﾞｰ', 'クラウド<mark>サーバー</mark>の作り方'],
  ['賢い猫', '猫', '賢い<mark>猫</mark>'],
  ['ภาษาไทยกับคอมพิวเตอร์', 'ไทย', 'ภาษา<mark>ไทย</mark>กับคอมพิวเตอร์'],
  ['<mark>', '!!', '&lt;mark&gt;'],
])('the words of the title %s that the query %s names are marked in escaped text', (title, query, marked) => {
  expect(markWords(title, query).html).toBe(marked)
})
