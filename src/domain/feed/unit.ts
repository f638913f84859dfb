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
