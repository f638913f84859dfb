import type { Day } from '../../src/domain/time.ts'

/** NDJSON of verified Hacker News stories of one day: ids and points count up. */
export function storiesOf(day: Day, count: number, changes: Record<string, unknown> = {}): string {
  return Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      source: 'hn',
      sourceId: String(index + 1),
      day,
      title: `title ${index + 1}`,
      url: `https://example.org/a/path/of/some/length/${index + 1}`,
      points: index,
      comments: 0,
      publishedAt: `${day}T10:00:00Z`,
      titleProvenance: 'hn:test',
      ...changes,
    }),
  ).join('\n')
}
