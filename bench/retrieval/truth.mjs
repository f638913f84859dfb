/** Truth taken from the data itself: which items are reposts of which, and which title a mangled question came from. */

/** A generator of numbers from 0 to 1 that gives the same ones for the same seed (mulberry32). @param {number} seed */
export function seeded(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Some of the values, each once.
 *
 * @template T
 * @param {readonly T[]} values
 * @param {number} count
 * @param {() => number} random
 */
export function sample(values, count, random) {
  const pool = [...values]
  for (let at = 0; at < Math.min(count, pool.length); at += 1) {
    const other = at + Math.floor(random() * (pool.length - at))
    ;[pool[at], pool[other]] = [pool[other], pool[at]]
  }
  return pool.slice(0, count)
}

/** Items that share one exact URL are one page; more than this many are a site's front page, not a story. */
const REPOSTS_MAX = 10

/**
 * Reposts: items with the very same URL, and another title or another day.
 *
 * @param {readonly {key: string, url: string | null, title: string, day: string}[]} items
 * @returns {{item: any, reposts: any[]}[]}
 */
export function repostsIn(items) {
  const byUrl = new Map()
  for (const item of items) {
    const group = byUrl.get(item.url)
    if (group) group.push(item)
    else if (item.url !== null) byUrl.set(item.url, [item])
  }
  return [...byUrl.values()]
    .filter((group) => group.length > 1 && group.length <= REPOSTS_MAX)
    .flatMap((group) =>
      group.flatMap((item) => {
        const reposts = group.filter(
          (other) => other !== item && (other.title !== item.title || other.day !== item.day),
        )
        return reposts.length > 0 ? [{ item, reposts }] : []
      }),
    )
}

/** Shortest title, in words, that is still itself after one was taken away. */
const WORDS_MIN = 4

/**
 * Questions made of titles: one word removed, the words in another order, and one word replaced by another title's.
 *
 * @param {readonly {key: string, title: string}[]} items
 * @param {() => number} random
 */
export function mangledTitles(items, random) {
  const usable = items.filter(({ title }) => title.split(/\s+/).length >= WORDS_MIN)
  return usable.map((item, index) => {
    const words = item.title.trim().split(/\s+/)
    const at = Math.floor(random() * words.length)
    const foreign = usable[(index + 1) % usable.length].title.trim().split(/\s+/)
    const other = foreign[Math.floor(random() * foreign.length)]
    return {
      item,
      removed: words.toSpliced(at, 1).join(' '),
      reordered: sample(words, words.length, random).join(' '),
      replaced: words.with(at, other).join(' '),
    }
  })
}
