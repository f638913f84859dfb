import type { Article } from '../../src/domain/feed/article.ts'

/** An article text with every value known, but for what is overridden. */
export function article(overrides: Partial<Article> = {}): Article {
  return {
    source: 'hn',
    sourceId: '1',
    text: 'a text',
    provenance: 'hn:item-text',
    fetchedAt: Date.UTC(2026, 2, 1, 12),
    ...overrides,
  }
}
