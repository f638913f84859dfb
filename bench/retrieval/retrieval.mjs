/**
 * Measures how well `similar` finds reposts and `search` finds changed titles, on real data, beside plain BM25 and similarity of
 * trigrams in the same run. Truth is taken from the data itself (truth.mjs); sampling is seeded.
 *
 *     npm run build && DASH_BENCH_DATA=FOLDER node bench/retrieval/retrieval.mjs [QUESTIONS]
 *
 * FOLDER holds the data set's *.ndjson.gz files. QUESTIONS (default 1000) is how many of each kind are asked.
 */
import { join } from 'node:path'
import { note, printTable, runBench } from '../support.mjs'
import { importAndOpen } from '../search-data.mjs'
import { plainFts, trigramSimilarity } from './peers.mjs'
import { mangledTitles, repostsIn, sample, seeded } from './truth.mjs'

const QUESTIONS = Number(process.argv[2] ?? 1_000)
const SEED = 20_260_301
const AT = 10

await runBench(async (folder) => {
  const { items, search, close } = await importAndOpen(folder)
  try {
    const plain = await plainFts(`file:${join(folder, 'plain.db')}`, items)
    const trigrams = trigramSimilarity(items)
    await measureReposts(items, search, plain, trigrams)
    await measureTitles(items, search, plain, trigrams)
    plain.close()
  } finally {
    await close()
  }
})

/** Recall at ten: the share of an item's reposts among the first ten similar items. */
async function measureReposts(items, search, plain, trigrams) {
  const random = seeded(SEED)
  const all = repostsIn(items)
  const asked = sample(all, QUESTIONS, random)
  const tally = new Map()
  for (const { item, reposts } of asked) {
    const wanted = new Set(reposts.map(({ key }) => key))
    const retitled = reposts.some(({ title }) => title !== item.title)
    const similar = await search.similar(item.key, 100)
    // Without the rule of the same page an item stands where its title alone puts it.
    const byTitle = similar
      .filter(({ reasons }) => reasons.some((reason) => reason !== 'same-discussion'))
      .sort((a, b) => b.score - a.score)
    const others = (keys) => keys.filter((key) => key !== item.key).slice(0, AT)
    const answers = {
      similar: others(similar.map(({ key }) => key)),
      'similar, the rule of the same page withheld': others(byTitle.map(({ key }) => key)),
      'plain BM25, any word': others(await plain.find(item.title, 'OR', AT + 1)),
      'plain BM25, every word': others(await plain.find(item.title, 'AND', AT + 1)),
      'trigrams (pg_trgm)': others(trigrams.find(item.title, AT + 1)),
    }
    for (const [name, keys] of Object.entries(answers)) {
      const recall = keys.filter((key) => wanted.has(key)).length / Math.min(wanted.size, AT)
      const sums = tally.get(name) ?? { all: 0, retitled: 0, count: 0, retitledCount: 0 }
      tally.set(name, sums)
      sums.all += recall
      sums.count += 1
      if (retitled) {
        sums.retitled += recall
        sums.retitledCount += 1
      }
    }
  }
  const [first] = tally.values()
  printTable(
    `Reposts: recall at ${AT}, ${first.count} of ${all.length} items that were posted again, ${first.retitledCount} of them under another title`,
    ['what', 'recall at 10', 'of those under another title'],
    [...tally].map(([name, { all: sum, count, retitled, retitledCount }]) => [
      name,
      (sum / count).toFixed(3),
      (retitled / retitledCount).toFixed(3),
    ]),
  )
}

/**
 * Mean reciprocal rank of the title a question was made of, among the first ten. Items with the same title, but for case
 * and punctuation, are as good an answer.
 */
async function measureTitles(items, search, plain, trigrams) {
  const random = seeded(SEED + 1)
  const titles = new Map(items.map(({ key, title }) => [key, title]))
  const questions = mangledTitles(sample(items, QUESTIONS * 2, random), random).slice(0, QUESTIONS)
  const tally = new Map()
  const kinds = ['removed', 'reordered', 'replaced']
  for (const question of questions) {
    for (const kind of kinds) {
      const text = question[kind]
      const whole = { sources: [], minPoints: null, minComments: null, from: null, to: null }
      const asked = { query: text, ...whole, sort: 'relevance', limit: AT, cursor: null }
      const answers = {
        search: (await search.search(asked)).items.map(({ key }) => key),
        'plain BM25, every word': await plain.find(text, 'AND', AT),
        'plain BM25, any word': await plain.find(text, 'OR', AT),
        'trigrams (pg_trgm)': trigrams.find(text, AT),
      }
      for (const [name, keys] of Object.entries(answers)) {
        const place = keys.findIndex((key) => folded(titles.get(key)) === folded(question.item.title))
        const sums = tally.get(name) ?? { removed: 0, reordered: 0, replaced: 0 }
        tally.set(name, sums)
        sums[kind] += place === -1 ? 0 : 1 / (place + 1)
      }
    }
  }
  note(`${questions.length} titles`)
  printTable(
    `\nTitles: mean reciprocal rank at ${AT}, ${questions.length} titles of at least four words`,
    ['what', 'a word removed', 'words reordered', 'a word replaced by a foreign one'],
    [...tally].map(([name, sums]) => [
      name,
      ...kinds.map((kind) => (sums[kind] / questions.length).toFixed(3)),
    ]),
  )
}

/** A title without case and punctuation. @param {string} title */
function folded(title) {
  return title
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu)
    ?.join(' ')
}
