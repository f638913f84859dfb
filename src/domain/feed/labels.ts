/** What the points of a source count; sources that are not named here count points. */
const UNITS: Readonly<Record<string, string>> = {
  lesswrong: 'karma',
  'hype:github': 'stars',
  'hype:huggingface': 'likes',
  'hype:replicate': 'runs',
  'hype:reddit': 'upvotes',
}

/** The unit of a source's points, in the plural: `points`, `karma`, `stars`, `likes`, `runs` or `upvotes`. */
export function unitOf(source: string): string {
  return UNITS[source] ?? 'points'
}

const NAMES: Readonly<Record<string, string>> = {
  hn: 'Hacker News',
  lobsters: 'Lobsters',
  lesswrong: 'LessWrong',
  'hype:github': 'GitHub',
  'hype:huggingface': 'Hugging Face',
  'hype:replicate': 'Replicate',
  'hype:reddit': 'Reddit',
  midjourney: 'Midjourney',
}

/** A source's name as people write it; the source itself where nobody named it. */
export function nameOfSource(source: string): string {
  return NAMES[source] ?? source
}
