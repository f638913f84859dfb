/** Peers of the search over the same titles: plain BM25, and similarity of trigrams. */
import { createClient } from '@libsql/client'

const WORDS = /[\p{L}\p{N}]+/gu

/**
 * FTS5 as it comes: its own tokenizer, its own BM25, one table.
 *
 * @param {string} url
 * @param {readonly {key: string, title: string}[]} items
 */
export async function plainFts(url, items) {
  const client = createClient({ url, timeout: 5_000, concurrency: 1 })
  await client.execute("CREATE VIRTUAL TABLE plain USING fts5 (title, tokenize = 'unicode61')")
  for (let at = 0; at < items.length; at += 5_000) {
    const rows = items.slice(at, at + 5_000).map(({ title }, index) => [at + index, title])
    await client.execute({
      sql: 'INSERT INTO plain (rowid, title) SELECT value ->> 0, value ->> 1 FROM json_each(?)',
      args: [JSON.stringify(rows)],
    })
  }
  /** Keys by BM25. @param {string} text @param {'AND' | 'OR'} operator @param {number} limit */
  const find = async (text, operator, limit) => {
    const words = [...new Set(text.match(WORDS) ?? [])]
    if (words.length === 0) return []
    const match = words.map((word) => `"${word}"`).join(` ${operator} `)
    const { rows } = await client.execute({
      sql: 'SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?',
      args: [match, limit],
    })
    return rows.map(({ rowid }) => items[Number(rowid)].key)
  }
  return { find, close: () => client.close() }
}

/**
 * Similarity of trigrams as PostgreSQL's pg_trgm defines it: words padded with two spaces before and one after, the
 * share of trigrams that two titles have in common. Exact: every title that shares a trigram is compared.
 *
 * @param {readonly {key: string, title: string}[]} items
 */
export function trigramSimilarity(items) {
  const postings = new Map()
  const sizes = new Uint16Array(items.length)
  for (const [index, { title }] of items.entries()) {
    const trigrams = trigramsOf(title)
    sizes[index] = trigrams.size
    for (const trigram of trigrams) {
      const posting = postings.get(trigram)
      if (posting) posting.push(index)
      else postings.set(trigram, [index])
    }
  }
  const common = new Uint16Array(items.length)
  /** Keys by similarity. @param {string} text @param {number} limit */
  const find = (text, limit) => {
    const asked = trigramsOf(text)
    const touched = []
    for (const trigram of asked) {
      for (const index of postings.get(trigram) ?? []) {
        if (common[index] === 0) touched.push(index)
        common[index] += 1
      }
    }
    const scored = touched.map((index) => [
      index,
      common[index] / (asked.size + sizes[index] - common[index]),
    ])
    for (const index of touched) common[index] = 0
    return scored
      .sort((a, b) => b[1] - a[1])
      .slice(0, limit)
      .map(([index]) => items[index].key)
  }
  return { find }
}

/** @param {string} text */
function trigramsOf(text) {
  const trigrams = new Set()
  for (const word of text.toLowerCase().match(WORDS) ?? []) {
    const padded = `  ${word} `
    for (let at = 0; at + 3 <= padded.length; at += 1) trigrams.add(padded.slice(at, at + 3))
  }
  return trigrams
}
